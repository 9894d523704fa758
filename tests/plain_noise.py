"""Noise that a seed and a draw's use decide alone, for tests of how far off a release is.

Keys are bound to the region, the budget and the exact sum as well, to the last bit. Of a plan some
of them come from logarithms, sums and products whose last bit depends on the kernels that NumPy and
OpenBLAS take on a processor; with another bit a seed gives other noise. These keys leave that out,
so that a test over a fixed seed sees the same noise on every processor.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from unittest import mock

from ellipsum.noise_keys import KEY_BYTES, JobKeys, Use


def key_of(self: JobKeys, use: Use, *draw: object) -> bytes:
    """In place of `JobKeys.of`: of what is drawn, whole numbers count alone."""
    whole = [part for part in draw if isinstance(part, int)]
    name = repr((use.value, whole)).encode()
    return hashlib.blake2b(name, digest_size=KEY_BYTES, key=self._root).digest()


@contextlib.contextmanager
def noise_of_seeds() -> Iterator[None]:
    """Where a region's last bit decides no noise."""
    with mock.patch.object(JobKeys, "of", key_of):
        yield
