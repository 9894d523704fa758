"""Releasing records, projections and channels."""

from ..quadratic_form.gaussian_pair import GaussianPair
from .channels import (
    BlahutArimoto,
    BottleneckChannel,
    Channel,
    blahut_arimoto,
    exponential_mechanism,
    information_bottleneck,
)

__all__ = [
    "BlahutArimoto",
    "BottleneckChannel",
    "Channel",
    "GaussianPair",
    "blahut_arimoto",
    "exponential_mechanism",
    "information_bottleneck",
]
