"""Differentially private sums and means of vectors: shaped, exact, fast.

A row passes ``rows``, ``ellipsoid``, ``exact_sum``, ``private_sum``, ``one_sum``, ``noise`` and
``sum_release``.

The names in the order of the story: rows, a region, the exact sum over it, the mechanisms, what
they release and promise; then estimates, calibration, noise, and the distribution that sets the
clip radius.
"""

from typing import Any as _Any

from .rows.files import Rows, open_rows
from .ellipsoid import Ellipsoid
from .low_rank import LowRankScale
from .shapes.best import ErrorPrediction
from .gaussian_shape import GaussianShape
from .exact_sum import ExactSum
from .several_sums import sums_of
from .jobs.parts import Parts
from .guarantee import DeltaGuarantee, GaussianGuarantee, Guarantee, Neighbors
from .release import Release
from .budget.composition import ComposedGuarantee, compose
from .budget.budget import Budget, BudgetError
from .sum_release import SumRelease
from .present import PresentMean
from .adaptive.plan import Plan, Step
from .adaptive.release import AdaptiveRelease
from .jobs.checkpoint import Checkpoint, CheckpointError
from .private_sum import PrivateMean, PrivateSum
from .groups.table import ExactGroupSum
from .groups.release import GroupRelease
from .groups.mechanisms import PrivateGroupMean, PrivateGroupSum
from .groups.counts import PrivateCounts
from .estimates import Estimate, estimate_center, estimate_scale
from .second_moments import estimate_covariance
from . import calibrate, noise
from .quadratic_form import QuadraticForm, QuadraticFormResult, QuadraticFormWarning
from .kernels.backend import Backend, backend
from .displays import shown_in_notebooks as _shown_in_notebooks

__version__: str  # by __getattr__
__all__ = [
    "Rows",
    "open_rows",
    "Ellipsoid",
    "GaussianShape",
    "LowRankScale",
    "ErrorPrediction",
    "ExactSum",
    "sums_of",
    "Parts",
    "PrivateSum",
    "PrivateMean",
    "ExactGroupSum",
    "PrivateGroupSum",
    "PrivateGroupMean",
    "PrivateCounts",
    "Plan",
    "Step",
    "Release",
    "SumRelease",
    "PresentMean",
    "AdaptiveRelease",
    "GroupRelease",
    "Guarantee",
    "GaussianGuarantee",
    "DeltaGuarantee",
    "Neighbors",
    "Budget",
    "BudgetError",
    "ComposedGuarantee",
    "compose",
    "Checkpoint",
    "CheckpointError",
    "Estimate",
    "estimate_center",
    "estimate_scale",
    "estimate_covariance",
    "calibrate",
    "noise",
    "QuadraticForm",
    "QuadraticFormResult",
    "QuadraticFormWarning",
    "Backend",
    "backend",
    "__version__",
]

_shown_in_notebooks(globals(), __all__)


#: Packages that ``import ellipsum`` leaves alone: they are imported when they are first asked for.
_LATER = ("learned", "records", "tradeoff")


def __getattr__(name: str) -> _Any:
    """The version and the packages beside when they are asked for: they import much else."""
    if name in _LATER:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return globals().setdefault(name, version("ellipsum"))


def __dir__() -> list[str]:
    return sorted({*globals(), "__version__", *_LATER})
