"""scikit-learn's conventions for what has a ``fit``, without scikit-learn."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimator", "NotFitted"]

_Self = TypeVar("_Self", bound="Estimator")


class NotFitted(ValueError, AttributeError):
    """Something was asked of an estimator before ``fit``; scikit-learn's has the same bases."""


class Estimator:
    """Parameters are the constructor's arguments; what is learned ends with an underscore.

    ``clone``, pipelines and searches of scikit-learn ask for no more than this.
    """

    #: The attribute that every kind of fit sets last.
    _learned = "guarantee_"
    _how_to_fit = "call fit first"

    @classmethod
    def _names(cls) -> list[str]:
        signature = inspect.signature(cls.__init__)
        given = (p for p in signature.parameters.values() if p.kind is not p.VAR_POSITIONAL)
        return [p.name for p in given if p.name != "self" and p.kind is not p.VAR_KEYWORD]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, as they were given."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self: _Self, **params: Any) -> _Self:
        """Change parameters; what was fitted stays as it was until the next ``fit``."""
        for name, value in params.items():
            if name not in self._names():
                raise ValueError(f"{name!r} is no parameter of {type(self).__name__}")
            setattr(self, name, value)
        return self

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns that were fitted, as scikit-learn has them; none without names."""
        if vars(self).get("columns_") is None:
            raise AttributeError("fitted without names, or not at all")
        return np.array(vars(self)["columns_"], dtype=object)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"{type(self).__name__} is not fitted: {self._how_to_fit}")

    def __sklearn_is_fitted__(self) -> bool:
        return self._learned in vars(self)

    def __sklearn_tags__(self) -> Any:
        """Called by scikit-learn alone, which is therefore there."""
        from sklearn.utils import Tags, TargetTags, TransformerTags

        target, transformer = TargetTags(required=False), TransformerTags()
        return Tags(estimator_type=None, target_tags=target, transformer_tags=transformer)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.endswith("_") and not name.startswith("_"):
                self._check_fitted()
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        given = {k: v for k, v in self.get_params().items() if k != "seed" and v is not None}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"
