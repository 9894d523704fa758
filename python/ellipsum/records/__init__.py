"""Releasing records, projections and channels; what each promises."""

from ..quadratic_form.gaussian_pair import GaussianPair
from .bottleneck import Bottleneck
from .gaussian_channel import GaussianChannel
from .priv_unit import PrivUnit
from .rate_distortion import RateDistortion
from .record_guarantee import RecordGuarantee
from .record_release import RecordRelease

__all__ = [
    "Bottleneck",
    "GaussianChannel",
    "GaussianPair",
    "PrivUnit",
    "RateDistortion",
    "RecordGuarantee",
    "RecordRelease",
]
