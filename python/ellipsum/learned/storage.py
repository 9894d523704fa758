"""Save and load without pickle: arrays in a safetensors file, everything else as JSON in it."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .. import _validate
from ..guarantee import Guarantee
from ..tradeoff import EstimatedInformation, MutualInformation
from ..tradeoff.frames import names_of
from . import networks

__all__ = ["Learned", "Noisy", "dump", "flat", "grouped", "load", "rebuild", "require"]

_FORMAT = 1
#: Guarantees that a file states. Others follow from the weights, or are nobody's to state.
_STATED = (MutualInformation, EstimatedInformation)
_DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,  # of PyTorch, for a device it was not built for
    RuntimeError,
    np.linalg.LinAlgError,
)
_DAMAGED = "the file is damaged, or its device is not here: fit and save again, or give device"
_KINDS: dict[str, type[Learned]] = {}


class _Refused(Exception):
    """A file that is whole, and why it is not taken."""


class Learned(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What learned releases share: scikit-learn's conventions, and a file."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _KINDS[cls.__name__] = cls

    def _rows(self, X: ArrayLike, *, fitting: bool = False) -> NDArray[np.float64]:
        """Rows (n, d) as scikit-learn checks them, whose own messages would quote cells."""
        least = 2 if fitting else 1
        if scipy.sparse.issparse(X):
            return check_array(X, estimator=self, input_name="X")  # type: ignore[no-any-return]
        rows = _validate.numbers("X", X)
        if rows.ndim != 2:
            raise ValueError(
                f"X must have two dimensions, (rows, columns), got {rows.ndim}. Reshape your data: "
                ".reshape(1, -1) of one row, .reshape(-1, 1) of one column"
            )
        self._met_names(X, fitting=fitting)
        rows = check_array(rows, ensure_min_samples=least, estimator=self, input_name="X")
        if fitting:
            networks.check_spread("X", rows)
        return np.asarray(rows)

    def _learn_names(self, names: tuple[str, ...] | None) -> None:
        """Keep the columns' names, where each has one, or that there are none."""
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names is not None:
            self.feature_names_in_: NDArray[np.object_] = np.array(names, dtype=object)

    def _same_names(self, name: str, value: Any) -> None:
        """Refuse a frame with other columns than those of ``fit``, or in another order."""
        known, names = getattr(self, "feature_names_in_", None), names_of(value)
        if known is not None and names is not None and list(names) != list(known):
            raise ValueError(f"{name} must have the columns of fit, in their order")

    def _met_names(self, X: Any, *, fitting: bool = False) -> None:
        """Number and names of the columns are learned, or are those of ``fit``."""
        validate_data(self, X, reset=fitting, skip_check_array=True)

    def _more_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays by name, and plain values: all that was fitted."""
        raise NotImplementedError

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write parameters and weights to one safetensors file (JSON in its header, no pickle).

        What was measured or evaluated is kept, too, as the file states it; a proof is computed
        from the weights again.
        Weights that were trained on people's data tell of these people: treat the file so.
        """
        check_is_fitted(self)
        arrays, header = dump(self)
        kept = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        text = json.dumps({"format": _FORMAT} | header)
        save_file(kept, str(path), metadata={"ellipsum": text})


class Noisy(Learned):
    """A release with fresh noise that is trained to hide labels: what scikit-learn should know."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags


def load(path: str | Path, *, device: str | None = None) -> Any:
    """Read what ``save`` wrote: an object of the same class and parameters, fitted.

    Parameters
    ----------
    path : str or Path
    device : str, optional
        In place of the one that it was fitted on, which may not be here.

    Raises
    ------
    ValueError
        For a file that this package did not write, or that was damaged or changed so that its
        parts do not go together.
    """
    try:
        with safe_open(str(path), framework="numpy") as file:
            text = (file.metadata() or {}).get("ellipsum")
            arrays = {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError:
        text = None
    except _DAMAGE:  # a kind of numbers that NumPy does not have
        raise ValueError(_DAMAGED) from None
    if text is None:
        raise ValueError("the file was not written by ellipsum.learned")
    try:
        header = json.loads(text)
        if header.get("format") == _FORMAT:
            with np.errstate(all="ignore"):
                require(all(a.dtype.kind == "f" and np.isfinite(a).all() for a in arrays.values()))
                return rebuild(arrays, header if device is None else _moved(header, device))
    except _Refused as error:
        raise ValueError(str(error)) from None
    except _DAMAGE:
        raise ValueError(_DAMAGED) from None
    raise ValueError("the file is of another version of ellipsum.learned")


def require(right: Any) -> None:
    """Raise where the parts of a file do not go together: `load` says that it is damaged."""
    if not right:
        raise ValueError("the parts of the file do not go together")


def _moved(header: Any, device: str) -> Any:
    """With another device, in all parts."""
    if isinstance(header, list):
        return [_moved(part, device) for part in header]
    if not isinstance(header, dict):
        return header
    return {k: device if k == "device" else _moved(part, device) for k, part in header.items()}


def dump(thing: Learned) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays by name, and everything else as plain values; parameters may be of this kind, too."""
    arrays: dict[str, np.ndarray] = {}
    values = None
    if hasattr(thing, "n_features_in_"):
        arrays, fitted = thing._more_state()
        values = plain(fitted)
    params: dict[str, Any] = {}
    for name, value in thing.get_params(deep=False).items():
        if isinstance(value, Learned):
            more, inner = dump(value)
            arrays = arrays | flat(f"param.{name}", more)
            params[name] = {"learned": inner}
        else:
            params[name] = plain(value)
    header = {"class": type(thing).__name__, "params": params, "values": values}
    found = getattr(thing, "guarantee_", None)
    if isinstance(found, _STATED):
        header["guarantee"] = plain(found.to_dict())
    if hasattr(thing, "feature_names_in_"):
        header["names"] = plain(thing.feature_names_in_)
    return arrays, header


def rebuild(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Learned:
    """What `dump` took apart."""
    if header["class"] not in _KINDS:
        raise _Refused("the file holds no class of ellipsum.learned")
    params = dict(header["params"])
    for name, value in params.items():
        if isinstance(value, dict) and "learned" in value:
            params[name] = rebuild(grouped(f"param.{name}", arrays), value["learned"])
        elif isinstance(value, list):
            params[name] = tuple(value)
    made = _KINDS[header["class"]](**params)
    if header["values"] is not None:
        made._restore(arrays, header["values"])
    if "guarantee" in header and isinstance(getattr(made, "guarantee_", None), _STATED):
        made.guarantee_ = _stated(header["guarantee"], made)  # type: ignore[attr-defined]
    if "names" in header:
        names = header["names"]
        require(isinstance(names, list) and len(names) == getattr(made, "n_features_in_", None))
        require(all(isinstance(name, str) for name in names))
        made.feature_names_in_ = np.array(names, dtype=object)
    return made


def _stated(found: Any, made: Any) -> Guarantee:
    """A finding as a file states it. A proof is never read: it is computed from the weights.

    What is exact is so of an affine map under a law, which the file does not have, and of a table.
    """
    mechanism = getattr(made, "mechanism", None)
    with suppress(*_DAMAGE):
        if found["kind"] == MutualInformation.kind and mechanism in ("affine", "discrete"):
            leakage, gap = _nats(found["leakage"]), _nats(found["gap"])
            require(gap < math.inf or leakage == math.inf)
            exact = MutualInformation(leakage, gap, str(found["model"]))
            require(mechanism == "affine" or exact == made.guarantee_)
            return exact
        if found["kind"] == EstimatedInformation.kind and mechanism != "discrete":
            lower, error = _nats(found["lower"]), _nats(found["standard_error"])
            require(isinstance(found["attackers"], list) and max(lower, error) < math.inf)
            names = tuple(str(name) for name in found["attackers"])
            n_test = _validate.whole("n_test", found["n_test"])
            return EstimatedInformation(lower, error, names, n_test)
    raise _Refused("the file states a guarantee that no file can state")


def _nats(value: Any) -> float:
    """0 or above; infinite where a release tells an attribute exactly, never NaN."""
    require(isinstance(value, (int, float)) and value >= 0)
    return float(value)


def plain(value: Any) -> Any:
    """What JSON can hold; a generator is a seed that is gone."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if isinstance(value, (np.random.Generator, np.random.BitGenerator)):
        return None
    kind = type(value).__name__
    raise TypeError(f"a parameter or label of type {kind} cannot be saved: give numbers or text")


def flat(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Names with a prefix."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def grouped(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Those of a prefix, without it."""
    start = f"{prefix}/"
    return {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
