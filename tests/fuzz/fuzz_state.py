"""Fuzz `ExactSum.from_bytes`: no bytes give a sum that breaks the bound.

    python tests/fuzz/fuzz_state.py -max_total_time=60 FOLDER tests/fuzz/corpus_state

The input is tried as it is, and with its checksum made right, so that the checks behind it are
reached. What must hold: ValueError or a sum; of a sum that its counts are in order, that each
coordinate is one that so many rows can have, that its bytes give the same sum again, and that
a row added to it moves it by `row_bound` at most.
"""

from __future__ import annotations

import hashlib
import math
import sys
import warnings

import numpy as np

from ellipsum.exact_sum import ExactSum

CHECKSUM = 16
ROWS = (0.0, 1.0, -1e300, 5e-324, math.inf, math.nan)

warnings.simplefilter("error")


def check(data: bytes) -> None:
    """Raise AssertionError where a promise is broken."""
    check_bytes(data)
    body = data[:-CHECKSUM] if len(data) > CHECKSUM else data
    check_bytes(body + hashlib.blake2b(body, digest_size=CHECKSUM).digest())


def check_bytes(data: bytes) -> bool:
    """Whether the bytes are a sum; AssertionError if they should not be."""
    try:
        total = ExactSum.from_bytes(data)
    except ValueError as error:
        assert "\n" not in str(error)
        return False
    before = total.integers()
    bound = total.ellipsoid.row_bound()
    assert math.isfinite(bound) and 0 <= total.clipped <= total.count
    assert all(abs(int(q)) <= total.count * (bound + 2) * (1 + 2**-40) for q in before)
    assert ExactSum.from_bytes(total.to_bytes()).to_bytes() == total.to_bytes()
    if total.nonfinite == "center" and total.count < 2**62:
        for value in ROWS:
            added = ExactSum.from_bytes(data).add(np.full((1, total.ellipsoid.d), value))
            moved = [int(q) - int(p) for q, p in zip(added.integers(), before, strict=True)]
            assert math.sqrt(sum(q * q for q in moved)) <= bound
    return True


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["ellipsum"], enable_loader_override=False):
        for name in ("ellipsum.sum_bytes", "ellipsum.ellipsoid", "ellipsum.exact_sum"):
            sys.modules.pop(name, None)
        global ExactSum
        from ellipsum.exact_sum import ExactSum
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
