"""Which parameters of a privacy network go together."""

from __future__ import annotations

from typing import Any

from .. import _validate
from . import mechanisms

__all__ = ["check"]

_DEGENERATE = (
    "utility='information' has no meaningful optimum for continuous attributes where the release "
    "sees Y itself: the fractional part of a multiple of Y carries as much of I(Y; Z) as one likes "
    "at no leakage. Give W without Y (observe='given'), or use finite alphabets"
)


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
