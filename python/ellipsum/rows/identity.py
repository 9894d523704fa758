"""What tells files, as they are now and as they are read, from others: a job is of them."""

from __future__ import annotations

import os
from typing import Any

from .arrow import pyarrow
from .files import Rows
from .npz_file import NpzFile
from .numpy_file import NumpyFile
from .sources import facts_of

__all__ = ["decoder_of", "inputs_of"]


def inputs_of(rows: Rows) -> list[list[Any]]:
    """Path, size and time of change of each file: what a job is of. A copy that was put in its
    place, with its time, is the file."""
    return [[os.path.realpath(path), *facts_of(path)[:2]] for path in rows.paths]


def decoder_of(rows: Rows) -> dict[str, str]:
    """The version of pyarrow, where it decodes a file: how it cuts batches is nowhere promised, and
    a place is a number of them."""
    if all(isinstance(source, (NumpyFile, NpzFile)) for source in rows._sources):
        return {}
    return {"pyarrow": str(pyarrow("reading files").__version__)}
