"""The bundle of a site: what is in it, how it is printed, and how it is brought to disk."""
