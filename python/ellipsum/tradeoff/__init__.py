"""Exact optima of releases under mutual-information privacy; erasure; attackers. No network.

None of this is differential privacy but `filter_mu`, which says so.
"""

from ..notebook import shown_in_notebooks as _shown_in_notebooks
from . import divergences
from .attackers import AttackResult, Audit, audit
from .discrete import DiscreteTradeoff
from .erase import LinearEraser, OracleShift
from .filters import filter_mu, scale_to_budget
from .gaussian import GaussianTradeoff, TradeoffCurve, gaussian_bottleneck
from .guarantee import EstimatedInformation, LinearErasure, MutualInformation
from .neighbors import ksg_information

__all__ = [
    "AttackResult",
    "Audit",
    "DiscreteTradeoff",
    "EstimatedInformation",
    "GaussianTradeoff",
    "LinearEraser",
    "LinearErasure",
    "MutualInformation",
    "OracleShift",
    "TradeoffCurve",
    "audit",
    "divergences",
    "filter_mu",
    "gaussian_bottleneck",
    "ksg_information",
    "scale_to_budget",
]

_shown_in_notebooks(globals(), __all__)
