"""What people get wrong in a site file: what was meant, and what to write."""
