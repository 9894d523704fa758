"""Differentially private sums and means of vectors: shaped, exact, fast."""

from importlib.metadata import version as _version

from ._backend import Backend, backend
from .quadratic_form import QuadraticForm, QuadraticFormResult, QuadraticFormWarning

__version__ = _version("ellipsum")
__all__ = [
    "Backend",
    "QuadraticForm",
    "QuadraticFormResult",
    "QuadraticFormWarning",
    "__version__",
    "backend",
]
