"""The distribution of a quadratic form of Gaussians, right in both tails."""

from ..notebook import shown_in_notebooks as _shown_in_notebooks
from .form import QuadraticForm, QuadraticFormResult, QuadraticFormWarning
from .gaussian_pair import GaussianPair

__all__ = ["GaussianPair", "QuadraticForm", "QuadraticFormResult", "QuadraticFormWarning"]

_shown_in_notebooks(globals(), __all__)
