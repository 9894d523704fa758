"""Every container and reader, as a way from a list of records to rows."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from ellipsum import Ellipsoid, ExactSum
from ellipsum.rows.batches import as_batches
from ellipsum.rows.files import open_rows
from odd_records import LINES, NUMBERS, OBJECTS

__all__ = ["CONTAINERS", "Container", "D"]

D = 2


class Container(NamedTuple):
    """A name; odd records and good ones; and what reads a list of such records."""

    name: str
    odd: Sequence[Any]
    good: Sequence[Any]
    read: Callable[[Sequence[Any], Path], Iterable[np.ndarray]]
    path: Callable[[Sequence[Any], Path], tuple[Path, list[str]]] | None = None


# ---- CSV -------------------------------------------------------------------------------


def csv(suffix: str, names: bytes, end: bytes, *, last: bool) -> Container:
    mark = b"\t" if "tsv" in suffix else b","

    def write(lines: Sequence[bytes], folder: Path) -> tuple[Path, list[str]]:
        path = folder / f"x.{suffix}"
        content = names.replace(b",", mark) + b"".join(line + end for line in lines)
        if not last and lines and lines[-1] in GOOD_LINES:
            content = content.removesuffix(end)
        path.write_bytes(gzip.compress(content, 1) if suffix.endswith("gz") else content)
        return path, [] if names else ["--no-header"]

    def read(lines: Sequence[bytes], folder: Path) -> Iterator[np.ndarray]:
        return open_rows(write(lines, folder)[0], header=bool(names)).batches(D)

    odd = [line.replace(b",", mark) for line in LINES] if mark == b"\t" else LINES
    good = [line.replace(b",", mark) for line in GOOD_LINES]
    name = f"{suffix} {names!r} {end!r} {last}"
    return Container(name, odd, good, read, write)


GOOD_LINES = [b"0.5,0.25", b"-1,2e3", b'"7",8']

CSV = [
    csv("csv", b"", b"\n", last=True),
    csv("csv", b"", b"\r\n", last=False),
    csv("csv", b"a,b\n", b"\n", last=False),
    csv("csv", b"\xef\xbb\xbfa,b\r\n", b"\r\n", last=True),
    csv("tsv", b"", b"\n", last=True),
    csv("txt.gz", b"", b"\n", last=True),
]

# ---- typed columns ---------------------------------------------------------------------

TYPES = {
    "float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64(), "int8": pa.int8(),
    "int64": pa.int64(), "uint8": pa.uint8(), "uint64": pa.uint64(), "bool": pa.bool_(),
    "decimal": pa.decimal128(20, 3), "wide decimal": pa.decimal256(70, 30),
}  # fmt: skip
MORE = [127, -128, 255, 2**63 - 1, -(2**63), 2**64 - 1, True, Decimal("0.001"), 99999]


def values_of(kind: pa.DataType) -> list[Any]:
    """The odd numbers that a column of the type can have."""
    found = []
    for value in [*NUMBERS, *MORE]:
        try:
            found.append(pa.array([fit(value, kind)], kind)[0].as_py())
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
            continue
    return found


def fit(value: Any, kind: pa.DataType) -> Any:
    """A value as pyarrow wants it of that type."""
    if pa.types.is_boolean(kind) and value in (0, 1):
        return bool(value)
    if value is None or not pa.types.is_float16(kind):
        return value
    with np.errstate(all="ignore"):
        return np.float16(value)


def table_of(kind: pa.DataType) -> Callable[[Sequence[Any]], pa.Table]:
    def table(records: Sequence[Any]) -> pa.Table:
        columns = zip(*records, strict=True) if records else ([], [])
        cells = [[fit(value, kind) for value in column] for column in columns]
        return pa.table([pa.array(column, kind) for column in cells], names=["a", "b"])

    return table


def in_memory(convert: Callable[[Any], Any]) -> Callable[[Any, Path], Iterator[np.ndarray]]:
    return lambda table, _folder: as_batches(convert(table), D)


def in_file(suffix: str, write: Callable[[pa.Table, Path], None]) -> Callable[..., Any]:
    def read(table: pa.Table, folder: Path) -> Iterator[np.ndarray]:
        write(table, folder / f"x.{suffix}")
        return open_rows(folder / f"x.{suffix}").batches(D)

    return read


def write_ipc(writer: Callable[..., Any]) -> Callable[[pa.Table, Path], None]:
    def write(table: pa.Table, path: Path) -> None:
        with pa.OSFile(str(path), "wb") as file, writer(file, table.schema) as out:
            out.write_table(table, max_chunksize=3)

    return write


class Stream:
    """Nothing but the C stream of Arrow data."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


WAYS: dict[str, Callable[[pa.Table, Path], Iterable[np.ndarray]]] = {
    "table": in_memory(lambda t: t),
    "reader": in_memory(lambda t: t.to_reader(max_chunksize=2)),
    "stream": in_memory(Stream),
    "batches": in_memory(lambda t: iter(t.to_batches(max_chunksize=2))),
    "polars": in_memory(polars.from_arrow),
    "duckdb": in_memory(lambda t: duckdb.from_arrow(t)),
    "dataset": in_memory(pyarrow.dataset.dataset),
    "scanner": in_memory(lambda t: pyarrow.dataset.Scanner.from_batches(t.to_reader(2))),
    "lazy frame": in_memory(lambda t: polars.from_arrow(t).lazy()),
    "pandas": in_memory(lambda t: t.to_pandas(types_mapper=pandas.ArrowDtype)),
    "parquet": in_file("parquet", lambda t, p: pq.write_table(t, p, row_group_size=3)),
    "arrow": in_file("arrow", write_ipc(pa.ipc.new_file)),
    "arrows": in_file("arrows", write_ipc(pa.ipc.new_stream)),
}
#: What a producer has no type for.
LACKS = {
    *(("polars", "wide decimal"), ("lazy frame", "wide decimal")),
    *(("duckdb", "wide decimal"), ("duckdb", "float16")),
}


def columns() -> Iterator[Container]:
    for name, kind in TYPES.items():
        odd, make = values_of(kind), table_of(kind)
        records = [(value, 1) for value in odd] + [(0, value) for value in odd]
        for way, read in WAYS.items():
            if (way, name) not in LACKS:
                yield Container(
                    f"{name} columns, {way}",
                    records,
                    [(1, 0), (0, 1)],
                    lambda records, folder, read=read, make=make: read(make(records), folder),
                )


# ---- lists and structs -----------------------------------------------------------------

LISTS = {
    "list": pa.list_(pa.float64()), "large list": pa.large_list(pa.float32()),
    "fixed list": pa.list_(pa.float64(), D), "list of int": pa.list_(pa.int64()),
    "list of decimal": pa.list_(pa.decimal128(9, 2)),
}  # fmt: skip
IN_TABLES = ("table", "stream", "polars", "lazy frame", "duckdb", "dataset")
STRUCT = pa.struct({"a": pa.float64(), "b": pa.int32()})
ARRAYS: dict[str, Callable[[pa.Array], Any]] = {
    "array": lambda a: a,
    "chunked array": lambda a: pa.chunked_array([a[:2], a[2:]], a.type),
    "stream": lambda a: Stream(pa.chunked_array([a[:2], a[2:]], a.type)),
    "polars": lambda a: polars.Series(a),
}


def nested() -> Iterator[Container]:
    for name, kind in LISTS.items():
        sized = pa.types.is_fixed_size_list(kind)
        odd: list[Any] = [None, [None, 1], [1, None], [None, None]]
        odd += [] if sized else [[], [1], [1, 2, 3], [None]]
        for way, wrap in ARRAYS.items():
            yield Container(f"{name}, {way}", odd, [[1, 2], [3, 4]], arrays_of(kind, wrap))
        for way in (*IN_TABLES, "parquet", "arrow", "arrows"):
            read = WAYS[way]
            yield Container(
                f"{name} column, {way}",
                odd,
                [[1, 2], [3, 4]],
                lambda records, folder, read=read, kind=kind: read(
                    pa.table({"v": pa.array(list(records), kind)}), folder
                ),
            )
    odd = [None, {"a": None, "b": 1}, {"a": 1.5, "b": None}, {}]
    for way, wrap in ARRAYS.items():
        yield Container(f"struct, {way}", odd, [{"a": 1.0, "b": 2}], arrays_of(STRUCT, wrap))


def arrays_of(kind: pa.DataType, wrap: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda records, _folder: as_batches(wrap(pa.array(list(records), kind)), D)


# ---- NumPy, pandas, lists ----------------------------------------------------------------

FLOATS = ("f2", "f4", "f8", ">f8", ">f4", "g")
DTYPES = (*FLOATS, "i1", "u8", ">i4", "?")


def array_of(dtype: str) -> Callable[[Sequence[Any]], np.ndarray]:
    def array(records: Sequence[Any]) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.array(list(records), np.float64).reshape(-1, D).astype(dtype)

    return array


def save_zipped(records: np.ndarray, folder: Path, whole: bool) -> Iterator[np.ndarray]:
    if whole:
        np.savez_compressed(folder / "x.npz", rows=records)
    else:
        np.savez(folder / "x.npz", a=records[:, 0], b=records[:, 1])
    return open_rows(folder / "x.npz").batches(D)


def save(records: np.ndarray, folder: Path) -> Iterator[np.ndarray]:
    np.save(folder / "x.npy", records)
    return open_rows(folder / "x.npy").batches(D)


NUMPY: dict[str, Callable[[np.ndarray, Path], Iterable[np.ndarray]]] = {
    "array": lambda a, _: as_batches(a, D),
    "strided": lambda a, _: as_batches(np.asfortranarray(np.repeat(a, 2, 0))[::-2], D),
    "list of rows": lambda a, _: as_batches(list(a), D),
    "list of batches": lambda a, _: as_batches([a[:2], a[2:]], D),
    "iterator of rows": lambda a, _: as_batches(iter(a), D),
    "npy": save,
    "Fortran npy": lambda a, folder: save(np.asfortranarray(a), folder),
    "npz": lambda a, folder: save_zipped(a, folder, True),
    "Fortran npz": lambda a, folder: save_zipped(np.asfortranarray(a), folder, True),
    "npz of columns": lambda a, folder: save_zipped(a, folder, False),
    "pandas": lambda a, _: as_batches(pandas.DataFrame(a.astype(a.dtype.newbyteorder("="))), D),
}


def numbers() -> Iterator[Container]:
    for dtype in DTYPES:
        finite = [x for x in NUMBERS if x is not None and (dtype in FLOATS or 0 <= x < 100)]
        odd = [(value, 1) for value in finite] + [(0, value) for value in finite]
        make = array_of(dtype)
        for way, read in NUMPY.items():
            if (way, dtype) != ("pandas", "g"):  # pandas keeps no long doubles in Arrow
                yield Container(
                    f"{dtype} {way}",
                    odd,
                    [(1, 0), (0, 1)],
                    lambda records, folder, read=read, make=make: read(make(records), folder),
                )


def objects() -> Iterator[Container]:
    good = [[1, 2], (3, 4.5)]
    yield Container("list", OBJECTS, good, lambda r, _: as_batches(list(r), D))
    yield Container("tuple", OBJECTS, good, lambda r, _: as_batches(tuple(r), D))
    yield Container("iterator", OBJECTS, good, lambda r, _: as_batches(iter(r), D))
    yield Container(
        "between batches", OBJECTS, good, lambda r, _: as_batches([BATCH, *r, BATCH], D)
    )
    yield Container("added", OBJECTS, good, added)
    for kind in ("Int64", "Float64", "boolean", "Float32", "int64[pyarrow]", "bool[pyarrow]"):
        yield Container(
            f"pandas {kind}",
            [(None, 1), (1, None), (None, None)],
            [(1, 0), (0, 1)],
            lambda r, _, kind=kind: as_batches(
                pandas.DataFrame(list(r), columns=["a", "b"], dtype=object).astype(kind), D
            ),
        )


BATCH = np.zeros((1, D))


def added(records: Sequence[Any], _folder: Path) -> Iterator[np.ndarray]:
    """What `ExactSum.add` hands to a kernel."""
    return ExactSum(Ellipsoid.ball(1.0, d=D))._parts(list(records))


CONTAINERS = [*CSV, *columns(), *nested(), *numbers(), *objects()]
