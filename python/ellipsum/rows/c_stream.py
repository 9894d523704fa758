"""An Arrow C stream as its arrays, one at a time.

pyarrow reads such a stream as record batches, and a record batch cannot say that a whole row
is null: a stream of structs with a null row, which a Polars Series can give, breaks off there.
As struct arrays the rows come as they are. (Arrow specification, "The Arrow C stream interface".)
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import ModuleType
from typing import Any

__all__ = ["CStream"]

_ARRAY_BYTES, _SCHEMA_BYTES = 80, 72  # sizeof(struct ArrowArray), sizeof(struct ArrowSchema)
_RELEASE_OF_ARRAY = 64  # offset of ArrowArray.release: null at the end of the stream

_Next = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


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
        schema = ctypes.create_string_buffer(_SCHEMA_BYTES)
        if self._stream.get_schema(self._at, ctypes.addressof(schema)):
            raise OSError("the stream has no schema")
        self.type = pa.DataType._import_from_c(ctypes.addressof(schema))

    def __iter__(self) -> Iterator[Any]:
        """Yield the arrays; OSError where the producer fails."""
        while True:
            array = ctypes.create_string_buffer(_ARRAY_BYTES)
            if self._stream.get_next(self._at, ctypes.addressof(array)):
                raise OSError("the stream broke off")
            if not ctypes.c_void_p.from_buffer(array, _RELEASE_OF_ARRAY).value:
                return
            yield self._pa.Array._import_from_c(ctypes.addressof(array), self.type)


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(get(capsule, name))
