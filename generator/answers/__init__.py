"""What the engines on a site's nodes said of their settings."""
