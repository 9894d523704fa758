"""A release trained with its guarantee inside: a network into a ball, and noise on it.

In the noise's own metric every Gaussian mechanism is y = f(z) + w with ||f|| <= mu/2 and w standard
normal, mu-GDP whatever f is. So f is trained for what it is to keep and to hide, while the proof
holds at every step: no budget of distortion, nothing to convert.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from .. import _validate
from ..rows.arrays import numeric_rows
from ..tradeoff import audit
from . import networks
from .classifiers import Classifiers
from .descent import Adam
from .local_mechanism import LatentRelease, LocalGuarantee, LocalMechanism
from .storage import Noisy, grouped, require

__all__ = ["GuaranteedFilter"]

Array = NDArray[np.float64]

_ANSWERS = 3
_ANSWER_RATE = 3e-3


class GuaranteedFilter(Noisy):
    """y = f(z) clipped to radius mu/2, plus standard normal noise; f is trained.

    **Guarantees.** Any two records are mu-GDP apart for the released bits, whatever they are and
    whatever f is (claims learned-1, learned-2): *given the weights*. Weights trained on the same
    people are not covered: train on public rows. That the private label is hidden beyond that is
    measured, not proved: see :meth:`measure`.

    Parameters
    ----------
    mu : float
    dimension : int
        Coordinates of the release. A yes/no label needs one; more keep more.
    useful_weight : float
        Of the useful labels' loss against the private one's.
    keep_weight : float
        Of the squared error of the latents decoded from the release, in units of their variance.
    hidden : sequence of int
    steps, batch_size : int
    learning_rate : float
    seed : int, 32 bytes, numpy Generator or None
    device : str
    progress : bool

    Attributes
    ----------
    guarantee_ : LocalGuarantee
    """

    uses_label = False

    def __init__(
        self,
        mu: float = 4.0,
        *,
        dimension: int = 2,
        useful_weight: float = 2.0,
        keep_weight: float = 0.0,
        hidden: Sequence[int] = (64, 64),
        steps: int = 1500,
        batch_size: int = 256,
        learning_rate: float = 3e-3,
        seed: Any = 0,
        device: str = "cpu",
        progress: bool = False,
    ) -> None:
        self.mu = mu
        self.dimension = dimension
        self.useful_weight = useful_weight
        self.keep_weight = keep_weight
        self.hidden = hidden
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed
        self.device = device
        self.progress = progress

    def fit(self, X: ArrayLike, y: ArrayLike, useful: ArrayLike | None = None) -> Any:
        """Train on rows whose labels are known: public ones, if the proof is to mean much.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,), labels to hide
        useful : array (n,) or (n, tasks), labels to keep
        """
        rows = self._rows(X, fitting=True)
        _validate.positive("mu", self.mu)
        steps = _validate.whole("steps", self.steps, least=1)
        tasks = [y, *_columns(useful)]
        for name in ("useful_weight", "keep_weight"):
            _validate.nonnegative(name, getattr(self, name))
        names = ["y"] + (len(tasks) - 1) * ["useful"]
        pairs = zip(names, tasks, strict=True)
        targets = [networks.class_numbers(name, task, len(rows))[1] for name, task in pairs]
        self._center, scale = rows.mean(0), rows.std(0)
        self._scale = np.where(scale > 0, scale, 1.0)
        generator = networks.generator_of(self.seed)
        self._build(generator)
        data = networks.tensor_of((rows - self._center) / self._scale, self.device, torch.float32)
        labels = [torch.as_tensor(t).to(self.device) for t in targets]
        self._train(data, labels, steps, generator)
        networks.check_trained(*self._net.parameters())
        self._prove()
        return self

    def transform(self, X: ArrayLike, *, seed: Any = None) -> Array:
        """Release rows, (n, dimension), each with fresh noise: every call spends mu again.

        No error, warning or shape depends on a value: a row that is not finite counts as one
        whose network says 0.

        Parameters
        ----------
        X : array (n, d)
        seed : int, 32 bytes, numpy Generator or None
            For tests: with a seed nothing is private.
        """
        check_is_fitted(self)
        if hasattr(X, "columns"):
            self._met_names(X)
        rows = numeric_rows("X", X, d=self.n_features_in_)
        with np.errstate(all="ignore"), torch.no_grad():
            scaled = (np.asarray(rows, dtype=np.float64) - self._center) / self._scale
            data = torch.as_tensor(scaled.astype(np.float32)).to(self.device)
            mapped = networks.as_numpy(self._map(data))
        return self._mechanism.release(mapped, None, seed)

    def release(self, X: ArrayLike, *, seed: Any = None) -> LatentRelease:
        """`transform`, with the guarantee and what takes it away."""
        released = self.transform(X, seed=seed)
        return LatentRelease("latents", released, self.guarantee_, LocalMechanism.caveats(seed))

    def inverse_transform(self, released: ArrayLike) -> Array:
        """Latents decoded from releases, (n, d): post-processing. Needs ``keep_weight``."""
        check_is_fitted(self)
        if not self.keep_weight > 0:
            raise ValueError("inverse_transform needs keep_weight above 0 at fit")
        rows = networks.finite_rows("released", released, self.dimension)
        with torch.no_grad():
            data = networks.tensor_of(rows, self.device, torch.float32)
            decoded = networks.as_numpy(self._decoder(data))
        return np.asarray(self._center + self._scale * decoded)

    def measure(self, X: ArrayLike, labels: ArrayLike, **options: Any) -> Any:
        """`ellipsum.tradeoff.audit` of this release; ``guarantee_`` stays the proof."""
        return audit(self, labels, X, **options)

    @property
    def _n_features_out(self) -> int:
        return self.dimension

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """released0, released1, ..."""
        return np.array([f"released{i}" for i in range(self.dimension)], dtype=object)

    def _build(self, generator: torch.Generator) -> None:
        k = _validate.whole("dimension", self.dimension, least=1)
        widths = networks.sizes_of("hidden", self.hidden)
        self._net: nn.Module = networks.mlp([self.n_features_in_, *widths, k], generator).to(
            self.device
        )
        self._decoder: nn.Module = networks.mlp(
            [k, *widths[::-1], self.n_features_in_], generator
        ).to(self.device)

    def _map(self, rows: torch.Tensor) -> torch.Tensor:
        """Into the open ball of radius mu/2, smoothly: a hard clip would stop gradients."""
        out = self._net(rows)
        size = out.norm(dim=1, keepdim=True) + 1e-12
        return out * (float(self.mu) / 2 * torch.tanh(size) / size)

    def _train(
        self,
        data: torch.Tensor,
        labels: list[torch.Tensor],
        steps: int,
        generator: torch.Generator,
    ) -> None:
        nets, known = Classifiers(self.dimension, labels, generator), torch.stack(labels)
        own = [*self._net.parameters(), *self._decoder.parameters()]
        adam = Adam(own, self.learning_rate, steps)
        answers = Adam(nets.parameters, _ANSWER_RATE, steps, 0.1)
        batches = networks.minibatches(len(data), self.batch_size, generator)
        for _ in networks.steps_shown(steps, self.progress, "guaranteed filter"):
            for _ in range(_ANSWERS):
                rows = next(batches)
                with torch.no_grad():
                    seen = self._noisy(data[rows], generator)
                answers.descend(nets.losses(seen, known[:, rows]).sum(), cool=False)
            rows = next(batches)
            seen = self._noisy(data[rows], generator)
            hide, *keep = nets.losses(seen, known[:, rows])
            loss = self.useful_weight * sum(keep) / max(1, len(keep)) - hide
            if self.keep_weight > 0:
                error = ((self._decoder(seen) - data[rows]) ** 2).mean()
                loss = loss + self.keep_weight * error
            adam.descend(loss)
            answers.cool()

    def _noisy(self, rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        mapped = self._map(rows)
        return mapped + networks.normal(generator, *mapped.shape, like=mapped)

    def _prove(self) -> None:
        """The radius is mu/2 less what rounding to the grid adds, so that mu is not exceeded."""
        k = self.dimension
        eye = np.eye(k)
        radius = float(self.mu) / 2 * (1 - (np.sqrt(k) / 2 + 3) * 2.0**-23)
        self._mechanism = LocalMechanism(eye, radius, np.ones(k), None, eye)
        self.guarantee_ = LocalGuarantee(self._mechanism.mu, radius, "of the noise, after f")

    def _more_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {"center": self._center, "scale": self._scale}
        for part, net in (("net", self._net), ("decoder", self._decoder)):
            for name, weight in net.state_dict().items():
                arrays[f"{part}/{name}"] = weight.detach().cpu().numpy()
        return arrays, {}

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self._center, self._scale = arrays["center"], arrays["scale"]
        require(self._center.ndim == 1 and self._center.shape == self._scale.shape)
        require((self._scale > 0).all())
        self.n_features_in_ = len(self._center)
        self._build(networks.generator_of(0))
        for part, net in (("net", self._net), ("decoder", self._decoder)):
            networks.fill(net, grouped(part, arrays))
        self._prove()


def _columns(useful: ArrayLike | None) -> list[NDArray[Any]]:
    if useful is None:
        return []
    given = np.asarray(useful)
    return [given] if given.ndim == 1 else list(given.T)
