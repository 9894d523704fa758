"""Signatures of the C++ kernels; the Numba twins in ``twins`` have the same ones.

A region has a scale (d entries), a matrix (d x d), or, of low rank, both: then the matrix is (2, d,
rank), U and V of diag(scale) + U V'."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_Doubles = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Words = NDArray[np.uint64]

CLIP_ROWS_LIMIT: int
RUN_STATE_WORDS: int

def choose_target(forced: str) -> str: ...
def targets() -> list[str]: ...
def variants() -> list[str]: ...
def variant_of(rows: object, halves: bool = False, ball: bool = False) -> tuple[str, str]: ...

class FewRows:
    def __init__(
        self,
        center: _Doubles,
        scale: _Doubles,
        limit: _Doubles,
        radius: float,
        low: _Words,
        high: _Ints,
    ) -> None: ...
    def add(self, rows: NDArray[Any]) -> bool: ...

def clip_sum(
    rows: Any,
    center: _Doubles,
    scale: _Doubles,
    matrix: _Doubles,
    limit: _Doubles,
    radius: float,
    partial: _Ints,
    threads: int = 1,
    halves: bool = False,
    absent: _Ints = ...,
    stretch: bool = False,
    lower: _Doubles = ...,
    upper: _Doubles = ...,
) -> tuple[int, int]: ...
def group_sums(
    rows: NDArray[Any],
    index: _Ints,
    center: _Doubles,
    scale: _Doubles,
    matrix: _Doubles,
    limit: _Doubles,
    radius: float,
    table: _Ints,
    counts: _Ints,
    stretch: bool = False,
) -> tuple[int, int]: ...
def distance_counts(
    rows: Any,
    center: _Doubles,
    scale: _Doubles,
    matrix: _Doubles,
    edges: _Doubles,
    counts: _Ints,
    threads: int = 1,
    absent: _Ints = ...,
    stretch: bool = False,
    lower: _Doubles = ...,
    upper: _Doubles = ...,
) -> None: ...
def plain_records(records: list[Any], rows: _Doubles) -> list[int]: ...
def run_means(
    rows: NDArray[Any], ends: _Ints, state: _Ints, out: _Doubles, divide: bool
) -> None: ...
def row_ranks(rows: NDArray[Any], words: _Words, which: _Ints, ranks: _Words) -> None: ...
def find_strings(
    data: NDArray[np.uint8],
    starts: _Ints,
    ends: _Ints,
    slots: _Words,
    arena: NDArray[np.uint8],
    known: _Ints,
    state: _Words,
    cache: _Words,
    add: bool,
    places: _Ints,
) -> int: ...
def find_integers(
    words: _Words,
    is_signed: bool,
    slots: _Words,
    arena: NDArray[np.uint8],
    known: _Ints,
    state: _Words,
    cache: _Words,
    add: bool,
    places: _Ints,
) -> int: ...
def find_fixed(
    units: NDArray[np.uint8] | NDArray[np.uint32],
    width: int,
    slots: _Words,
    arena: NDArray[np.uint8],
    known: _Ints,
    state: _Words,
    cache: _Words,
    add: bool,
    places: _Ints,
) -> int: ...
def python_texts(cells: Any, starts: _Ints, ends: _Ints) -> NDArray[np.uint8] | None: ...
def seat_strings(slots: _Words, arena: NDArray[np.uint8], known: _Ints, state: _Words) -> None: ...
def string_digests(
    data: NDArray[np.uint8], starts: _Ints, ends: _Ints, person: bytes, out: _Words
) -> None: ...
def integer_digests(words: _Words, is_signed: bool, out: _Words) -> None: ...
def merge(low: _Words, high: _Ints, other_low: _Words, other_high: _Ints) -> None: ...
def keystream(out: _Words, key: bytes | bytearray, nonce: int, start: int) -> None: ...
def rounded_gaussian(
    out: _Ints, sigma: _Doubles, key: bytes | bytearray, start: int, threads: int
) -> _Ints: ...
def rounded_gaussian_of_words(
    out: _Ints, sigma: _Doubles, first: _Words, second: _Words
) -> _Ints: ...

class FormTable:
    def __init__(
        self, weights: _Doubles, dof: _Doubles, noncentrality: _Doubles, normal_sd: float
    ) -> None: ...
    def tail(self, q: float) -> tuple[float, float, float, float, bool, int]: ...
    def tails(self, q: _Doubles, out: _Doubles, threads: int = 1) -> None: ...
    def moment(self, q: float, upper: bool, which: int) -> tuple[float, float, int]: ...
    def quantile(self, log_tail: float, upper: bool) -> tuple[float, float, int]: ...
    def quantiles(
        self, log_tail: _Doubles, upper: _Doubles, out: _Doubles, threads: int = 1
    ) -> None: ...
    def contour(self, q: float) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]: ...
    def hockey_stick(self, epsilon: float) -> tuple[float, float, float, int]: ...
    def hockey_sticks(self, epsilon: _Doubles, out: _Doubles, threads: int = 1) -> None: ...

class PairTable:
    def __init__(self, rows: _Doubles, edge_roundoff: float) -> None: ...
    def cumulants(self, t: float) -> tuple[float, float, float]: ...
    def hockey_stick(self, epsilon: float) -> tuple[float, float, float, int]: ...
    def hockey_sticks(self, epsilon: _Doubles, out: _Doubles, threads: int = 1) -> None: ...
