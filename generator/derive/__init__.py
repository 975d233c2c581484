"""Derives a site from a valid declaration: ranks, addresses, environment, command lines."""
