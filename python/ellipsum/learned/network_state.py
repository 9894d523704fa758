"""What a file keeps of a privacy network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..guarantee import Guarantee
from ..tradeoff import MutualInformation
from . import mechanisms, networks
from .local_mechanism import unmeasured
from .storage import grouped

__all__ = ["OF_A_TABLE", "restore", "state_of"]

OF_A_TABLE = "this table of probabilities"


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
        made.channel_, made.n_features_in_ = arrays["channel"], 1
        made.leakage_, made.distortion_ = values["leakage"], values["distortion"]
        if "letters" in values:
            made.observed_values_ = np.array(values["letters"])
        return MutualInformation(made.leakage_, made.leakage_, OF_A_TABLE)
    made._center_w, made._scale_w = arrays["center_w"], arrays["scale_w"]
    made._center_y, made._scale_y = arrays["center_y"], values["scale_y"]
    made.n_features_in_, made._released = len(made._center_w), values["released"]
    if "distortion" in values:
        made.distortion_, made.distortion_error_ = values["distortion"]
    start = made._tensor(np.zeros((made._released, made.n_features_in_)))
    made._made = mechanisms.build(
        made.mechanism,
        mechanisms.AffineMechanism(start, 1.0),
        made.hidden,
        made.components,
        networks.generator_of(0),
    )
    weights = {n: torch.as_tensor(a) for n, a in grouped("net", arrays).items()}
    made._made.load_state_dict(weights)
    made._set_affine()
    return unmeasured()
