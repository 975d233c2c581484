"""A review of a change to a bundle: what differs, and what that means for the nodes.

`changes` finds the differences, `impact` what must be done about them; the other modules print a
review.
"""
