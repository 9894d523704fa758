"""The text of a CSV: whole lines, wherever chunks end, in memory that is used again."""

from __future__ import annotations

import gzip
import random
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from ellipsum.jobs import resumable
from ellipsum.rows import csv_chunks, csv_file, csv_lines
from ellipsum.rows.csv_chunks import Chunks
from ellipsum.rows.files import open_rows

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


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_where_chunks_end_follows_from_the_file_alone(tmp_path, monkeypatch, name):
    """And not from what was given back meanwhile."""
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 1 << 14)
    monkeypatch.setattr(csv_chunks, "_LAST_BYTES", 1 << 10)
    path, text = tmp_path / name, b"12,34\n" * 50_000
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    once = chunks_of(path, take_back=False)[0]
    assert once == chunks_of(path)[0]
    late, found = [], []
    with Chunks(pa, str(path), b",") as chunks:
        for chunk, _ in chunks.rest(False):
            found.append(bytes(chunk))
            late.append(chunk)
            if len(late) == 3:
                for held in late:
                    chunks.take_back(held)
                late = []
    assert once == found
    sizes = np.array([len(chunk) for chunk in once])
    if name == "x.csv":
        assert sizes[0] > 16_000 and sizes[-2] < 1040
        assert np.all(np.diff(sizes) <= len(b"12,34\n"))


def test_who_cuts_files_otherwise_says_so():
    """A checkpoint counts chunks: with another constant here the job's format is another, too."""
    cut = csv_chunks.CHUNK_BYTES, csv_chunks._LAST_PART, csv_chunks._LAST_BYTES
    more = csv_chunks._HEADER_BYTES, csv_chunks.LINE_BYTES
    assert (resumable._FORMAT, *cut, *more) == (7, 5 << 19, 4, 3 << 18, 1 << 16, 1 << 28)


@pytest.mark.parametrize("odd", [0, 0.05])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_no_chunk_shows_in_anothers_rows_or_labels(tmp_path, monkeypatch, name, odd):
    """Whatever the order in which threads are done with their chunks."""
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 1 << 11)
    monkeypatch.setattr(csv_chunks, "_LAST_BYTES", 1 << 9)
    monkeypatch.setattr(csv_file, "_MOST_PARSERS", 8)
    monkeypatch.setattr(pa, "cpu_count", lambda: 8)
    nap = random.Random(0)
    for method in ("numbers", "parse"):
        real = getattr(csv_lines.Parser, method)

        def slow(self, chunk, real=real):
            time.sleep(nap.random() * 0.002)
            made = real(self, chunk)
            time.sleep(nap.random() * 0.002)
            return made

        monkeypatch.setattr(csv_lines.Parser, method, slow)
    rng = np.random.default_rng(1)
    broken = rng.random(6000) < odd
    lines = [f"{k},u{k},{-k}" + ",more" * int(broken[k]) for k in range(6000)]
    text = "\n".join(["a,user,b", *lines]).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    rows, labels = [], []
    for block, (label,) in open_rows(path, by=["user"]).labelled(2):
        rows.append(np.asarray(block))
        labels += label.to_pylist()
    wanted = np.column_stack([np.arange(6000.0), -np.arange(6000.0)])
    wanted[broken] = np.nan
    np.testing.assert_array_equal(np.concatenate(rows), wanted)
    assert labels == [None if odd_one else f"u{k}" for k, odd_one in enumerate(broken)]


def test_a_lack_of_memory_is_no_odd_line(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 100)
    real = pa.csv.read_csv

    def without_room(source, **options):
        if source.size() > 100:
            raise pa.ArrowMemoryError("malloc of size 300 failed")
        return real(source, **options)

    monkeypatch.setattr(pa.csv, "read_csv", without_room)
    with pytest.raises(MemoryError):
        list(open_rows(path).batches(2))
