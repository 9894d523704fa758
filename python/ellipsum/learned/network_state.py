"""What a file keeps of a privacy network."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _validate
from ..guarantee import Guarantee
from ..tradeoff import MutualInformation
from . import mechanisms, networks
from .local_mechanism import unmeasured
from .storage import grouped, require

__all__ = ["OF_A_TABLE", "restore", "state_of"]

OF_A_TABLE = "this table of probabilities"

_SUM = 1e-9  # that rows of probabilities may be off


def state_of(made: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays by name, and plain values, of a fitted `PrivacyNetwork`."""
    if made.mechanism == "discrete":
        values: dict[str, Any] = {"leakage": made.leakage_, "distortion": made.distortion_}
        if hasattr(made, "observed_values_"):
            values["letters"] = made.observed_values_
        return {"channel": made.channel_}, values
    arrays = {f"net/{n}": w.detach().cpu().numpy() for n, w in made._made.state_dict().items()}
    arrays |= {
        "center_w": made._center_w,
        "scale_w": made._scale_w,
        "center_y": made._center_y,
    }
    values = {"scale_y": made._scale_y, "released": made._released}
    if hasattr(made, "distortion_"):
        values["distortion"] = [made.distortion_, made.distortion_error_]
    return arrays, values


def restore(made: Any, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> Guarantee:
    """Put `state_of` back; what is known of the release where the file states nothing more."""
    if made.mechanism == "discrete":
        return _restore_table(made, arrays["channel"], values)
    made._center_w, made._scale_w = arrays["center_w"], arrays["scale_w"]
    made._center_y = arrays["center_y"]
    made._scale_y = _validate.positive("scale_y", values["scale_y"])
    require(made._center_w.ndim == made._center_y.ndim == 1)
    require(made._scale_w.shape == made._center_w.shape and (made._scale_w > 0).all())
    made.n_features_in_, made._released = len(made._center_w), len(made._center_y)
    require(values["released"] == made._released)
    if "distortion" in values:
        cost, error = values["distortion"]
        made.distortion_ = _validate.finite("distortion", cost)
        made.distortion_error_ = _validate.nonnegative("distortion", error)
    start = made._tensor(np.zeros((made._released, made.n_features_in_)))
    made._made = mechanisms.build(
        made.mechanism,
        mechanisms.AffineMechanism(start, 1.0),
        made.hidden,
        made.components,
        networks.generator_of(0),
    )
    networks.fill(made._made, grouped("net", arrays))
    made._set_affine()
    return unmeasured()


def _restore_table(made: Any, channel: np.ndarray, values: dict[str, Any]) -> Guarantee:
    """A table of probabilities, whose leakage the file states: its law is not in the file."""
    require(channel.ndim == 2 and channel.size and (channel >= 0).all())
    require((np.abs(channel.sum(1) - 1) < _SUM).all())
    made.channel_, made.n_features_in_ = channel, 1
    made.leakage_ = _validate.nonnegative("leakage", values["leakage"])
    require(made.leakage_ <= np.log(min(channel.shape)) + _SUM)  # more no law gives
    made.distortion_ = _validate.finite("distortion", values["distortion"])
    if "letters" in values:
        letters = made.observed_values_ = np.array(values["letters"])
        require(letters.shape == channel.shape[:1] and np.array_equal(letters, np.unique(letters)))
    return MutualInformation(made.leakage_, made.leakage_, OF_A_TABLE)
