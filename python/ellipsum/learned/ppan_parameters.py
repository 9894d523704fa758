"""Which parameters of a privacy network go together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from . import mechanisms

__all__ = ["check", "check_unseen"]

Array = NDArray[np.float64]

#: What a linear map leaves of a direction, below which it counts as told: 1e-6 of its spread
#: is 14 nats, and above the rounding of single precision.
_TOLD = 1e-6
#: Rows beyond those that a regression fits whatever the data: by chance it then leaves less than
#: _TOLD with a probability of _TOLD cubed.
_SPARE_ROWS = 3


_DEGENERATE = (
    "utility='information' has no meaningful optimum for continuous attributes where the release "
    "sees Y itself: the fractional part of a multiple of Y carries as much of I(Y; Z) as one likes "
    "at no leakage. Give W without Y (observe='given'), or use finite alphabets"
)

_SEEN = (
    "utility='information' needs a W that does not tell Y: on these rows a linear map of W gives "
    "Y, or a direction of it, to a millionth of its spread. Then there is no meaningful optimum: "
    "the fractional part of a multiple of Y carries as much of I(Y; Z) as one likes at no "
    "leakage. Leave Y out of W, put noise on W, or use finite alphabets"
)


def check_unseen(x: Array, y: Array, w: Array, *, law: bool = False) -> None:
    """Raise where W tells a continuous direction of Y that X does not determine.

    Labels, and numbers of few values, are no such directions: they carry their entropy at most.
    Nor is what X determines: it leaks as much as it carries. Where rows are too few for a
    regression on all of W, one on each of its columns is asked.

    Parameters
    ----------
    x, y, w : arrays (n, k), (n, r), (n, m)
    law : bool
        The rows stand for a Gaussian law whose moments they have.
    """
    spare = 0 if law else _SPARE_ROWS
    useful, sensitive, seen = _span(y), _span(x), _span(w)
    if useful.shape[1] + seen.shape[1] + spare < len(y) or law:
        pairs = [(useful, seen)]
    else:
        pairs = [(_span(a[:, None]), _span(b[:, None])) for a in y.T for b in w.T]
        pairs = pairs if len(y) > 2 + spare else []
    for wanted, known in pairs:
        missed = wanted - known @ (known.T @ wanted)
        _, size, turn = np.linalg.svd(missed, full_matrices=False)
        told = wanted @ turn[size <= _TOLD].T
        beside = told - sensitive @ (sensitive.T @ told)
        _, free, turn = np.linalg.svd(beside, full_matrices=False)
        if len(free) and free[0] > _TOLD and (law or _continuous(told @ turn[0])):
            raise ValueError(_SEEN)


def _span(rows: Array) -> Array:
    """An orthonormal basis (n, rank) of the centred columns."""
    centered = rows - rows.mean(0)
    size = np.abs(centered).max(0)
    live = size > 1e-14 * np.abs(rows).max(0)
    left, values, _ = np.linalg.svd(centered[:, live] / size[live], full_matrices=False)
    return np.asarray(left[:, values > 1e-9 * values.max(initial=0.0)])


def _continuous(values: Array) -> bool:
    """More than half of the values are different."""
    size = float(np.abs(values).max())
    return len(np.unique(np.round(values / size, 9))) > len(values) / 2


def check(made: Any) -> None:
    """Raise unless the parameters of this `PrivacyNetwork` say what it is to do."""
    _validate.one_of("mechanism", made.mechanism, (*mechanisms.MECHANISMS, "discrete"))
    _validate.one_of("sensitive", made.sensitive, ("numbers", "labels"))
    if made.sensitive == "labels" and made.observe == "full":
        raise ValueError("labels are not observed: give W, or release from Y")
    _validate.one_of("observe", made.observe, ("useful", "full", "given"))
    if not callable(made.utility):
        _validate.one_of("utility", made.utility, ("squared-error", "information"))
    finite = made.mechanism == "discrete"
    if made.utility == "information":
        if not finite and made.observe != "given":
            raise ValueError(_DEGENERATE)
        if made.multiplier is None or not finite:
            _validate.positive("least_information", made.least_information)
    elif callable(made.utility) and made.mechanism == "affine":
        raise ValueError("mechanism='affine' is trained on moments: squared error only")
    elif not finite and made.distortion is None:
        raise ValueError("distortion must be given: the largest mean cost of the release")
    elif finite and (made.distortion is None) == (made.multiplier is None):
        raise ValueError("give distortion or multiplier, one of the two")
    if made.distortion is not None:
        _validate.finite("distortion", made.distortion)
    if made.distortion is not None and not callable(made.utility) and not finite:
        _validate.nonnegative("distortion", made.distortion)
    if made.multiplier is not None:
        _validate.nonnegative("multiplier", made.multiplier)
    _validate.nonnegative("discriminator", made.discriminator)
    _validate.whole("components", made.components, least=1)
