"""Hands a bundle on disk to the programs that read its files on a node."""
