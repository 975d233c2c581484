"""The cluster in operation: what a change of it takes, and what serves when something fails."""
