"""Learned releases (PPAN, the generative filter) beside their exact optima. Needs PyTorch.

Importing this package imports PyTorch; importing ellipsum does not. What is proved is a Gaussian
mechanism on clipped latents, given the weights; everything else is measured.
"""

from . import needs
from .encoder import VariationalEncoder
from .filter_bank import FilterBank
from .generative_filter import GenerativeFilter
from .guaranteed_filter import GuaranteedFilter
from .local_mechanism import LatentRelease, LocalGuarantee, together
from .privacy_network import PrivacyNetwork
from .storage import load

__all__ = [
    "FilterBank",
    "GenerativeFilter",
    "GuaranteedFilter",
    "LatentRelease",
    "LocalGuarantee",
    "PrivacyNetwork",
    "VariationalEncoder",
    "load",
    "needs",
    "together",
]
