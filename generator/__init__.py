"""sparkgen: one site file in, one reviewable configuration bundle out."""

__version__ = "0.1.0"
