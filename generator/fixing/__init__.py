"""Applies what findings propose to the text of a site file, and writes it to disk.

`layout` knows where everything stands in a text, `splicing` turns edits of data into changes of it,
`repair` applies proposals until nothing is left, and `overwriting` puts the result on disk.
"""
