"""Releasing records, projections and channels."""

from ..quadratic_form.gaussian_pair import GaussianPair

__all__ = ["GaussianPair"]
