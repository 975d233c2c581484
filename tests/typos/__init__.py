"""Realistic single mistakes in site files: what sparkgen reports, and what `fix` does about it."""
