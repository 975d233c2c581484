"""A site file, from its bytes to a declaration: reading, schema, text types, lint, redaction."""
