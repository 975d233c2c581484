"""The bundle of a site: what it contains, how it is rendered, and how it is written to disk."""
