"""Numba twins of the C++ kernels: same signatures, same integers, no compiler."""

from .clip import FewRows, clip_sum, distance_counts, group_sums
from .exact_sum import merge
from .form import FormTable
from .gaussian_pair import PairTable
from .keys import (
    find_fixed,
    find_integers,
    find_strings,
    integer_digests,
    python_texts,
    seat_strings,
    string_digests,
)
from .noise import keystream, rounded_gaussian, rounded_gaussian_of_words
from .records import plain_records
from .shares import CLIP_ROWS_LIMIT
from .users import RUN_STATE_WORDS, row_ranks, run_means

__all__ = [
    "CLIP_ROWS_LIMIT",
    "RUN_STATE_WORDS",
    "FewRows",
    "FormTable",
    "PairTable",
    "clip_sum",
    "distance_counts",
    "find_fixed",
    "find_integers",
    "find_strings",
    "group_sums",
    "integer_digests",
    "keystream",
    "merge",
    "plain_records",
    "python_texts",
    "rounded_gaussian",
    "rounded_gaussian_of_words",
    "row_ranks",
    "run_means",
    "seat_strings",
    "string_digests",
]
