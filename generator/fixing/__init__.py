"""Carries out what findings propose, in the text of a site file and on disk.

`layout` knows where everything stands in a text, `splicing` turns edits of data into changes of it,
`repair` applies proposals until nothing is left, and `overwriting` puts the result on disk.
"""
