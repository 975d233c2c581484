"""What is wrong with what people run, in their own files."""
