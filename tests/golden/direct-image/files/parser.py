"""A parser."""
