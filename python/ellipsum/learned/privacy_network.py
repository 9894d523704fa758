"""Privacy-preserving adversarial networks (PPAN), with the optimum beside what was learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .. import _validate
from ..tradeoff import MutualInformation
from ..tradeoff.discrete import cost_table, joint_table, probabilities
from . import (
    finite_network,
    leakage,
    mechanisms,
    network_state,
    networks,
    ppan_parameters,
    ppan_training,
)
from .local_mechanism import unmeasured
from .storage import Learned

__all__ = ["PrivacyNetwork"]

Array = NDArray[np.float64]

_STEPS = 400  # of the affine map
_TABLE_STEPS, _TABLE_RATE = 2000, 0.3
_NETWORK_STEPS = 1000


class PrivacyNetwork(Learned):
    """The release of least leakage at a given distortion, learned against an adversary.

    **Guarantees.** None of differential privacy. For ``"affine"`` and a Gaussian law that is known
    `evaluate` gives the exact leakage; for ``"discrete"`` it is exact under the table; for all
    others `measure` gives estimates. Where :class:`ellipsum.tradeoff.GaussianTradeoff` or
    ``DiscreteTradeoff`` apply they are faster and certified: compare with them.

    Parameters
    ----------
    mechanism : {"universal", "affine", "gaussian", "mixture", "discrete"}
        A network of data and seed, on top of an affine map; the affine map alone; a conditional
        Gaussian, or a mixture of them; a table for finite alphabets.
    sensitive : {"numbers", "labels"}
        What X is. Labels are put to a classifier, for the cross-entropy that they leave.
    observe : {"useful", "full", "given"}
        What the release is computed from: Y, (X, Y), or a W of its own.
    distortion : float
        Largest mean cost, in the squared unit of Y; of ``"discrete"``, of its cost.
    multiplier : float
        In its place, for ``"discrete"``: minimise I(X; Z) + multiplier E d.
    utility : {"squared-error", "information"} or callable
        ``"information"``: I(Y; Z) at least ``least_information``. A callable takes tensors y and z
        of shape (n, k), in the data's unit, and returns n costs.
    least_information : float, nats
        Of I(Y; Z), Gaussian; ``"affine"`` keeps it, or refuses more than what is observed tells.
    discriminator : float
        Weight of a discriminator that wants releases to look like Y (least squares); 0 for none.
    components : int, of ``"mixture"``
    hidden : sequence of int
    steps : int or None
        Of the network; 1000, 400 for ``"affine"``, 2000 for ``"discrete"``, if left out.
    batch_size : int
    learning_rate : float
    seed : int, 32 bytes, numpy Generator or None
    device : str
    progress : bool

    Attributes
    ----------
    matrix_, noise_root_, offset_ : arrays, of ``"affine"``
        The release is ``offset_`` + ``matrix_`` w + ``noise_root_`` u, in the data's unit.
    channel_ : array (n_w, n_z), of ``"discrete"``
    distortion_, distortion_error_ : float
        Mean cost of the rows, and the standard error with which it stands for that of their law: a
        limit on a law that is known through n rows alone is kept to that. Not with information.
    guarantee_ : MutualInformation or EstimatedInformation

    Source: Tripathy, Wang & Ishwar, with the limit on the *mean* distortion, Gaussian seeds and an
    adversary whose linear part is exact (docs/learned.md).
    """

    def __init__(
        self,
        mechanism: str = "universal",
        *,
        sensitive: str = "numbers",
        observe: str = "useful",
        distortion: float | None = None,
        multiplier: float | None = None,
        utility: str | Callable[[Any, Any], Any] = "squared-error",
        least_information: float | None = None,
        discriminator: float = 0.0,
        components: int = 4,
        hidden: Sequence[int] = (32, 32),
        steps: int | None = None,
        batch_size: int = 1000,
        learning_rate: float = 1e-2,
        seed: Any = 0,
        device: str = "cpu",
        progress: bool = False,
    ) -> None:
        self.mechanism = mechanism
        self.sensitive = sensitive
        self.observe = observe
        self.distortion = distortion
        self.multiplier = multiplier
        self.utility = utility
        self.least_information = least_information
        self.discriminator = discriminator
        self.components = components
        self.hidden = hidden
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed
        self.device = device
        self.progress = progress

    # ---- training --------------------------------------------------------------------

    def fit(self, X: ArrayLike, Y: ArrayLike, W: ArrayLike | None = None) -> PrivacyNetwork:
        """Train on rows.

        Parameters
        ----------
        X : array (n, k), sensitive; for ``"discrete"`` and ``sensitive="labels"`` labels (n,)
        Y : array (n, r), useful; for ``"discrete"`` labels (n,), with cost 1 for another label
        W : array (n, m), for ``observe="given"``: what the release is computed from. For
            ``utility="information"`` it must not tell a continuous Y (refused where Y is linear
            in W).
        """
        if self.mechanism == "discrete":
            return self._fit_labels(X, Y, W)
        return self._fit_rows(X, Y, W)

    def _fit_rows(
        self, X: ArrayLike, Y: ArrayLike, W: ArrayLike | None, *, law: bool = False
    ) -> PrivacyNetwork:
        """``law``: the rows stand for a Gaussian law, whose moments they have."""
        ppan_parameters.check(self)
        y = networks.finite_rows("Y", Y)
        x, labels = ppan_training.sensitive_columns(self.sensitive, X, len(y), self.device)
        w = self._observed(x, y, W)
        ppan_training.check_rows(x, y, w)
        if self.utility == "information":
            ppan_parameters.check_unseen(x, y, w, law=law)
        problem = self._problem(x, y, w)._replace(labels=labels)
        if self.mechanism == "affine":
            ppan_training.check_limit(problem)
        size = y.shape[1]
        steps = _STEPS if self.steps is None or self.mechanism != "affine" else self.steps
        affine = ppan_training.train_affine(problem, size, steps, self.progress)
        generator = problem.seeds
        self._made = mechanisms.build(
            self.mechanism, affine, self.hidden, self.components, generator
        )
        if self.mechanism != "affine":
            ppan_training.train_network(
                problem,
                self._made,
                steps=_NETWORK_STEPS if self.steps is None else self.steps,
                batch_size=_validate.whole("batch_size", self.batch_size, least=1),
                rate=self.learning_rate / 2,
                progress=self.progress,
            )
        networks.check_trained(*self._made.parameters())
        self.n_features_in_, self._released = w.shape[1], size
        self._learn_names(ppan_training.seen_names(self.observe, X, Y, W))
        self._set_affine()
        if not problem.information:
            self.distortion_, self.distortion_error_ = ppan_training.mean_cost(problem, self._made)
        self.guarantee_: Any = unmeasured()
        return self

    def fit_covariance(
        self, covariance: ArrayLike, n_sensitive: int, observe: ArrayLike | None = None
    ) -> PrivacyNetwork:
        """Train an ``"affine"`` mechanism on a Gaussian law of mean 0 that is known.

        Its distortion is then that of the law; parameters as in `evaluate`.
        """
        if self.mechanism != "affine":
            raise ValueError("fit_covariance is for mechanism='affine'; give rows to fit")
        rows = leakage.moment_rows(leakage.law_of("covariance", covariance, n_sensitive))
        seen = (
            None
            if observe is None
            else rows @ np.atleast_2d(_validate.numbers("observe", observe)).T
        )
        self._fit_rows(rows[:, :n_sensitive], rows[:, n_sensitive:], seen, law=True)
        self.distortion_error_ = 0.0
        return self

    def fit_law(
        self, p_xw: ArrayLike, cost: ArrayLike, p_yw: ArrayLike | None = None
    ) -> PrivacyNetwork:
        """Train a ``"discrete"`` mechanism on a law that is known.

        Parameters
        ----------
        p_xw : array (n_x, n_w), joint probabilities
        cost : array (n_w, n_z); for ``utility="information"`` its shape alone counts
        p_yw : array (n_y, n_w), for ``utility="information"``
        """
        ppan_parameters.check(self)
        if self.mechanism != "discrete":
            raise ValueError("fit_law is for mechanism='discrete'; give rows to fit")
        table = probabilities("p_xw", p_xw)
        costs = cost_table(cost, table.shape[1])
        useful = None if p_yw is None else probabilities("p_yw", p_yw)
        if (useful is not None) != (self.utility == "information"):
            raise ValueError("p_yw goes with utility='information', and only with it")
        limit = self.distortion if useful is None else self._least_information()
        least = float(table.sum(0) @ costs.min(1))
        if useful is None and limit is not None and limit < least - 1e-12 * max(1.0, abs(least)):
            raise ValueError(f"distortion must be at least {least:.9g}, got {limit:.9g}")
        self.channel_ = finite_network.train_channel(
            table,
            costs,
            useful,
            limit=limit,
            price=self.multiplier,
            steps=_TABLE_STEPS if self.steps is None else self.steps,
            rate=_TABLE_RATE,
            generator=networks.generator_of(self.seed),
            progress=self.progress,
        )
        found = finite_network.channel_values(self.channel_, table, costs, useful)
        self.leakage_, self.distortion_ = max(0.0, found[0]), found[1]
        self._learn_names(None)
        self.n_features_in_ = 1
        self.guarantee_ = MutualInformation(self.leakage_, self.leakage_, network_state.OF_A_TABLE)
        return self

    def transform(self, W: ArrayLike, *, seed: Any = None) -> NDArray[Any]:
        """Release rows of what is observed (Y, (X, Y) or W), in the unit of Y.

        For ``"discrete"``: letters (n,) to columns of ``channel_``.

        Parameters
        ----------
        W : array (n, m), or letters (n,)
        seed : int, 32 bytes, numpy Generator or None
        """
        check_is_fitted(self)
        if self.mechanism == "discrete":
            letters = getattr(self, "observed_values_", None)
            reader = finite_network.reader_of(self.channel_, letters, self.guarantee_)
            return np.asarray(reader.transform(W, seed=networks.numpy_generator(seed)))
        self._same_names("W", W)
        rows = networks.finite_rows("W", W, self.n_features_in_)
        with torch.no_grad():
            w = self._tensor((rows - self._center_w) / self._scale_w)
            z = mechanisms.draw(self._made, w, networks.generator_of(seed))
        return np.asarray(self._center_y + self._scale_y * networks.as_numpy(z))

    def fit_transform(self, X: ArrayLike, y: Any = None, W: ArrayLike | None = None) -> Any:
        """`fit` on (X, Y, W), and a release of what is observed of the same rows, never of X."""
        self.fit(X, y, W)
        if self.mechanism == "discrete":
            return self.transform(y if W is None else W)
        x = X if self.sensitive == "numbers" else np.zeros((len(np.asarray(X)), 1))
        x, useful = networks.finite_rows("X", x), networks.finite_rows("Y", y)
        return self.transform(self._observed(x, useful, W))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """released0, released1, ..."""
        check_is_fitted(self)
        count = 1 if self.mechanism == "discrete" else self._released
        return np.array([f"released{i}" for i in range(count)], dtype=object)

    # ---- evaluation ------------------------------------------------------------------

    def evaluate(
        self,
        covariance: ArrayLike,
        n_sensitive: int,
        observe: ArrayLike | None = None,
    ) -> leakage.LearnedPoint:
        """Exact leakage and distortion of an ``"affine"`` mechanism under a Gaussian law of mean 0.

        Parameters
        ----------
        covariance : array (k + r, k + r), of (X, Y)
        n_sensitive : int, k
        observe : array (m, k + r), for ``observe="given"``: W as a matrix times (X, Y)

        Returns
        -------
        LearnedPoint, the certified optimum at the distortion reached in it
        """
        check_is_fitted(self)
        if self.mechanism != "affine":
            raise ValueError("evaluate is exact for mechanism='affine'; measure the others")
        joint = leakage.law_of("covariance", covariance, n_sensitive)
        if len(joint) - n_sensitive != self._released:
            raise ValueError(f"covariance must be of X and {self._released} columns of Y")
        given = self.observe == "given"
        seen = np.atleast_2d(_validate.numbers("observe", observe)) if given else self.observe
        parts = self.matrix_, self.noise_root_, self.offset_
        found = leakage.affine_point(parts, joint, n_sensitive, seen)
        gap, law = abs(found.excess) + found.gap, "the Gaussian law of this covariance"
        self.guarantee_ = MutualInformation(found.leakage, gap, law)
        return found

    def measure(
        self, X: ArrayLike, Y: ArrayLike, W: ArrayLike | None = None, *, seed: Any = 0
    ) -> leakage.Leakage:
        """Leakage by a fresh network, the plug-in and nearest neighbours, on **new** rows.

        The fresh network's bound takes X as Gaussian: for another X it may be above I(X; Z).
        Labels are for :func:`ellipsum.tradeoff.audit`.

        Parameters
        ----------
        X, Y, W : arrays, as in `fit`
        seed : int, 32 bytes or numpy Generator
        """
        if self.mechanism == "discrete":
            raise ValueError("measure is for numbers: of a table leakage_ is exact")
        if self.sensitive == "labels":
            raise ValueError("measure is for X of numbers: put ellipsum.tradeoff.audit to labels")
        x, y = networks.finite_rows("X", X), networks.finite_rows("Y", Y)
        if len(x) != len(y) or len(x) < leakage.LEAST_ROWS:
            raise ValueError(f"X and Y must have the same rows, {leakage.LEAST_ROWS} or more")
        networks.check_spread("X", x)
        z = np.asarray(self.transform(self._observed(x, y, W), seed=seed))
        distortion = float(((z - y) ** 2).sum(1).mean()) if z.shape == y.shape else np.nan
        found = leakage.measured(x, y, z, distortion, seed)
        self.guarantee_ = found.guarantee
        return found

    # ---- inside ----------------------------------------------------------------------

    def _least_information(self) -> float | None:
        if self.mechanism == "discrete" and self.multiplier is not None:
            return None
        return -_validate.positive("least_information", self.least_information)

    def _observed(self, x: Array, y: Array, W: ArrayLike | None) -> Array:
        if (W is None) == (self.observe == "given"):
            raise ValueError("W goes with observe='given', and only with it")
        if W is not None:
            return networks.finite_rows("W", W)
        return y if self.observe == "useful" else np.hstack([x, y])

    def _tensor(self, value: Array) -> torch.Tensor:
        return networks.tensor_of(value, self.device, networks.wide(self.device))

    def _problem(self, x: Array, y: Array, w: Array) -> ppan_training.Problem:
        information = self.utility == "information"
        self._center_w, sd = w.mean(0), w.std(0)
        self._scale_w = np.where(sd > 0, sd, 1.0)
        self._center_y = np.zeros(y.shape[1]) if information else y.mean(0)
        self._scale_y = 1.0 if information else float(np.sqrt(y.var(0).mean())) or 1.0
        sd = np.where(y.std(0) > 0, y.std(0), 1.0) if information else self._scale_y
        useful = (y - y.mean(0)) / sd
        limit = self._least_information() if information else self.distortion
        squared = 1.0 if information or callable(self.utility) else self._scale_y**2
        return ppan_training.Problem(
            self._tensor(ppan_training.white_rows(x)),
            self._tensor(useful),
            self._tensor((w - self._center_w) / self._scale_w),
            float(limit or 0.0) / squared,
            information,
            ppan_training.cost_of(self.utility, self._tensor(self._center_y), self._scale_y),
            float(self.discriminator),
            networks.generator_of(self.seed),
            unit=squared,
        )

    def _set_affine(self) -> None:
        if self.mechanism == "affine":
            parts = {name: networks.as_numpy(p) for name, p in self._made.named_parameters()}
            self.matrix_ = self._scale_y * parts["gain"] / self._scale_w
            self.noise_root_ = self._scale_y * parts["noise"]
            shift = self._center_y + self._scale_y * parts["offset"]
            self.offset_ = shift - self.matrix_ @ self._center_w

    def _fit_labels(self, X: ArrayLike, Y: ArrayLike, W: ArrayLike | None) -> PrivacyNetwork:
        ppan_parameters.check(self)
        if self.observe != "useful" or W is not None or self.utility == "information":
            raise ValueError("labels are fitted with observe='useful'; for other laws use fit_law")
        ppan_training.check_number(len(np.atleast_1d(np.asarray(Y))))
        table, _, self.observed_values_ = joint_table(X, Y)
        return self.fit_law(table, 1.0 - np.eye(table.shape[1]))

    def _more_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return network_state.state_of(self)

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.guarantee_ = network_state.restore(self, arrays, values)
