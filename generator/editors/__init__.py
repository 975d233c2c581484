"""What editors ask for: what is wrong with a text, why, and the changes that would mend it."""
