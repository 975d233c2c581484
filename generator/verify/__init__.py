"""Verifies a bundle on disk with the programs that read its files on a node."""
