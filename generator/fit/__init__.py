"""Whether a model fits its nodes, and what they can hold then."""
