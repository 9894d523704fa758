"""Frames in and out, as scikit-learn's transformers take and give them, without scikit-learn."""

from __future__ import annotations

import importlib
import sys
from typing import Any, TypeVar

from numpy.typing import NDArray

from .. import _validate
from .._estimator import Estimator
from ..column_names import Columns, Names, frame_names

__all__ = ["Framed", "names_of"]

_Self = TypeVar("_Self", bound="Framed")


class Framed(Estimator):
    """An estimator whose ``transform`` meets columns by name and gives frames where it is asked.

    What scikit-learn reads is kept under its own names: ``set_output``, its global setting
    ``transform_output``, ``clone``, pipelines and column transformers do what they do with theirs.
    """

    def set_output(self: _Self, *, transform: str | None = None) -> _Self:
        """What ``transform`` gives: ``"default"`` (arrays), ``"pandas"`` or ``"polars"`` frames.

        ``None`` changes nothing. Rows of a pandas frame keep its index.
        """
        if transform is not None:
            _validate.one_of("transform", transform, ("default", "pandas", "polars"))
            self._sklearn_output_config = {"transform": transform}
        return self

    def _learn_columns(self, names: Names | None, count: int) -> None:
        self.columns_, self.n_features_in_ = names, count

    def _in_order(self, name: str, value: Any) -> Any:
        """A frame that has names with its columns in the fit's order; anything else as it is."""
        names, known = names_of(value), self.columns_
        order = None if known is None else Columns(known, "fit").order_of(names, name)
        return value if order is None else _validate.numbers(name, value)[:, order]

    def _framed(self, released: NDArray[Any], given: Any) -> Any:
        """The release of what was given, in the container that is asked for."""
        kind = self._container()
        if kind == "default":
            return released
        try:
            package = importlib.import_module(kind)
        except ImportError:
            raise ImportError(
                f"set_output(transform={kind!r}) needs {kind}: pip install {kind}", name=kind
            ) from None
        columns = self.get_feature_names_out().tolist()  # type: ignore[attr-defined]
        released = released.reshape(len(released), len(columns))
        if kind == "polars":
            return package.DataFrame(released, schema=columns, orient="row")
        known = isinstance(given, (package.DataFrame, package.Series))
        return package.DataFrame(released, given.index if known else None, columns)

    def _container(self) -> str:
        own = vars(self).get("_sklearn_output_config")
        if own is not None:
            return str(own["transform"])
        sklearn = sys.modules.get("sklearn")
        return "default" if sklearn is None else str(sklearn.get_config()["transform_output"])


def names_of(value: Any) -> Names | None:
    """Names of the columns of a pandas, Polars or Arrow table, if all are texts; else None."""
    labels = frame_names(value)
    if labels is None and hasattr(value, "__arrow_c_stream__"):
        named = hasattr(value, "column_names")  # Arrow's; its columns are the columns
        labels = tuple(value.column_names if named else getattr(value, "columns", ()))
    return labels if labels and all(isinstance(label, str) for label in labels) else None
