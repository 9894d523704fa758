"""The distribution of a quadratic form of Gaussians, right in both tails."""

from ..notebook import shown_in_notebooks as _shown_in_notebooks
from .fitting import FormFit
from .form import QuadraticForm, QuadraticFormResult, QuadraticFormWarning
from .form_array import FormArray
from .gaussian_pair import GaussianPair
from .gradients import Gradient
from .normal_form import NormalForm

__all__ = [
    "FormArray",
    "FormFit",
    "GaussianPair",
    "Gradient",
    "NormalForm",
    "QuadraticForm",
    "QuadraticFormResult",
    "QuadraticFormWarning",
]

_shown_in_notebooks(globals(), __all__)
