"""What the names in a site refer to on its nodes."""
