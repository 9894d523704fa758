"""Twin of ``sides.hpp``: both tails at one q, of which the smaller one is computed."""

from __future__ import annotations

import math
from typing import NamedTuple

from .form_normal import LOG2
from .jit import jit

_LARGEST_COMPLEMENTED = 0.9  # up to here 1 - p costs one digit at most


class Tail(NamedTuple):
    """The smaller tail and the density, with their estimated relative errors."""

    log_small: float
    log_pdf: float
    error: float
    pdf_error: float
    upper: bool  # the smaller tail is P(Q > q)
    nodes: int


@jit
def is_small(tail):
    """Is it the smaller one of the two?"""
    return tail.log_small < -LOG2


@jit
def is_complemented(tail):
    """Does its complement keep the digits?"""
    return math.exp(tail.log_small) < _LARGEST_COMPLEMENTED


@jit
def complement(tail):
    """The other tail at the same q."""
    large = math.exp(tail.log_small)
    error = tail.error * large / (1 - large)
    return Tail(math.log1p(-large), tail.log_pdf, error, tail.pdf_error, not tail.upper, tail.nodes)


@jit
def more_nodes(tail, nodes):
    """The same with the nodes of what was tried before it."""
    return Tail(
        tail.log_small, tail.log_pdf, tail.error, tail.pdf_error, tail.upper, tail.nodes + nodes
    )
