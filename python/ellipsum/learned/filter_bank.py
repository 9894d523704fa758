"""One encoder, and a filter for each user, who chooses what to hide and what to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .. import _validate
from ..rows.arrays import numeric_rows
from ..tradeoff import Audit, audit
from ..tradeoff.frames import names_of
from ..tradeoff.seeds import short_number_of
from . import networks
from .generative_filter import GenerativeFilter
from .storage import Learned, dump, flat, grouped, rebuild, require

__all__ = ["FilterBank", "UserAudit"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class UserAudit:
    """What attackers learn of one label of one user's records.

    Parameters
    ----------
    pooled : Audit, by attackers trained on the releases of all users
    informed : Audit, by attackers who know the user and train on that user's releases alone
    """

    pooled: Audit
    informed: Audit


class FilterBank(Learned):
    """A `GenerativeFilter` for each user, on the latents of one encoder.

    **Guarantees.** Those of each user's filter, given the weights; an attacker is taken to know
    which filter a release came from. *What a user chose to hide is released with it.*

    Parameters
    ----------
    filter : GenerativeFilter
        Copied for every user.
    encoder : VariationalEncoder or None
        Fitted; None if rows are latents already.

    Attributes
    ----------
    filters_ : dict of user to GenerativeFilter
    """

    def __init__(self, filter: GenerativeFilter | None = None, encoder: Any = None) -> None:
        self.filter = filter
        self.encoder = encoder

    def fit(
        self, X: ArrayLike, users: ArrayLike, labels: Mapping[Any, tuple[ArrayLike, ArrayLike]]
    ) -> FilterBank:
        """Train each user's filter on that user's rows.

        Parameters
        ----------
        X : array (n, d)
        users : array (n,), whose row it is
        labels : mapping of user to (private, useful), each an array (n,) over *all* rows
        """
        if hasattr(self, "filters_"):
            del self.filters_
        latents, owners = self._latents(X), np.asarray(users)
        if owners.shape != (len(latents),) or _set_of(owners) != set(labels):
            raise ValueError("users must name one user for each row, and labels every user")
        self.filters_: dict[Any, Any] = {}
        for user, pair in labels.items():
            own = owners == user
            base = GenerativeFilter(budget=1.0) if self.filter is None else clone(self.filter)
            hidden, kept = (None if label is None else np.asarray(label) for label in pair)
            if any(label is not None and label.shape != owners.shape for label in (hidden, kept)):
                raise ValueError(f"labels must be of all {len(owners)} rows, for each user")
            hidden, kept = (None if label is None else label[own] for label in (hidden, kept))
            self.filters_[user] = base.fit(latents[own], hidden, kept)
        self.n_features_in_ = np.asarray(X).shape[1]
        self._learn_names(names_of(X))
        return self

    def transform(
        self,
        X: ArrayLike,
        users: ArrayLike,
        labels: Mapping[Any, ArrayLike] | None = None,
        *,
        seed: Any = None,
    ) -> Array:
        """Release each row by its user's filter.

        Parameters
        ----------
        labels : mapping of user to private labels (n,), where the filters use labels
        seed : int, 32 bytes, numpy Generator or None
            For tests: with a seed nothing is private.
        """
        check_is_fitted(self)
        latents, owners = self._latents(X, proved=self._proved), np.asarray(users)
        if owners.shape != (len(latents),):
            raise ValueError("users must name one user for each row")
        if not _set_of(owners) <= set(self.filters_):
            raise ValueError("users must be known from fit")
        released = np.empty_like(latents)
        base = None if seed is None else networks.number_of(seed)
        for number, (user, own_filter) in enumerate(self.filters_.items()):
            own = owners == user
            if own.any():
                private = None if labels is None else _of_rows(labels.get(user), own)
                own_seed = None if base is None else base * len(self.filters_) + number
                released[own] = own_filter.transform(latents[own], private, seed=own_seed)
        return released

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """filtered0, filtered1, ...: a column for each latent."""
        check_is_fitted(self)
        first: Array = next(iter(self.filters_.values())).get_feature_names_out()
        return first

    def guarantee(self, user: Any) -> Any:
        """What a user's filter promises."""
        check_is_fitted(self)
        if user not in self.filters_:
            raise ValueError("user must be known from fit")
        return self.filters_[user].guarantee_

    def measure(
        self,
        X: ArrayLike,
        users: ArrayLike,
        wanted: ArrayLike,
        user: Any,
        *,
        labels: Mapping[Any, ArrayLike] | None = None,
        test: ArrayLike | None = None,
        draws: int = 4,
        seed: Any = 0,
        attackers: Sequence[str] = ("linear", "mlp", "rbf", "knn"),
    ) -> UserAudit:
        """What attackers learn of a label of one user's held-out rows, pooled and informed.

        Parameters
        ----------
        wanted : array (n,), the label that is attacked
        test : array of int, optional
            Rows held out (of all users); by default two in five.
        seed : int, 32 bytes, numpy Generator or None
        """
        owners, given = np.asarray(users), np.asarray(wanted)
        seed = short_number_of(seed)
        if user not in self.filters_:
            raise ValueError("user must be known from fit")
        held = np.zeros(len(owners), dtype=bool)
        if test is None:
            held[np.random.default_rng(seed).permutation(len(owners))[: 2 * len(owners) // 5]] = 1
        else:
            held[np.asarray(test)] = True
        released = np.array([self.transform(X, users, labels, seed=seed + i) for i in range(draws)])
        own = owners == user
        options: dict[str, Any] = {"attackers": attackers, "seed": seed}
        # pooled: nobody's held-out rows but this user's are in, and these only to be tested on
        pool = ~held | own
        pooled = audit(
            released[:, pool], given[pool], test=np.flatnonzero((held & own)[pool]), **options
        )
        informed = audit(released[:, own], given[own], test=np.flatnonzero(held[own]), **options)
        return UserAudit(pooled, informed)

    @property
    def _proved(self) -> bool:
        return any(one.guarantee_.is_private for one in self.filters_.values())

    def _latents(self, X: ArrayLike, *, proved: bool = False) -> Array:
        if self.encoder is not None and proved:
            return np.asarray(self.encoder.encoded_whatever(X))
        if self.encoder is not None:
            return np.asarray(self.encoder.transform(X))
        if hasattr(self, "filters_"):
            self._same_names("X", X)
        if proved:  # no error depends on a value
            return _validate.doubles(numeric_rows("X", X, d=self.n_features_in_))
        rows = _validate.numbers("X", X)
        if rows.ndim != 2:
            raise ValueError("X must have two dimensions, (rows, columns)")
        return rows

    def _more_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays: dict[str, np.ndarray] = {}
        parts = []
        for number, (user, own) in enumerate(self.filters_.items()):
            more, header = dump(own)
            arrays |= flat(f"user{number}", more)
            parts.append({"user": user, "filter": header})
        return arrays, {"users": parts, "d": self.n_features_in_}

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.filters_ = {
            part["user"]: rebuild(grouped(f"user{number}", arrays), part["filter"])
            for number, part in enumerate(values["users"])
        }
        self.n_features_in_ = _validate.whole("d", values["d"], least=1)
        width = self.n_features_in_
        if self.encoder is not None:
            require(getattr(self.encoder, "n_features_in_", None) == width)
            width = self.encoder.latent_dim
        made = self.filters_.values()
        require(made and all(isinstance(one, GenerativeFilter) for one in made))
        require(all(one.n_features_in_ == width for one in made))


def _set_of(users: NDArray[Any]) -> set[Any]:
    try:
        return set(np.unique(users))
    except TypeError:
        raise ValueError("users must be of one type, none of them missing") from None


def _of_rows(labels: ArrayLike | None, rows: NDArray[np.bool_]) -> list[Any]:
    """Labels of these rows, each as it is: in an array one of another type would change all."""
    if labels is None:
        raise ValueError("labels must be given for each user whose filter uses them")
    listed = labels if isinstance(labels, (list, tuple)) else np.asarray(labels)
    if len(listed) != len(rows):
        raise ValueError(f"labels must be of all {len(rows)} rows, for each user")
    return [listed[i] for i in np.flatnonzero(rows)]
