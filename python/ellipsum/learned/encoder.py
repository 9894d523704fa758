"""A variational autoencoder: the latents that a filter works on."""

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
from . import networks
from .descent import Adam
from .storage import Learned, grouped, require

__all__ = ["VariationalEncoder", "spectral_norm"]

Array = NDArray[np.float64]

_CLIP_LOG_VARIANCE = 8.0  # keeps exp of a young network finite
_POWER_STEPS = 2


class VariationalEncoder(Learned):
    """Rows to latents of a few coordinates, and back (scikit-learn transformer).

    **Guarantees.** None of privacy: weights and latents tell of the rows.

    Parameters
    ----------
    latent_dim : int
    hidden : sequence of int
        Widths of the encoder's layers, the decoder's in reverse; ELU.
    kl_weight : float
        Of the divergence from N(0, I). At 1 most latents of small images collapse; 0.1 keeps
        them.
    lipschitz : float or None
        Largest wanted spectral norm of the decoder's Jacobian between latents and prior; above
        it, the excess is penalised. Not a bound.
    lipschitz_weight : float
    epochs, batch_size : int
    learning_rate : float
    seed : int, 32 bytes, numpy Generator or None
    device : str
    progress : bool

    Attributes
    ----------
    loss_ : float
        Mean of squared error + kl_weight KL at the end, standardised columns.

    Source: Kingma & Welling 2014; Chen, Navidi & Rajagopal, (7)-(14), with the spectral norm in
    place of the gradient of the summed outputs.
    """

    def __init__(
        self,
        latent_dim: int = 10,
        *,
        hidden: Sequence[int] = (128, 128),
        kl_weight: float = 0.1,
        lipschitz: float | None = None,
        lipschitz_weight: float = 1.0,
        epochs: int = 150,
        batch_size: int = 128,
        learning_rate: float = 2e-3,
        seed: Any = 0,
        device: str = "cpu",
        progress: bool = False,
    ) -> None:
        self.latent_dim = latent_dim
        self.hidden = hidden
        self.kl_weight = kl_weight
        self.lipschitz = lipschitz
        self.lipschitz_weight = lipschitz_weight
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.seed = seed
        self.device = device
        self.progress = progress

    def fit(self, X: ArrayLike, y: Any = None) -> VariationalEncoder:
        """Train on rows (n, d); ``y`` is not looked at."""
        rows = self._rows(X, fitting=True)
        generator = networks.generator_of(self.seed)
        for name in ("kl_weight", "lipschitz_weight"):
            _validate.nonnegative(name, getattr(self, name))
        if self.lipschitz is not None:
            _validate.positive("lipschitz", self.lipschitz)
        self._center = rows.mean(0)
        scale = float(np.sqrt(rows.var(0).mean()))
        self._scale = scale if scale > 0 else 1.0
        self._build(rows.shape[1], generator)
        data = networks.tensor_of(self._standard(rows), self.device, torch.float32)
        size = min(_validate.whole("batch_size", self.batch_size, least=1), len(data))
        steps = _validate.whole("epochs", self.epochs, least=1) * max(1, len(data) // size)
        weights = [*self._encoder.parameters(), *self._decoder.parameters()]
        adam = Adam(weights, self.learning_rate, steps)
        batches = networks.minibatches(len(data), size, generator)
        for _ in networks.steps_shown(steps, self.progress, "encoder"):
            loss = self._loss(data[next(batches)], generator)
            adam.descend(loss)
        networks.check_trained(loss, *weights)
        self.loss_ = float(loss.detach())
        self._widen()
        return self

    def transform(self, X: ArrayLike) -> Array:
        """The mean latent of each row, (n, latent_dim)."""
        check_is_fitted(self)
        return self._encoded(self._rows(X))

    def inverse_transform(self, Z: ArrayLike) -> Array:
        """Decoded rows, (n, d): post-processing of a release."""
        check_is_fitted(self)
        latents = networks.finite_rows("Z", Z, self.latent_dim)
        with torch.no_grad():
            data = self._tensor(latents)
            decoded = networks.as_numpy(self._decoder(data))
        return np.asarray(self._center + self._scale * decoded)

    @property
    def _n_features_out(self) -> int:
        return self.latent_dim

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """latent0, latent1, ..."""
        return np.array([f"latent{i}" for i in range(self.latent_dim)], dtype=object)

    def decoder_norm(self, Z: ArrayLike) -> float:
        """The largest spectral norm of the decoder's Jacobian at rows of latents, estimated."""
        latents = self._tensor(networks.finite_rows("Z", Z, self.latent_dim))
        generator = networks.generator_of(0)
        norms = spectral_norm(self._decoder, latents, generator, steps=30)
        return float(norms.detach().max()) * self._scale

    def _build(self, d: int, generator: torch.Generator) -> None:
        latent = _validate.whole("latent_dim", self.latent_dim, least=1)
        widths = networks.sizes_of("hidden", self.hidden)
        self._encoder = networks.mlp([d, *widths, 2 * latent], generator).to(self.device)
        self._decoder = networks.mlp([latent, *widths[::-1], d], generator).to(self.device)

    def _widen(self) -> None:
        """Trained in single precision, used in double: a row's latent is then its own to 1e-15."""
        for net in (self._encoder, self._decoder):
            net.to(networks.wide(self.device))

    def _encoded(self, rows: Array) -> Array:
        with torch.no_grad(), np.errstate(all="ignore"):  # a warning would tell of a value
            data = self._tensor(self._standard(rows))
            return networks.as_numpy(self._encoder(data)[:, : self.latent_dim])

    def encoded_whatever(self, X: ArrayLike) -> Array:
        """`transform` for a release with a proof: no error, warning or shape depends on a value.

        Rows that are not finite are latents of 0, as such a release counts latents that are not.
        """
        check_is_fitted(self)
        if hasattr(X, "columns"):
            self._met_names(X)
        rows = _validate.doubles(numeric_rows("X", X, d=self.n_features_in_))
        whole = np.isfinite(rows).all(1, keepdims=True)
        latents = self._encoded(np.where(whole, rows, 0.0))
        return np.where(whole, latents, 0.0)

    def _tensor(self, value: Array) -> torch.Tensor:
        return networks.tensor_of(value, self.device, networks.wide(self.device))

    def _standard(self, rows: Array) -> Array:
        return np.asarray((rows - self._center) / self._scale)

    def _loss(self, rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        mean, log_variance = self._encoder(rows).chunk(2, dim=1)
        log_variance = log_variance.clamp(-_CLIP_LOG_VARIANCE, _CLIP_LOG_VARIANCE)
        drawn = networks.normal(generator, *mean.shape, like=mean)
        latent = mean + drawn * torch.exp(0.5 * log_variance)
        error = ((self._decoder(latent) - rows) ** 2).sum(1).mean()
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
        loss = error + self.kl_weight * divergence
        if self.lipschitz is not None:
            share = torch.rand(len(latent), 1, generator=generator).to(latent)
            prior = networks.normal(generator, *mean.shape, like=mean)
            between = (share * prior + (1 - share) * latent).detach()
            norms = spectral_norm(self._decoder, between, generator, steps=_POWER_STEPS)
            excess = (norms * self._scale - self.lipschitz).clamp(min=0)
            loss = loss + self.lipschitz_weight * excess.mean()
        return loss

    def _more_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        nets = {"encoder": self._encoder, "decoder": self._decoder}
        arrays = {
            f"{net}/{name}": weight.detach().cpu().numpy()
            for net, module in nets.items()
            for name, weight in module.state_dict().items()
        }
        arrays["center"] = self._center
        return arrays, {"scale": self._scale, "loss": self.loss_, "d": self.n_features_in_}

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self._center, self._scale = arrays["center"], _validate.positive("scale", values["scale"])
        self.loss_ = _validate.finite("loss", values["loss"])
        self.n_features_in_ = _validate.whole("d", values["d"], least=1)
        require(self._center.shape == (self.n_features_in_,))
        self._build(self.n_features_in_, networks.generator_of(0))
        self._widen()
        for net, module in (("encoder", self._encoder), ("decoder", self._decoder)):
            networks.fill(module, grouped(net, arrays))


def spectral_norm(
    net: nn.Module, at: torch.Tensor, generator: torch.Generator, steps: int
) -> torch.Tensor:
    """Spectral norm of the Jacobian at each row, (n,): power steps, then one differentiable |J v|.

    A lower bound of the norm, close to it after a few steps. The gradient of the summed outputs
    is no such norm: for g(z) = (z, -z) it is zero.
    """
    direction = networks.normal(generator, *at.shape, like=at)
    with torch.enable_grad():
        at = at.detach().requires_grad_(True)
        out = net(at)
        for _ in range(steps):
            direction = direction / direction.norm(dim=1, keepdim=True)
            forward = _forward(out, at, direction, create_graph=False)
            (direction,) = torch.autograd.grad(out, at, forward, retain_graph=True)
            direction = direction + 1e-30
        direction = direction / direction.norm(dim=1, keepdim=True)
        return _forward(out, at, direction, create_graph=True).norm(dim=1)


def _forward(
    out: torch.Tensor, at: torch.Tensor, direction: torch.Tensor, *, create_graph: bool
) -> torch.Tensor:
    """J v by two reverse passes: J'c is linear in c, and its gradient along v is J v."""
    weight = torch.zeros_like(out, requires_grad=True)
    (pulled,) = torch.autograd.grad(out, at, weight, create_graph=True)
    (pushed,) = torch.autograd.grad(
        pulled, weight, direction, create_graph=create_graph, retain_graph=True
    )
    return pushed
