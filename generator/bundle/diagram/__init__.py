"""Diagrams of the cabling: positions are computed here; templates and terminals show them."""
