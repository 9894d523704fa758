"""The distribution of a quadratic form of Gaussians, right in both tails."""

from .form import QuadraticForm, QuadraticFormResult, QuadraticFormWarning
from .gaussian_pair import GaussianPair

__all__ = ["GaussianPair", "QuadraticForm", "QuadraticFormResult", "QuadraticFormWarning"]
