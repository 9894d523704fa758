"""An Arrow C stream as its arrays, one at a time.

A record batch cannot say that a whole row is null: as record batches a stream of structs with a
null row, which a Polars Series can give, breaks off there. So batches are read as such where no row
is null, and otherwise come as struct arrays. (Arrow specification, "The Arrow C stream interface".)
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["MOST_ROWS", "CStream"]

#: No memory holds more: of a length or an offset beyond it some address would wrap around.
MOST_ROWS = 1 << 46

_SCHEMA_BYTES = 72  # sizeof(struct ArrowSchema)
_CHILDREN_OF_SCHEMA, _RELEASE_OF_SCHEMA = 32, 56  # offsets of its n_children and release
_HEAD_BYTES = 24  # of struct ArrowArray: length, null_count and offset
_STRUCT = b"+s"

_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Next = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Array(ctypes.Structure):
    """struct ArrowArray."""

    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),  # null at the end of the stream
        ("private_data", ctypes.c_void_p),
    )


class _Stream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = (
        ("get_schema", _Next),
        ("get_next", _Next),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class CStream:
    """The arrays of a producer's stream.

    Parameters
    ----------
    pa : module pyarrow
    data : object with ``__arrow_c_stream__``

    Attributes
    ----------
    schema : pyarrow.Schema or None
        Of the batches; None where the stream is of no structs.
    type : pyarrow.DataType
        Of every array; a struct where the stream is of record batches.
    """

    def __init__(self, pa: ModuleType, data: Any) -> None:
        self._pa = pa
        self._capsule = data.__arrow_c_stream__()  # owns the stream, and releases it
        self._at = _pointer(self._capsule, b"arrow_array_stream")
        self._stream = _Stream.from_address(self._at)
        if not self._stream.release:
            raise OSError("the stream was read before")
        if not (self._stream.get_schema and self._stream.get_next):
            raise OSError("the stream is none")
        schema = ctypes.create_string_buffer(_SCHEMA_BYTES)
        at = ctypes.addressof(schema)
        if self._stream.get_schema(self._at, at):
            raise OSError("the stream has no schema")
        self.schema = self.type = None
        layout = ctypes.c_char_p.from_buffer(schema).value  # the format comes first
        self._width = ctypes.c_int64.from_buffer(schema, _CHILDREN_OF_SCHEMA).value
        if layout is None or self._width < 0:
            _release(ctypes.c_void_p.from_buffer(schema, _RELEASE_OF_SCHEMA).value, at)
            raise OSError("the stream has no schema")
        if layout == _STRUCT:
            self.schema = pa.Schema._import_from_c(at)
        else:
            self.type = pa.DataType._import_from_c(at)

    def __iter__(self) -> Iterator[Any]:
        """Yield the arrays, of a schema as record batches, or as structs where a row may be null;
        OSError where the producer fails."""
        pa = self._pa
        while True:
            array = _Array()
            at = ctypes.addressof(array)
            if self._stream.get_next(self._at, at):
                raise OSError("the stream broke off")
            if not array.release:
                return
            if self.schema is None:
                yield pa.Array._import_from_c(at, self.type)
                continue
            if not self._lies_in_memory(array):
                _release(array.release, at)
                raise OSError("the stream has an array where no memory is")
            if array.null_count or array.offset:
                yield pa.Array._import_from_c(at, pa.struct(list(self.schema)))
            else:
                yield pa.RecordBatch._import_from_c(at, self.schema)

    def _lies_in_memory(self, array: _Array) -> bool:
        """Whether rows and columns begin and end where memory may be: pyarrow does not look."""
        if array.n_children != self._width or (self._width and not array.children):
            return False
        given = (ctypes.c_void_p * self._width).from_address(array.children or 0)
        children = [child for child in given if child]
        if len(children) < self._width:
            return False
        own = array.length, array.null_count, array.offset
        heads = np.array(own, np.int64).tobytes() + b"".join(
            [ctypes.string_at(x, _HEAD_BYTES) for x in children]
        )
        length, _, offset = np.frombuffer(heads, np.int64).reshape(-1, 3).T
        if not ((0 <= length) & (length <= MOST_ROWS)).all():
            return False
        return bool(((0 <= offset) & (offset <= MOST_ROWS - length)).all())


def _release(function: int | None, at: int) -> None:
    """Let the producer have back what nobody takes."""
    if function:
        _Release(function)(at)


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(get(capsule, name))
