"""The linear generative filter: hide one label of latents, keep another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .. import _validate
from ..guarantee import Guarantee
from ..rows.arrays import OWN_ERRORS, numeric_rows
from ..tradeoff import audit
from . import filter_training, networks
from .label_reader import LabelReader, cells_of, cross_read
from .local_mechanism import LatentRelease, LocalGuarantee, LocalMechanism, unmeasured
from .storage import Noisy, flat, grouped, require

__all__ = ["GenerativeFilter"]

Array = NDArray[np.float64]

_METHODS = ("adversarial", "kernel", "isotropic")
_DIVERGENCES = ("realised", "kl", "reverse-kl", "chi2", "renyi")
_FLOOR = 1e-3  # of the mean variance: a latent that has died does not blow up the metric


class GenerativeFilter(Noisy):
    """z -> z + A w + v_c, trained to hide a private label and to keep a useful one.

    The shift v_c is by the record's cell: the labels that a small network reads off its latents.

    **Guarantees.** With ``clip=R`` each release is a Gaussian mechanism on latents clipped to
    ||z|| <= R: any two records, labels included, are ``guarantee_.mu``-GDP apart, for the bits
    that are released (claims learned-1 to learned-3): *given the weights*. Weights trained on
    the same people are not covered: train on public rows. Without ``clip`` nothing is proved:
    `measure` puts the filter to fresh attackers, and ``guarantee_`` is what they learned, with
    no epsilon. The budget is a distortion, not privacy.

    Parameters
    ----------
    budget : float
        Largest divergence of the released latents from the raw ones: met exactly.
    mu : float or None
        In place of the budget, with ``clip``: the noise is scaled so that this is proved.
    divergence : {"realised", "kl", "reverse-kl", "chi2", "renyi"}
        As :func:`ellipsum.tradeoff.scale_to_budget`. Rényi and chi-square budgets cap the noise.
    order : float, of ``"renyi"``
    clip : float or None
        Radius that latents are clipped to: public.
    uses_label : bool
        True: the shift is by the *true* private label, which every person must then give, as in
        the paper. False can be deployed.
    shift : {"predicted", "none"}
        Without ``uses_label``: by the private and useful label together as they are read off the
        latents, or noise alone.
    folds : int
        From 2 on, the game is played with cells that were read by networks which had not seen the
        row, so that it knows how often a new record is misread: for a few hundred rows.
    method : {"adversarial", "kernel", "isotropic"}
        Game against two networks; the posterior under the empirical law, no network; or no
        training, white noise in the metric of the latents.
    useful_weight : float
        Of the useful label's loss in the game.
    steps, batch_size : int
    learning_rate : float
    seed : int, 32 bytes, numpy Generator or None
    device : str
    progress : bool

    Attributes
    ----------
    A_ : array (d, d)
    V_ : array (d, cells), of zeros without a shift
    classes_ : array (labels,), of the private label
    guarantee_ : LocalGuarantee, or EstimatedInformation

    Source: Chen, Navidi & Rajagopal, game (1)-(2); not (4), (15), which are other games.
    """

    guarantee_: Guarantee

    def __init__(
        self,
        budget: float | None = None,
        *,
        mu: float | None = None,
        divergence: str = "realised",
        order: float = 2.0,
        clip: float | None = None,
        uses_label: bool = False,
        shift: str = "predicted",
        folds: int = 1,
        method: str = "adversarial",
        useful_weight: float = 1.0,
        steps: int = 800,
        batch_size: int = 256,
        learning_rate: float = 1e-2,
        seed: Any = 0,
        device: str = "cpu",
        progress: bool = False,
    ) -> None:
        self.budget = budget
        self.mu = mu
        self.divergence = divergence
        self.order = order
        self.clip = clip
        self.uses_label = uses_label
        self.shift = shift
        self.folds = folds
        self.method = method
        self.useful_weight = useful_weight
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed
        self.device = device
        self.progress = progress

    def fit(self, X: ArrayLike, y: ArrayLike, useful: ArrayLike | None = None) -> Any:
        """Train on latents whose labels are known: public ones, if the proof is to mean much.

        Parameters
        ----------
        X : array (n, d), latents
        y, useful : array (n,), the private and the useful labels; without ``useful`` the filter
            only hides
        """
        self._check()
        latents = self._rows(X, fitting=True)
        n, d = latents.shape
        self.classes_, which = networks.class_numbers("y", y, n)
        other = None if useful is None else networks.class_numbers("useful", useful, n)[1]
        whiten, unwhiten = _metric(latents)
        generator = networks.generator_of(self.seed)
        shifted = self._shifted(latents, which, other, whiten, generator)
        priors = np.bincount(shifted, minlength=self._cells) / n
        budget = self._budget(priors, unwhiten)
        if self.method == "isotropic":
            noise, shifts = budget.exact(self._white(whiten), np.zeros((d, self._cells)))
        else:
            targets = (which, other, shifted)
            noise, shifts = self._train(latents @ whiten.T, targets, budget, generator)
        self.A_, self.V_ = unwhiten @ noise, unwhiten @ shifts
        networks.check_trained(self.A_, self.V_)
        self._prove()
        return self

    def transform(self, X: ArrayLike, private: ArrayLike | None = None, *, seed: Any = None) -> Any:
        """Release latents, each with fresh noise: every call releases the records again.

        Parameters
        ----------
        X : array (n, d), latents
        private : array (n,), the true labels; for ``uses_label=True`` only
        seed : int, 32 bytes, numpy Generator or None
            For tests: with a seed, or without ``clip``, nothing is private.
        """
        check_is_fitted(self)
        if self._mechanism is not None:
            if hasattr(X, "columns"):
                self._met_names(X)
            rows = numeric_rows("X", X, d=self.n_features_in_)
            return self._mechanism.release(rows, self._which(rows, private), seed)
        latents = self._rows(X)
        which = self._which(latents, private)
        rng = networks.numpy_generator(seed)
        noisy = latents + rng.standard_normal(latents.shape) @ self.A_.T
        return noisy if which is None else noisy + self.V_.T[which]

    def release(
        self, X: ArrayLike, private: ArrayLike | None = None, *, seed: Any = None
    ) -> LatentRelease:
        """`transform`, with the guarantee and what takes it away."""
        released = self.transform(X, private, seed=seed)
        return LatentRelease("latents", released, self.guarantee_, LocalMechanism.caveats(seed))

    def measure(self, X: ArrayLike, labels: ArrayLike, **options: Any) -> Any:
        """`ellipsum.tradeoff.audit` of this filter; without a proof the finding is ``guarantee_``.

        Parameters
        ----------
        X : array (n, d), latents
        labels : array (n,), the private labels
        **options : of :func:`ellipsum.tradeoff.audit`
            With ``private_labels`` (a filter that uses them) another label is attacked, and the
            finding is not of the private one: ``guarantee_`` stays.
        """
        found = audit(self, labels, X, **options)
        if self._mechanism is None and options.get("private_labels") is None:
            self.guarantee_ = found.guarantee
        return found

    def fit_transform(self, X: ArrayLike, y: Any = None, **options: Any) -> Any:
        """`fit`, then a release of the same rows: weights and release both tell of them."""
        seed = options.pop("seed", None)
        fitted = self.fit(X, y, **options)
        return fitted.transform(X, y if self.uses_label else None, seed=seed)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """filtered0, filtered1, ..."""
        return np.array([f"filtered{i}" for i in range(self.n_features_in_)], dtype=object)

    def _check(self) -> None:
        _validate.one_of("method", self.method, _METHODS)
        _validate.one_of("shift", self.shift, ("predicted", "none"))
        _validate.one_of("divergence", self.divergence, _DIVERGENCES)
        if (self.budget is None) == (self.mu is None):
            raise ValueError("give budget (a distortion) or mu (a proof), one of the two")
        if self.mu is not None and self.clip is None:
            raise ValueError("mu needs clip: on latents of any size nothing is proved")
        for name in ("budget", "mu", "clip"):
            if getattr(self, name) is not None:
                _validate.positive(name, getattr(self, name))
        if not 1e-100 < (self.clip or 1) < 1e100:
            raise ValueError("clip must lie between 1e-100 and 1e100")
        if self.divergence == "renyi" and _validate.positive("order", self.order) == 1:
            raise ValueError("order must not be 1: that is divergence='kl'")
        _validate.nonnegative("useful_weight", self.useful_weight)
        _validate.whole("steps", self.steps, least=1)
        _validate.whole("batch_size", self.batch_size, least=1)
        _validate.whole("folds", self.folds, least=1)

    def _shifted(
        self,
        latents: Array,
        which: NDArray[np.int64],
        other: NDArray[np.int64] | None,
        whiten: Array,
        generator: torch.Generator,
    ) -> NDArray[np.int64]:
        """The cell that each row is shifted by; sets ``_reader`` and ``_cells``."""
        self._reader: LabelReader | None = None
        if self.uses_label:
            self._cells = len(self.classes_)
            return which
        if self.shift == "none" or self.method == "isotropic":
            self._cells = 1
            return np.zeros_like(which)
        cells = cells_of(which, other)
        self._cells = int(cells.max()) + 1
        self._reader = LabelReader(whiten, self._cells, self.device).fit(latents, cells, generator)
        if self.folds == 1:
            return self._reader.read(latents)
        return cross_read(latents, cells, whiten, self.folds, self.device, generator)

    def _budget(self, priors: Array, unwhiten: Array) -> Any:
        if self.mu is not None:
            return filter_training.LocalBudget(
                float(self.mu), float(self.clip or 0), unwhiten, self._cells > 1
            )
        amount = float(self.budget or 0)
        return filter_training.Budget(self.divergence, amount, self.order, priors, self._cells > 1)

    def _white(self, whiten: Array) -> Array:
        """White in the latents' metric; for a proof, in the ball's."""
        return np.eye(len(whiten)) if self.mu is None else whiten

    def _train(
        self,
        white: Array,
        targets: tuple[NDArray[np.int64] | None, ...],
        budget: Any,
        generator: torch.Generator,
    ) -> tuple[Array, Array]:
        private, useful, shifted = (
            None if t is None else torch.as_tensor(t, dtype=torch.int64).to(self.device)
            for t in targets
        )
        latents = networks.tensor_of(white, self.device, torch.float32)
        data = filter_training.FilterData(latents, private, useful, shifted)
        train = (
            filter_training.train_adversarial
            if self.method == "adversarial"
            else filter_training.train_kernel
        )
        return train(
            data,
            budget,
            self._cells,
            float(self.useful_weight),
            steps=self.steps,
            batch_size=self.batch_size,
            rate=self.learning_rate,
            generator=generator,
            progress=self.progress,
        )

    def _prove(self) -> None:
        """Set ``guarantee_``: proved on clipped latents, else nothing known yet."""
        self._mechanism: LocalMechanism | None = None
        self.guarantee_ = unmeasured()
        if self.clip is not None:
            basis, size, _ = np.linalg.svd(self.A_)
            shifts = basis.T @ self.V_ if self._cells > 1 else None
            self._mechanism = LocalMechanism(basis.T, float(self.clip), size, shifts, basis)
            if not math.isfinite(self._mechanism.mu):
                raise ValueError("the noise must cover every direction: mu would be infinite")
            self.guarantee_ = LocalGuarantee(self._mechanism.mu, float(self.clip))

    def _which(self, rows: Array, private: ArrayLike | None) -> NDArray[np.int64] | None:
        """Cells; an unknown label counts as the first: no error tells of it."""
        if not self.uses_label:
            if private is not None:
                raise ValueError("this filter uses no label: uses_label is False")
            return None if self._reader is None else self._reader.read(rows)
        if private is None:
            raise ValueError("this filter shifts by the private label: give it, row by row")
        # Each label by itself: in an array one of another type would change all of them.
        given: list[Any] = private.tolist() if isinstance(private, np.ndarray) else list(private)  # type: ignore[arg-type]
        if getattr(private, "ndim", 1) != 1 or len(given) != len(rows):
            raise ValueError("private must have one label for each row")
        cells = {label: cell for cell, label in enumerate(self.classes_.tolist())}
        return np.array([_cell_of(cells, label) for label in given], dtype=np.int64)

    def _more_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {"A": self.A_, "V": self.V_}
        if self._reader is not None:
            arrays |= flat("reader", self._reader.state())
        return arrays, {"classes": self.classes_}

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.A_, self.V_ = arrays["A"], arrays["V"]
        self.classes_ = np.array(values["classes"])
        self.n_features_in_, self._cells = self.V_.shape
        read, d = grouped("reader", arrays), self.n_features_in_
        shapes = [self.A_.shape, *(read[name].shape for name in ("whiten", "center") if read)]
        require(shapes == [(d, d), (d, d), (d,)][: len(shapes)] and self.classes_.ndim == 1)
        cells = len(self.classes_) if self.uses_label else self._cells if read else 1
        require(self._cells == cells and not (read and self.uses_label))
        self._reader = LabelReader.of_state(read, self._cells, self.device) if read else None
        self._prove()


def _cell_of(cells: dict[Any, int], label: Any) -> int:
    """The cell of a label, whatever it is."""
    try:
        return cells.get(label, 0)
    except OWN_ERRORS:  # no label at all
        return 0


def _metric(latents: Array) -> tuple[Array, Array]:
    """T and its inverse with T Cov(z) T' = I: the raw latents' law is the metric."""
    covariance = np.atleast_2d(np.cov(latents, rowvar=False))
    values, basis = np.linalg.eigh(covariance)
    if not values[-1] > 0:
        raise ValueError("X must not be constant")
    root = np.sqrt(np.maximum(values, _FLOOR * values.mean()))
    return (basis / root) @ basis.T, (basis * root) @ basis.T
