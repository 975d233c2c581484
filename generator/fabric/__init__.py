"""The fabric: which address every half of a cabled port has."""
