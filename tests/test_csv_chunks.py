"""The text of a CSV: whole lines, wherever chunks end, in memory that is used again."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pytest

from ellipsum.rows import csv_chunks
from ellipsum.rows.csv_chunks import Chunks

LINES = [b"", b"1,2", b"3" * 50, b"x" * 400, b"4,5\xc3\xa9"]


def text_of(lines: int, seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    return b"\n".join(LINES[k] for k in rng.integers(len(LINES), size=lines)) + b"\n"


def chunks_of(path, take_back=True, header=False):
    """Copies of all chunks, and where each of them was."""
    found, places = [], []
    with Chunks(pa, str(path), b",") as chunks:
        for chunk, _ in chunks.rest(header):
            found.append(bytes(chunk))
            places.append(id(chunk))
            if take_back:
                chunks.take_back(chunk)
    return found, places


@pytest.mark.parametrize("size", [1, 7, 64, 300, 1 << 20])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("ended", [False, True])
def test_chunks_are_the_lines(tmp_path, monkeypatch, size, name, header, ended):
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", size)
    text, path = text_of(300), tmp_path / name
    written = text if ended else text + b"7,8"
    path.write_bytes(gzip.compress(written) if name.endswith(".gz") else written)
    found, _ = chunks_of(path, header=header)
    wanted = text if ended else text + b"7,8\n"
    assert b"".join(found) == (wanted[wanted.index(b"\n") + 1 :] if header else wanted)
    assert all(chunk.endswith(b"\n") for chunk in found)


def test_a_chunk_that_was_taken_back_is_used_again(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 1 << 12)
    path = tmp_path / "x.csv"
    path.write_bytes(b"1,2\n" * 20_000)
    again, places = chunks_of(path)
    assert len(places) > 10 and len(set(places)) == 1
    assert again == chunks_of(path, take_back=False)[0]


def test_a_chunk_that_is_still_looked_at_is_not_used_again(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 1 << 10)
    path = tmp_path / "x.csv"
    path.write_bytes(b"".join(b"%05d\n" % k for k in range(5000)))
    seen, held = [], []
    with Chunks(pa, str(path), b",") as chunks:
        for chunk, _ in chunks.rest(False):
            held.append(memoryview(chunk))
            seen.append(bytes(chunk))
            chunks.take_back(chunk)
    assert len(held) > 10
    assert [bytes(view) for view in held] == seen


def test_where_chunks_end_follows_from_the_file_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 1 << 14)
    monkeypatch.setattr(csv_chunks, "_LAST_BYTES", 1 << 10)
    path = tmp_path / "x.csv"
    path.write_bytes(b"12,34\n" * 50_000)
    once = chunks_of(path, take_back=False)[0]
    assert once == chunks_of(path)[0]
    sizes = np.array([len(chunk) for chunk in once])
    assert sizes[0] > 16_000 and sizes[-2] < 1040
    assert np.all(np.diff(sizes) <= len(b"12,34\n"))
