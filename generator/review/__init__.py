"""A review of a change to a bundle: what differs, and what it costs on the nodes.

`changes` holds what differs, `impact` what must be done about it; the other modules print a review.
"""
