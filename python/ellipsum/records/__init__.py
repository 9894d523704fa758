"""Releasing records, projections and channels; what each promises."""

from ..quadratic_form.gaussian_pair import GaussianPair
from .bottleneck import Bottleneck
from .channels import (
    BlahutArimoto,
    BottleneckChannel,
    Channel,
    blahut_arimoto,
    exponential_mechanism,
    information_bottleneck,
)
from .gaussian_channel import GaussianChannel
from .priv_unit import PrivUnit
from .rate_distortion import RateDistortion
from .record_guarantee import RecordGuarantee
from .record_release import RecordRelease

__all__ = [
    "BlahutArimoto",
    "Bottleneck",
    "BottleneckChannel",
    "Channel",
    "GaussianChannel",
    "GaussianPair",
    "PrivUnit",
    "RateDistortion",
    "RecordGuarantee",
    "RecordRelease",
    "blahut_arimoto",
    "exponential_mechanism",
    "information_bottleneck",
]
