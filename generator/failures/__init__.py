"""What still serves when something in a cluster fails, by the files of its bundle."""
