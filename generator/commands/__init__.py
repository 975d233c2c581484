"""The commands, a module each: flags, read, call, write."""
