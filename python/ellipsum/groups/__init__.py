"""Sums, means and counts of groups: one user in at most so many of them."""
