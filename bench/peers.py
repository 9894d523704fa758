"""What a user would pick instead of the clip-and-sum kernel: the same job, by other means.

A peer takes (rows, center, scale, clip_norm) and returns the sum of the rows after scaling and
clipping, in scaled units. None but the integer grid bounds its rounding. Each runs on one
thread (see ``single_thread``), over chunks that stay in the cache where it has no blocking of
its own. ``PEERS`` holds those whose package is installed: the extra ``bench`` has them all.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache

import numpy as np
from numba import njit

CHUNK_BYTES = 1 << 18

Sum = Callable[..., np.ndarray]
PEERS: dict[str, Sum] = {}


def single_thread() -> None:
    """Call before the first import of a peer's package."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def peer(name: str, needs: str | None = None) -> Callable[[Sum], Sum]:
    def register(function: Sum) -> Sum:
        if needs is None or importlib.util.find_spec(needs):
            PEERS[name] = function
        return function

    return register


def chunk_rows(rows: np.ndarray) -> int:
    return max(1, CHUNK_BYTES // (rows.shape[1] * rows.itemsize))


@peer("NumPy, chunked")
def numpy_chunked(rows, center, scale, clip_norm):
    c, b = center.astype(rows.dtype), scale.astype(rows.dtype)
    total, step = np.zeros(rows.shape[1]), chunk_rows(rows)
    for i in range(0, len(rows), step):
        y = (rows[i : i + step] - c) * b
        norm = np.sqrt(np.einsum("ij,ij->i", y, y))
        total += (clip_norm / np.maximum(norm, clip_norm)).astype(rows.dtype) @ y
    return total


@njit(fastmath=True, nogil=True)
def _numba(rows, c, b, clip_norm, total):
    one = rows.dtype.type(1)
    for i in range(rows.shape[0]):
        norm2 = rows.dtype.type(0)
        for j in range(rows.shape[1]):
            y = (rows[i, j] - c[j]) * b[j]
            norm2 += y * y
        factor = min(one, clip_norm / np.sqrt(norm2))
        for j in range(rows.shape[1]):
            total[j] += (rows[i, j] - c[j]) * b[j] * factor


@njit(fastmath=True, nogil=True)
def _numba_ball(rows, b, clip_norm, total):
    one = rows.dtype.type(1)
    for i in range(rows.shape[0]):
        norm2 = rows.dtype.type(0)
        for j in range(rows.shape[1]):
            norm2 += rows[i, j] * rows[i, j]
        factor = b * min(one, clip_norm / (b * np.sqrt(norm2)))
        for j in range(rows.shape[1]):
            total[j] += rows[i, j] * factor


@peer("Numba, fastmath")
def numba_fastmath(rows, center, scale, clip_norm):
    """Two loops; of a ball around 0 those that one would write for it."""
    t = rows.dtype.type
    ball = not center.any() and (scale == scale[0]).all()
    total = np.zeros(rows.shape[1])
    part = np.zeros(rows.shape[1], rows.dtype)
    step = 1 << 14  # float32 sums lose digits beyond that
    for i in range(0, len(rows), step):
        part[:] = 0
        if ball:
            _numba_ball(rows[i : i + step], t(scale[0]), t(clip_norm), part)
        else:
            _numba(rows[i : i + step], center.astype(t), scale.astype(t), t(clip_norm), part)
        total += part
    return total


@peer("PyTorch, chunked", needs="torch")
def torch_chunked(rows, center, scale, clip_norm):
    import torch

    torch.set_num_threads(1)
    c, b = (torch.from_numpy(v.astype(rows.dtype)) for v in (center, scale))
    total = torch.zeros(rows.shape[1], dtype=torch.float64)
    for chunk in torch.from_numpy(rows).split(chunk_rows(rows)):
        y = (chunk - c).mul_(b)
        norm = torch.linalg.vector_norm(y, dim=1)
        total += (clip_norm / norm.clamp_(min=clip_norm)) @ y
    return total.numpy()


@cache
def _compiled(grid: bool):
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(chunks, c, b, clip_norm, step):
        kind = jnp.int64 if grid else chunks.dtype

        def body(total, x):
            y = (x - c) * b
            norm = jnp.sqrt(jnp.sum(y * y, axis=1, keepdims=True))
            y = y * (clip_norm / jnp.maximum(norm, clip_norm))
            y = jnp.round(y / step).astype(kind) if grid else y
            return total + jnp.sum(y, axis=0), None

        return jax.lax.scan(body, jnp.zeros(chunks.shape[2], kind), chunks)[0]

    return run


def _scan(rows, center, scale, clip_norm, grid):
    import jax

    step, t = chunk_rows(rows), rows.dtype.type
    whole = len(rows) // step * step
    chunks = jax.dlpack.from_dlpack(rows[:whole].reshape(-1, step, rows.shape[1]))
    run = _compiled(grid is not None)
    total = run(chunks, center.astype(t), scale.astype(t), t(clip_norm), t(grid or 1))
    rest = numpy_chunked(rows[whole:], center, scale, clip_norm)
    return np.asarray(total, np.float64) * (grid or 1.0) + rest


@peer("XLA (jit, scan)", needs="jax")
def xla_scan(rows, center, scale, clip_norm):
    import jax

    with jax.enable_x64(rows.dtype == np.float64):
        return _scan(rows, center, scale, clip_norm, None)


@peer("integer grid in JAX", needs="jax")
def jax_grid(rows, center, scale, clip_norm):
    import jax

    with jax.enable_x64(True):
        return _scan(rows, center, scale, clip_norm, clip_norm / 2**23)


@peer("OpenDP clamp, sum, Gaussian", needs="opendp")
def opendp_columns(rows, center, scale, clip_norm):
    """By columns, clamped to +-clip_norm: OpenDP's sum has no norm of a row."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics")
    kind = dp.f32 if rows.dtype == np.float32 else dp.f64
    atom = dp.atom_domain(T=kind, nan=False)
    space = dp.vector_domain(atom, size=len(rows)), dp.symmetric_distance()
    bounds = tuple(float(v) for v in (-clip_norm, clip_norm))
    query = space >> dp.t.then_clamp(bounds) >> dp.t.then_sum() >> dp.m.then_gaussian(1e-6)
    scaled = ((rows - center) * scale).astype(rows.dtype)
    return np.array([query(np.ascontiguousarray(column)) for column in scaled.T])


#: Peers whose answer is that of another clip: not compared with ours.
OTHER_CLIP = {"OpenDP clamp, sum, Gaussian"}
#: Peers too slow for the whole array: they get this many numbers.
SMALL = {"OpenDP clamp, sum, Gaussian": 1 << 20, "integer grid in JAX": 1 << 24}
