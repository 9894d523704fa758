"""Networks, seeds and progress that the learned releases share."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from .. import _validate
from ..tradeoff.seeds import number_of, numpy_generator

__all__ = [
    "as_numpy",
    "check_spread",
    "check_trained",
    "class_numbers",
    "fill",
    "finite_rows",
    "generator_of",
    "linear_layer",
    "minibatches",
    "mlp",
    "normal",
    "number_of",
    "numpy_generator",
    "steps_shown",
    "tensor_of",
    "wide",
]

Array = NDArray[np.float64]


def generator_of(seed: Any) -> torch.Generator:
    """A CPU generator of its own from an int, 32 bytes, a NumPy generator, or None (fresh).

    All random numbers are drawn on the CPU, so that a seed means the same on every device.
    """
    number = int(numpy_generator(seed).integers(2**62))
    return torch.Generator().manual_seed(number)


def normal(generator: torch.Generator, *shape: int, like: torch.Tensor) -> torch.Tensor:
    """Standard normal numbers, of the device and dtype of another tensor."""
    drawn = torch.randn(*shape, generator=generator, dtype=like.dtype)
    return drawn.to(like.device)


def linear_layer(
    inputs: int, outputs: int, generator: torch.Generator, dtype: torch.dtype, *, zero: bool = False
) -> nn.Linear:
    """A dense layer with He's uniform start, or a start at zero."""
    layer = nn.Linear(inputs, outputs, dtype=dtype)
    with torch.no_grad():
        layer.bias.zero_()
        limit = 0.0 if zero else math.sqrt(3.0 / inputs)
        drawn = torch.rand(layer.weight.shape, generator=generator, dtype=dtype)
        layer.weight.copy_((2 * drawn - 1) * limit)
    return layer


def mlp(
    sizes: Sequence[int],
    generator: torch.Generator,
    *,
    dtype: torch.dtype = torch.float32,
    zero_last: bool = False,
) -> nn.Sequential:
    """Dense layers with ELU between them; ``sizes`` from inputs to outputs."""
    layers: list[nn.Module] = []
    for i in range(len(sizes) - 1):
        last = i == len(sizes) - 2
        layers.append(
            linear_layer(sizes[i], sizes[i + 1], generator, dtype, zero=last and zero_last)
        )
        if not last:
            layers.append(nn.ELU())
    return nn.Sequential(*layers)


def minibatches(n: int, size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Row numbers, in a new random order every time around, for ever."""
    size = min(size, n)
    while True:
        order = torch.randperm(n, generator=generator)
        for start in range(0, n - size + 1, size):
            yield order[start : start + size]


def steps_shown(steps: int, shown: bool, what: str) -> Iterator[int]:
    """0, 1, ..., steps - 1, with a progress bar on standard error if asked for."""
    if not shown:
        yield from range(steps)
        return
    try:
        from tqdm import tqdm
    except ImportError:
        for step in range(steps):
            if step % max(1, steps // 20) == 0:
                print(f"\r{what} {step / steps:4.0%}", end="", file=sys.stderr, flush=True)
            yield step
        print(f"\r{what} 100%", file=sys.stderr)
    else:
        yield from tqdm(range(steps), desc=what, dynamic_ncols=True)


def tensor_of(value: ArrayLike, device: Any, dtype: torch.dtype) -> torch.Tensor:
    """A copy on a device."""
    return torch.as_tensor(np.array(value), dtype=dtype).to(device)


def wide(device: Any) -> torch.dtype:
    """Doubles, where the device has them."""
    return torch.float32 if str(device).startswith("mps") else torch.float64


def as_numpy(value: torch.Tensor) -> Array:
    """A double array on the CPU."""
    return value.detach().to("cpu", torch.float64).numpy()


def finite_rows(name: str, value: ArrayLike, d: int | None = None) -> Array:
    """A finite matrix (rows, columns); one-dimensional input is one column."""
    rows = _validate.numbers(name, value)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or not len(rows) or (d is not None and rows.shape[1] != d):
        wanted = "(rows, columns)" if d is None else f"(rows, {d})"
        raise ValueError(f"{name} must have shape {wanted}, got {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must be finite")
    return rows


def check_spread(name: str, rows: Array) -> None:
    """Raise where squares of what a column varies by would leave the doubles."""
    with np.errstate(over="ignore"):
        size = np.abs(rows - rows[:1]).max(0)
    if not ((size == 0) | ((size > 1e-140) & (size < 1e140))).all():
        raise ValueError(
            f"{name} must vary by 1e-140 to 1e140 in each column, or not at all: measure it in "
            "another unit"
        )


def check_trained(*parts: Any) -> None:
    """Raise where training has left the finite numbers."""
    arrays = [p.detach().cpu().numpy() if isinstance(p, torch.Tensor) else p for p in parts]
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError(
            "training ended in numbers that are not finite: lower learning_rate, or bring budget "
            "and weights nearer to 1"
        )


def fill(net: nn.Module, weights: dict[str, np.ndarray]) -> None:
    """Put weights back; raise where one is missing, of another shape, or beyond its dtype."""
    net.load_state_dict({name: torch.as_tensor(array) for name, array in weights.items()})
    check_trained(*net.parameters())


def class_numbers(name: str, labels: ArrayLike, n: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sorted classes, and the number of each row's class."""
    if labels is None:
        raise ValueError("fit requires y to be passed, but the target y is None: labels to hide")
    if (shape := np.asarray(labels).shape) != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {shape}")
    classes, which = _validate.classes(name, labels)
    if len(classes) < 2:
        raise ValueError(f"{name} must hold two different values or more")
    if len(classes) > max(2, n // 2):
        raise ValueError(
            f"{name} must hold labels that rows share, and most rows have one of their own: give "
            "classes, as a number cut into ranges"
        )
    return classes, which


def sizes_of(name: str, hidden: Sequence[int]) -> list[int]:
    """Widths of hidden layers."""
    if not np.iterable(hidden):
        raise TypeError(f"{name} must be a sequence of widths, as (64,)")
    return [_validate.whole(name, width, least=1) for width in hidden]
