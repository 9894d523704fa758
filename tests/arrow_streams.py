"""Producers of Arrow data that the tests share."""

from __future__ import annotations

import numpy as np

from ellipsum.rows.batches import as_batches


class Stream:
    """Only the Arrow stream interface, as Polars or DuckDB have it."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class OneArray:
    """Only the Arrow array interface."""

    def __init__(self, array):
        self._array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self._array.__arrow_c_array__(requested_schema)


def gather(data, d):
    return np.concatenate([np.empty((0, d)), *as_batches(data, d)])
