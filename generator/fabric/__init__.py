"""The fabric: the address of each half of every cabled port."""
