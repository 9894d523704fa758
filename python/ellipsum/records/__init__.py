"""Release of single records: channels, shapes, PrivUnitG, and what each promises."""

from .bottleneck import Bottleneck
from .gaussian_channel import GaussianChannel
from .priv_unit import PrivUnit
from .rate_distortion import RateDistortion
from .record_guarantee import RecordGuarantee
from .record_release import RecordRelease

__all__ = [
    "Bottleneck",
    "GaussianChannel",
    "PrivUnit",
    "RateDistortion",
    "RecordGuarantee",
    "RecordRelease",
]
