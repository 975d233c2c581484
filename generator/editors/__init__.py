"""What editors show: what is wrong with a text, why, and the edits that would fix it."""
