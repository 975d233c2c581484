"""The cabling as pictures: where all is drawn is computed here, a template or a print shows it."""
