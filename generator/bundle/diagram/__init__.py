"""The cabling as pictures: positions are computed here, templates and terminals show them."""
