"""Whether a model fits its nodes, and what they have room for then."""
