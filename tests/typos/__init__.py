"""Realistic single mistakes in site files, and what is said and done about each of them."""
