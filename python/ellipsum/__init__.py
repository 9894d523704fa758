"""Differentially private sums and means of vectors: shaped, exact, fast.

The names in the order of the story: a region, the exact sum over it, the mechanisms, what they
release; then calibration, noise and the distribution that sets the clip radius.
"""

from importlib.metadata import version as _version

from . import calibrate, noise
from .ellipsoid import Ellipsoid
from .estimates import estimate_center, estimate_covariance, estimate_scale
from .exact_sum import ExactSum
from .kernels.backend import Backend, backend
from .private_sum import PrivateMean, PrivateSum
from .quadratic_form.form import QuadraticForm, QuadraticFormResult, QuadraticFormWarning
from .release import Guarantee, Release
from .rows.files import Rows, open_rows

__version__ = _version("ellipsum")
__all__ = [
    "Backend",
    "Ellipsoid",
    "ExactSum",
    "Guarantee",
    "PrivateMean",
    "PrivateSum",
    "QuadraticForm",
    "QuadraticFormResult",
    "QuadraticFormWarning",
    "Release",
    "Rows",
    "__version__",
    "backend",
    "calibrate",
    "estimate_center",
    "estimate_covariance",
    "estimate_scale",
    "noise",
    "open_rows",
]
