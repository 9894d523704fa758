"""Least leakage for a given distortion, for finite alphabets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .alternating import Array, Law, Result
from .bottleneck import best_of, proved_gap
from .frames import Framed
from .guarantee import MutualInformation
from .least_leakage import least_cost, least_leakage
from .seeds import numpy_generator

__all__ = ["DiscreteTradeoff", "cost_table", "joint_table", "probabilities"]


class DiscreteTradeoff(Framed):
    """The channel from W to Z of least I(X; Z) at a price or a limit of the distortion.

    **Guarantees.** Under the table fitted, ``leakage_`` is I(X; Z) of ``channel_``, and with
    ``utility="distortion"`` no channel has an objective below ``objective_ - gap_`` (a proof by
    convexity). With ``utility="information"`` the problem is not convex: the channel is the
    best of several local optima, and ``objective_ - gap_`` is still a proved bound, but a loose
    one for more than three or four letters w. An average over people, not differential
    privacy; what a single letter w reveals at worst is `ellipsum.records.Channel.epsilon`
    (claim tradeoff-2).

    Parameters
    ----------
    multiplier : float, optional
        Minimise I(X; Z) + multiplier E d (or I(X; Z) - multiplier I(Y; Z)); or
    distortion : float, optional
        minimise I(X; Z) with E d at most this.
    utility : {"distortion", "information"}
        ``"information"``: X = W is the information bottleneck, Y = W the privacy funnel. It
        needs a multiplier.
    letters : int, optional
        Size of the output alphabet for ``"information"``; one more than n_w if left out.
    restarts : int
        Random starts for ``"information"``.
    seed : int, 32 bytes, numpy Generator or None
        Of those starts.

    Attributes
    ----------
    channel_ : array (n_w, n_z)
        P(z | w); rows of letters w that never occur are the least costly letter.
    objective_, leakage_, gap_ : float, nats
    relevance_ : float, nats
        I(Y; Z), for ``"information"``.
    distortion_ : float
    multiplier_ : float
        The price of distortion at the solution: minus the slope of the curve.
    guarantee_ : MutualInformation

    Source: Tripathy, Wang & Ishwar, problem (1); the steps of ``ellipsum.tradeoff.alternating``.
    """

    def __init__(
        self,
        multiplier: float | None = None,
        distortion: float | None = None,
        utility: str = "distortion",
        letters: int | None = None,
        restarts: int = 8,
        seed: Any = 0,
    ) -> None:
        self.multiplier = multiplier
        self.distortion = distortion
        self.utility = utility
        self.letters = letters
        self.restarts = restarts
        self.seed = seed

    def fit(self, p_xw: ArrayLike, cost: ArrayLike) -> DiscreteTradeoff:
        """Solve for a law that is known.

        Parameters
        ----------
        p_xw : array (n_x, n_w)
            Joint probabilities of what is sensitive and what the release sees.
        cost : array (n_w, n_z)
            d(w, z) = E[d(Y, z) | w]; for ``utility="information"`` the joint probabilities of Y
            and W, (n_y, n_w).

        Raises
        ------
        ValueError
            If the table is no law, or no channel costs so little.
        """
        _validate.one_of("utility", self.utility, ("distortion", "information"))
        if (self.multiplier is None) == (self.distortion is None):
            raise ValueError("give multiplier or distortion, one of the two")
        joint = probabilities("p_xw", p_xw)
        for name in ("sensitive_values_", "observed_values_"):  # letters of an earlier fit
            vars(self).pop(name, None)
        if self.utility == "information":
            return self._fit_information(joint, probabilities("p_yw", cost))
        return self._fit_distortion(joint, cost_table(cost, joint.shape[1]))

    def fit_joint(
        self, p_xy: ArrayLike, cost: ArrayLike, observe: str = "useful"
    ) -> DiscreteTradeoff:
        """Solve for the law of (X, Y), with W = Y or W = (X, Y).

        Parameters
        ----------
        p_xy : array (n_x, n_y)
        cost : array (n_y, n_z), d(y, z)
        observe : {"useful", "full"}
            For ``"full"`` the letters w are the pairs, y running fastest.
        """
        joint = probabilities("p_xy", p_xy)
        _validate.one_of("observe", observe, ("useful", "full"))
        table = cost_table(cost, joint.shape[1])
        if observe == "useful":
            return self.fit(joint, table)
        x, y = joint.shape
        pairs = np.zeros((x, x, y))
        pairs[np.arange(x), np.arange(x)] = joint
        return self.fit(pairs.reshape(x, x * y), np.tile(table, (x, 1)))

    def fit_samples(self, x: ArrayLike, w: ArrayLike, cost: ArrayLike) -> DiscreteTradeoff:
        """Solve for the frequencies of samples.

        The optimum for a table of frequencies leaks a little more under the true law than
        ``leakage_`` says: 1,000 samples of 100 cells cost 0.015 to 0.02 nats, 10,000 about 0.002.

        Parameters
        ----------
        x, w : array (n,), labels
        cost : array (n_w, n_z), rows in the sorted order of the labels w
        """
        table, sensitive, observed = joint_table(x, w)
        self.fit(table, cost)
        self.sensitive_values_, self.observed_values_ = sensitive, observed
        return self

    def transform(self, w: ArrayLike, *, seed: Any = None) -> Any:
        """Draw a release for each observed letter.

        Parameters
        ----------
        w : array (n,)
            Row numbers of ``channel_``, or labels after `fit_samples`.
        seed : int, 32 bytes, numpy Generator or None

        Returns
        -------
        array (n,), column numbers of ``channel_``; a frame of one column after
        ``set_output(transform="pandas")``
        """
        self._check_fitted()
        if w is None:
            raise ValueError("w must be given: the observed letters, or labels, that are released")
        values = getattr(self, "observed_values_", np.arange(len(self.channel_)))
        rows = _validate.places(w, values)
        if rows is None:
            raise ValueError("w must be a sequence of letters of the fitted alphabet")
        ends = np.cumsum(self.channel_, 1)
        ends /= ends[:, -1:]
        drawn = numpy_generator(seed).random(len(rows))
        return self._framed((ends[rows] <= drawn[:, None]).sum(1), w)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """released0"""
        self._check_fitted()
        return np.array(["released0"], dtype=object)

    def _fit_distortion(self, joint: Array, cost: Array) -> DiscreteTradeoff:
        law = _law(joint, cost)
        if self.multiplier is not None:
            price = _validate.nonnegative("multiplier", self.multiplier)
            found = least_leakage(law, multiplier=price)
        else:
            budget, floor = _validate.finite("distortion", self.distortion), least_cost(law)
            if budget < floor - 1e-12 * max(1.0, abs(floor)):
                raise ValueError(f"distortion must be at least {floor:.9g}, got {budget:.9g}")
            found = least_leakage(law, budget=budget)
        self._set(joint, cost, found, found.gap)
        return self

    def _fit_information(self, joint: Array, useful: Array) -> DiscreteTradeoff:
        if self.multiplier is None:
            raise ValueError(
                "utility='information' needs a multiplier: the channels of at least a given "
                "I(Y; Z) are no convex set, and no limit on it can be met with a certificate"
            )
        rows = joint.shape[1]
        if useful.shape[1] != rows or np.abs(useful.sum(0) - joint.sum(0)).max() > 1e-9:
            raise ValueError("p_xw and p_yw must have the same law of W")
        letters = rows + 1 if self.letters is None else self.letters
        _validate.whole("letters", letters, least=1)
        seen = joint.sum(0) > 0
        law = _law(joint, np.zeros((rows, letters)))
        law = law._replace(
            useful=(useful / np.where(seen, useful.sum(0), 1.0))[:, seen],
            weight=_validate.nonnegative("multiplier", self.multiplier),
        )
        found = best_of(law, self.restarts, self.seed)
        self._set(joint, np.zeros((rows, letters)), found, proved_gap(law, found))
        return self

    def _set(self, joint: Array, cost: Array, found: Result, gap: float) -> None:
        channel = np.zeros(cost.shape)
        channel[np.arange(len(cost)), cost.argmin(1)] = 1.0
        channel[joint.sum(0) > 0] = np.exp(found.log_channel)
        self.channel_ = channel
        self.objective_, self.leakage_ = found.objective, max(0.0, found.leakage)
        self.relevance_, self.distortion_ = found.relevance, found.distortion
        self.multiplier_, self.gap_ = found.multiplier, gap
        self.guarantee_ = MutualInformation(self.leakage_, gap, "this table of probabilities")


def joint_table(x: ArrayLike, w: ArrayLike) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    """Frequencies of pairs of labels, and the sorted labels of rows and columns."""
    rows, i = _validate.classes("x", x)
    columns, j = _validate.classes("w", w)
    if i.shape != j.shape or not i.size:
        raise ValueError("x and w must be sequences of labels of the same length")
    table = np.zeros((len(rows), len(columns)))
    np.add.at(table, (i, j), 1.0)
    return table / len(i), rows, columns


def _law(joint: Array, cost: Array) -> Law:
    observed = joint.sum(0)
    seen, known = observed > 0, joint.sum(1) > 0
    given = joint[np.ix_(known, seen)] / observed[seen]
    return Law(observed[seen], given, cost[seen])


def probabilities(name: str, value: ArrayLike) -> Array:
    """A table of joint probabilities; refused unless it is one."""
    table = _validate.numbers(name, value)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all() or (table < 0).any():
        raise ValueError(f"{name} must be a table of probabilities, none below 0")
    total = float(table.sum())
    if abs(total - 1) > 1e-6:
        raise ValueError(f"{name} must sum to 1, got {total:.9g}")
    return table / total


def cost_table(value: ArrayLike, rows: int) -> Array:
    """A finite table of costs with so many rows."""
    cost = _validate.numbers("cost", value)
    if cost.ndim != 2 or len(cost) != rows or not cost.shape[1] or not np.isfinite(cost).all():
        raise ValueError(f"cost must be a finite table of {rows} rows, got shape {cost.shape}")
    return cost
