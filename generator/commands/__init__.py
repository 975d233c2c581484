"""The commands, one module per command: parse options, read, call, write."""
