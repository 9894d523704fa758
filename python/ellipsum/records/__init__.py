"""Releasing records, projections and channels; what each promises."""

from ..notebook import shown_in_notebooks as _shown_in_notebooks
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
from .moment_fits import MomentRegression, PrincipalAxes
from .priv_unit import PrivUnit
from .private_moments import PrivatePCA, PrivateRegression
from .projection import PrivateProjection
from .projection_floor import ProjectionGuarantee
from .projection_release import ProjectionRelease
from .rate_distortion import RateDistortion
from .record_guarantee import RecordGuarantee
from .record_release import RecordRelease
from .synthetic_rows import synthetic_rows

__all__ = [
    "BlahutArimoto",
    "Bottleneck",
    "BottleneckChannel",
    "Channel",
    "GaussianChannel",
    "GaussianPair",
    "MomentRegression",
    "PrincipalAxes",
    "PrivUnit",
    "PrivatePCA",
    "PrivateProjection",
    "PrivateRegression",
    "ProjectionGuarantee",
    "ProjectionRelease",
    "RateDistortion",
    "RecordGuarantee",
    "RecordRelease",
    "blahut_arimoto",
    "exponential_mechanism",
    "information_bottleneck",
    "synthetic_rows",
]

_shown_in_notebooks(globals(), __all__)
