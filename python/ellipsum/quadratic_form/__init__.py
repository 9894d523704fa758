"""The distribution of a quadratic form of Gaussians, right in both tails."""

from .form import QuadraticForm, QuadraticFormResult, QuadraticFormWarning

__all__ = ["QuadraticForm", "QuadraticFormResult", "QuadraticFormWarning"]
