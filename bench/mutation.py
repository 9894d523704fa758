"""What a mutation is, and the names that the lists of them share."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """``old`` stands once in ``file``; ``tests`` are pytest's arguments.

    ``target``: the instruction set that alone compiles this text, for a processor that has it; else
    C++ is built for the baseline.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str
    target: str = "baseline"


P, T, C = "python/ellipsum/", "python/ellipsum/kernels/twins/", "cpp/core/"
SUM_TESTS = "tests/test_sensitivity.py tests/test_exact_sum.py tests/test_clip_kernels.py"
FLOOR_TESTS = "tests/test_projection_floor.py tests/test_projection_release.py"
