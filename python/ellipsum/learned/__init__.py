"""Learned releases (PPAN, the generative filter) beside their exact optima. Needs PyTorch.

Importing this package imports PyTorch; importing ellipsum does not. What is proved is a Gaussian
mechanism on clipped latents, given the weights; everything else is measured.
"""

from . import needs

needs.check()

from ..notebook import shown_in_notebooks as _shown_in_notebooks  # noqa: E402
from .encoder import VariationalEncoder  # noqa: E402
from .filter_bank import FilterBank, UserAudit  # noqa: E402
from .generative_filter import GenerativeFilter  # noqa: E402
from .guaranteed_filter import GuaranteedFilter  # noqa: E402
from .leakage import Leakage, LearnedPoint  # noqa: E402
from .local_mechanism import LatentRelease, LocalGuarantee, together  # noqa: E402
from .privacy_network import PrivacyNetwork  # noqa: E402
from .storage import load  # noqa: E402

__all__ = [
    "FilterBank",
    "GenerativeFilter",
    "GuaranteedFilter",
    "LatentRelease",
    "Leakage",
    "LearnedPoint",
    "LocalGuarantee",
    "PrivacyNetwork",
    "UserAudit",
    "VariationalEncoder",
    "load",
    "together",
]

_shown_in_notebooks(globals(), __all__)
