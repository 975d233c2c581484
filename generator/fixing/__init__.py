"""Applies the proposals of findings to the text of a site file, and writes it to disk.

`layout` finds the place of everything in a text, `splicing` turns edits of data into edits of text,
`repair` applies proposals until none are left, and `overwriting` writes the result to disk.
"""
