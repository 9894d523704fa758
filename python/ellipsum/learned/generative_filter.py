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
from ..tradeoff import audit
from . import filter_training, networks
from .local_mechanism import LatentRelease, LocalGuarantee, LocalMechanism, unmeasured
from .storage import Learned

__all__ = ["GenerativeFilter"]

Array = NDArray[np.float64]

_METHODS = ("adversarial", "kernel", "isotropic")
_DIVERGENCES = ("realised", "kl", "reverse-kl", "chi2", "renyi")
_FLOOR = 1e-3  # of the mean variance: a latent that has died does not blow up the metric


class GenerativeFilter(Learned):
    """z -> z + A w + v_y, trained to hide a private label and to keep a useful one.

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
        True: the release is also shifted by the *true* private label, which every person must
        then give. False can be deployed.
    method : {"adversarial", "kernel", "isotropic"}
        Game against two networks; the posterior under the empirical law, no network; or no
        training, white noise in the metric of the latents.
    useful_weight : float
        Of the useful label's loss in the game.
    steps, batch_size : int
    learning_rate : float
    seed : int, numpy Generator or None
    device : str
    progress : bool

    Attributes
    ----------
    A_ : array (d, d)
    V_ : array (d, labels), zero without labels
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
        method: str = "adversarial",
        useful_weight: float = 1.0,
        steps: int = 1500,
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
        self.method = method
        self.useful_weight = useful_weight
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed
        self.device = device
        self.progress = progress

    def fit(self, Z: ArrayLike, private: ArrayLike, useful: ArrayLike | None = None) -> Any:
        """Train on latents whose labels are known: public ones, if the proof is to mean much.

        Parameters
        ----------
        Z : array (n, d)
        private, useful : array (n,), labels; without ``useful`` the filter only hides
        """
        self._check()
        latents = networks.finite_rows("Z", Z)
        n, d = latents.shape
        self.classes_, which = networks.class_numbers("private", private, n)
        other = None if useful is None else networks.class_numbers("useful", useful, n)[1]
        self.n_features_in_ = d
        whiten, unwhiten = _metric(latents)
        labels = len(self.classes_) if self.uses_label else 1
        priors = np.bincount(which) / n if self.uses_label else np.ones(1)
        budget = self._budget(priors, unwhiten)
        if self.method == "isotropic":
            noise, shifts = budget.exact(self._white(whiten), np.zeros((d, labels)))
        else:
            noise, shifts = self._train(latents @ whiten.T, which, other, budget, labels)
        self.A_, self.V_ = unwhiten @ noise, unwhiten @ shifts
        self._prove()
        return self

    def transform(self, Z: ArrayLike, private: ArrayLike | None = None, *, seed: Any = None) -> Any:
        """Release latents, each with fresh noise: every call releases the records again.

        Parameters
        ----------
        Z : array (n, d)
        private : array (n,), the true labels; for ``uses_label=True`` only
        seed : int, optional
            For tests: with a seed, or without ``clip``, nothing is private.
        """
        check_is_fitted(self)
        if self._mechanism is not None:
            rows = _validate.rows("Z", Z, d=self.n_features_in_)
            return self._mechanism.release(rows, self._which(private, len(rows)), seed)
        latents = networks.finite_rows("Z", Z, self.n_features_in_)
        which = self._which(private, len(latents))
        rng = np.random.default_rng(seed)
        noisy = latents + rng.standard_normal(latents.shape) @ self.A_.T
        return noisy if which is None else noisy + self.V_.T[which]

    def release(
        self, Z: ArrayLike, private: ArrayLike | None = None, *, seed: int | None = None
    ) -> LatentRelease:
        """`transform`, with the guarantee and what takes it away."""
        released = self.transform(Z, private, seed=seed)
        return LatentRelease("latents", released, self.guarantee_, LocalMechanism.caveats(seed))

    def measure(self, Z: ArrayLike, labels: ArrayLike, **options: Any) -> Any:
        """`ellipsum.tradeoff.audit` of this filter; without a proof the finding is ``guarantee_``.

        Parameters
        ----------
        Z : array (n, d), labels : array (n,), the private labels
        **options : of :func:`ellipsum.tradeoff.audit`
        """
        found = audit(self, labels, Z, **options)
        if self._mechanism is None:
            self.guarantee_ = found.guarantee
        return found

    def fit_transform(self, Z: ArrayLike, private: Any = None, **options: Any) -> Any:
        """`fit`, then a release of the same rows: weights and release both tell of them."""
        seed = options.pop("seed", None)
        fitted = self.fit(Z, private, **options)
        return fitted.transform(Z, private if self.uses_label else None, seed=seed)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """filtered0, filtered1, ..."""
        return np.array([f"filtered{i}" for i in range(self.n_features_in_)], dtype=object)

    def _check(self) -> None:
        _validate.one_of("method", self.method, _METHODS)
        _validate.one_of("divergence", self.divergence, _DIVERGENCES)
        if (self.budget is None) == (self.mu is None):
            raise ValueError("give budget (a distortion) or mu (a proof), one of the two")
        if self.mu is not None and self.clip is None:
            raise ValueError("mu needs clip: on latents of any size nothing is proved")
        for name in ("budget", "mu", "clip"):
            if getattr(self, name) is not None:
                _validate.positive(name, getattr(self, name))
        _validate.whole("steps", self.steps, least=1)
        _validate.whole("batch_size", self.batch_size, least=1)

    def _budget(self, priors: Array, unwhiten: Array) -> Any:
        if self.mu is not None:
            return filter_training.LocalBudget(
                float(self.mu), float(self.clip or 0), unwhiten, self.uses_label
            )
        amount = float(self.budget or 0)
        return filter_training.Budget(self.divergence, amount, self.order, priors, self.uses_label)

    def _white(self, whiten: Array) -> Array:
        """White in the latents' metric; for a proof, in the ball's."""
        return np.eye(len(whiten)) if self.mu is None else whiten

    def _train(
        self,
        white: Array,
        which: NDArray[np.int64],
        other: NDArray[np.int64] | None,
        budget: Any,
        labels: int,
    ) -> tuple[Array, Array]:
        def numbers(value: NDArray[np.int64]) -> torch.Tensor:
            return torch.as_tensor(value, dtype=torch.int64).to(self.device)

        shifted = which if self.uses_label else np.zeros_like(which)
        data = filter_training.FilterData(
            networks.tensor_of(white, self.device, torch.float32),
            numbers(which),
            None if other is None else numbers(other),
            numbers(shifted),
        )
        train = (
            filter_training.train_adversarial
            if self.method == "adversarial"
            else filter_training.train_kernel
        )
        return train(
            data,
            budget,
            labels,
            float(self.useful_weight),
            steps=self.steps,
            batch_size=self.batch_size,
            rate=self.learning_rate,
            generator=networks.generator_of(self.seed),
            progress=self.progress,
        )

    def _prove(self) -> None:
        """Set ``guarantee_``: proved on clipped latents, else nothing known yet."""
        self._mechanism: LocalMechanism | None = None
        self.guarantee_ = unmeasured()
        if self.clip is not None:
            basis, size, _ = np.linalg.svd(self.A_)
            shifts = basis.T @ self.V_ if self.uses_label else None
            self._mechanism = LocalMechanism(basis.T, float(self.clip), size, shifts, basis)
            if not math.isfinite(self._mechanism.mu):
                raise ValueError("the noise must cover every direction: mu would be infinite")
            self.guarantee_ = LocalGuarantee(self._mechanism.mu, float(self.clip))

    def _which(self, private: ArrayLike | None, n: int) -> NDArray[np.int64] | None:
        """Class numbers; an unknown label counts as the first: no error tells of it."""
        if not self.uses_label:
            if private is not None:
                raise ValueError("this filter uses no label: uses_label is False")
            return None
        if private is None:
            raise ValueError("this filter shifts by the private label: give it, row by row")
        given = np.asarray(private)
        if given.shape != (n,):
            raise ValueError("private must have one label for each row")
        matches = given[:, None] == self.classes_[None]
        return np.asarray(np.where(matches.any(1), matches.argmax(1), 0), dtype=np.int64)

    def _more_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"A": self.A_, "V": self.V_}, {"classes": self.classes_}

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.A_, self.V_ = arrays["A"], arrays["V"]
        self.classes_ = np.array(values["classes"])
        self.n_features_in_ = len(self.A_)
        self._prove()


def _metric(latents: Array) -> tuple[Array, Array]:
    """T and its inverse with T Cov(z) T' = I: the raw latents' law is the metric."""
    covariance = np.atleast_2d(np.cov(latents, rowvar=False))
    values, basis = np.linalg.eigh(covariance)
    if not values[-1] > 0:
        raise ValueError("Z must not be constant")
    root = np.sqrt(np.maximum(values, _FLOOR * values.mean()))
    return (basis / root) @ basis.T, (basis * root) @ basis.T
