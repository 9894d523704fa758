"""Fuzz the readers: any bytes as a CSV, an array file, an Arrow file or a list of records.

    python tests/fuzz/fuzz_readers.py -max_total_time=60 FOLDER tests/fuzz/corpus_readers

atheris (libFuzzer for Python) makes the bytes; FOLDER keeps what reaches new code. The first
byte says what the rest is. What must hold:

- the row of a CSV's line, or of a list's item, is the one that it gives alone, bit for bit;
- of a CSV without names nothing is raised, nor of a list; of other files only what is declared;
- no message has text of a record in it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings

import numpy as np

from ellipsum.rows.batches import as_batches
from ellipsum.rows.files import open_rows
from ellipsum.rows.sources import reading

DECLARED = (OSError, TypeError, ValueError)
MODES = ("csv", "csv with names", "tsv", "list", "npy", "arrow", "stream", "parquet")
MAGIC = (b"PAR1", b"ARROW1", b"\x93NUMPY")
LINES = 30
#: Text of a record this long in a message is no chance.
TEXT = 6

warnings.simplefilter("error")
FOLDER = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


def check(data: bytes) -> None:
    """Raise AssertionError where a promise is broken."""
    if len(data) < 3:
        return
    mode, d, rest = MODES[data[0] % len(MODES)], data[1] % 3 + 1, data[2:]
    if mode == "csv with names":
        check_names(rest, d)
    elif mode in ("csv", "tsv"):
        check_lines(rest, d, mode)
    elif mode == "list":
        check_list(rest, d)
    else:
        check_file(rest, d, {"stream": "arrows"}.get(mode, mode))


def rows_of(content: bytes, d: int, suffix: str, *, header: bool = False) -> list[bytes]:
    """The rows that a file gives, as sorted bytes."""
    path = os.path.join(FOLDER, f"x.{suffix}")
    with open(path, "wb") as file:
        file.write(content)
    blocks = list(open_rows(path, header=header).batches(d))
    assert all(block.ndim == 2 and block.shape[1] == d for block in blocks)
    return as_bytes(blocks)


def as_bytes(blocks: list[np.ndarray]) -> list[bytes]:
    """Rows as sorted bytes: a NaN is a NaN, whatever its bits."""
    rows = [row + 0.0 for block in blocks for row in np.asarray(block, np.float64)]
    return sorted(np.where(np.isnan(row), np.nan, row).tobytes() for row in rows)


def check_lines(content: bytes, d: int, suffix: str) -> None:
    lines = content.split(b"\n")[:LINES]
    together = rows_of(b"\n".join(lines) + b"\n", d, suffix)
    alone = [row for line in lines for row in rows_of(line + b"\n", d, suffix)]
    assert len(together) == len(lines)
    assert together == sorted(alone)
    assert together == rows_of(b"\n".join(lines[::-1]) + b"\n", d, suffix)


def check_names(content: bytes, d: int) -> None:
    if content.startswith(MAGIC):  # the names, which are public, choose the format
        return
    names, *lines = content.split(b"\n")[: LINES + 1]
    whole = b"\n".join([names, *lines]) + b"\n"
    try:
        together = rows_of(whole, d, "csv", header=True)
    except DECLARED as error:
        quotes_nothing(error, lines)
        # The names alone are what was refused.
        try:
            rows_of(names + b"\n", d, "csv", header=True)
        except type(error) as same:
            assert str(same) == str(error)
            return
        raise AssertionError("a record decided between an error and rows") from error
    one = [rows_of(names + b"\n" + line + b"\n", d, "csv", header=True) for line in lines]
    assert together == sorted(row for rows in one for row in rows)
    assert len(together) == len(lines)


ATOMS = (
    None, True, 0, 1, -2.5, 10**400, 2**63, float("inf"), "7", b"7", (), {}, 1j, object(),
    np.float32(0.1), np.int8(3), np.datetime64(1, "s"), np.ma.masked, np.ones(2), [1], "",
)  # fmt: skip


def check_list(content: bytes, d: int) -> None:
    """A byte is an atom, or opens or closes a list."""
    stack: list[list[object]] = [[]]
    for byte in content[:60]:
        if byte % 4 == 0 and len(stack) < 4:
            stack.append([])
        elif byte % 4 == 1 and len(stack) > 1:
            done = stack.pop()
            stack[-1].append(np.array(done) if byte % 8 == 5 and all_floats(done) else done)
        else:
            stack[-1].append(ATOMS[byte // 4 % len(ATOMS)])
    records = stack[0]
    together = as_bytes(list(as_batches(records, d)))
    assert len(together) == len(records)
    assert together == sorted(
        row for record in records for row in as_bytes(list(as_batches([record], d)))
    )


def all_floats(items: list[object]) -> bool:
    return all(isinstance(item, float) for item in items)


def check_file(content: bytes, d: int, suffix: str) -> None:
    try:
        rows_of(content, d, suffix)
    except DECLARED as error:
        assert "\n" not in str(error) and len(str(error)) < 400 + len(FOLDER)
        assert error.__suppress_context__ or error.__cause__ is None


def quotes_nothing(error: Exception, lines: list[bytes]) -> None:
    message = str(error)
    for line in lines:
        text = line.decode("utf-8", "replace")
        for start in range(len(text) - TEXT + 1):
            piece = text[start : start + TEXT]
            assert piece not in message or piece in own_words(), "a message quotes a record"


def own_words() -> str:
    """What messages say of themselves: read from the sources."""
    if not _WORDS:
        folder = os.path.dirname(reading.__code__.co_filename)
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    _WORDS.append(file.read())
        _WORDS.append(FOLDER)
    return "".join(_WORDS)


_WORDS: list[str] = []


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["ellipsum"], enable_loader_override=False):
        for name in [name for name in sys.modules if name.startswith("ellipsum.rows")]:
            del sys.modules[name]
        global as_batches, open_rows
        from ellipsum.rows.batches import as_batches
        from ellipsum.rows.files import open_rows
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
