"""A site file to start from."""
