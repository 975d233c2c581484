"""A plugin."""
