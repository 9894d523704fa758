"""Clip and sum beside its peers and beside reading alone.

    pytest bench/bench_clip_sum.py                             # about three minutes
    pytest bench/bench_clip_sum.py --benchmark-group-by=group --benchmark-columns=min

Each answer is checked; ``extra_info`` of the saved results has the ratio to reading alone, the
machine, the flags and the versions. Before and after a change:

    pytest bench/bench_clip_sum.py -k ellipsum --benchmark-save=before
    pytest bench/bench_clip_sum.py -k ellipsum --benchmark-compare=0001
"""

from __future__ import annotations

import numpy as np
import pytest

import measure
import peers
from ellipsum import Ellipsoid, ExactSum

MEGABYTES = 64
DS = (2, 8, 16, 64, 128, 1024, 16384)
PEER_DS = (16, 128, 1024)


def ours(rows: np.ndarray, ellipsoid: Ellipsoid, threads: int = 1) -> np.ndarray:
    total = ExactSum(ellipsoid, threads=threads)
    total.add(rows)
    return total.integers()


def close(answer: np.ndarray, wanted: np.ndarray, dtype: str, n: int) -> bool:
    """Within what rounding in the rows' own type may do to the sum of n unit numbers."""
    return bool(np.abs(answer - wanted).max() < (1e-4 if dtype == "float32" else 1e-6) * n)


def annotate(benchmark, rows: np.ndarray) -> None:
    (read,) = measure.best(lambda: measure.read_alone(rows))
    least = benchmark.stats.stats.min
    benchmark.extra_info |= {
        "machine": measure.machine(),
        "GB/s": round(rows.nbytes / least / 1e9, 2),
        "ratio to reading alone": round(read / least, 3),
    }
    print(f"\n{rows.nbytes / least / 1e9:.2f} GB/s, {read / least:.2f} of reading alone")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", DS)
def test_ellipsum(benchmark, d, dtype, threads):
    benchmark.group = f"{dtype}, d = {d}"
    rows = measure.rows_of(d, dtype, MEGABYTES)
    ellipsoid = measure.half_clipped(d)
    answer = benchmark(ours, rows, ellipsoid, threads)
    wanted = peers.numpy_chunked(rows, ellipsoid.center, ellipsoid.scale, ellipsoid.clip_norm)
    assert close(answer.astype(float) * ellipsoid.grid, wanted, dtype, len(rows))
    annotate(benchmark, rows)


@pytest.mark.parametrize("name", peers.PEERS)
@pytest.mark.parametrize("d", PEER_DS)
def test_peer(benchmark, d, name):
    benchmark.group = f"float32, d = {d}"
    rows = measure.rows_of(d, "float32", MEGABYTES)[: peers.SMALL.get(name, 1 << 40) // d]
    ellipsoid = measure.half_clipped(d)
    arguments = ellipsoid.center, ellipsoid.scale, ellipsoid.clip_norm
    answer = benchmark(peers.PEERS[name], rows, *arguments)
    wanted = ours(rows, ellipsoid).astype(float) * ellipsoid.grid
    assert name in peers.OTHER_CLIP or close(answer, wanted, "float32", len(rows))
    annotate(benchmark, rows)
