"""Reading ahead: the same blocks in the same order, one more in memory, errors in their place."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ellipsum import Ellipsoid, ExactSum, open_rows
from ellipsum.rows import ahead
from ellipsum.rows.ahead import mapped_ahead, read_ahead


def counted(made, n, fail_at=None):
    try:
        for k in range(n):
            if k == fail_at:
                raise OSError("damaged")
            made.append(k)
            yield k
    finally:
        made.append("closed")


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_the_blocks_are_the_same_in_their_order(n):
    made = []
    assert list(read_ahead(counted(made, n))) == list(range(n))
    assert made == [*range(n), "closed"]


def test_one_block_is_read_ahead_and_no_more():
    made, most = [], 0
    for k in read_ahead(counted(made, 50)):
        most = max(most, len(made) - k)  # this one, and those ahead of it
        threading.Event().wait(0.001)
    assert most == 2 or made[-1] == "closed"
    assert len(made) == 51


def test_an_error_comes_where_its_block_would():
    made, seen = [], []
    with pytest.raises(OSError, match="damaged"):
        for k in read_ahead(counted(made, 9, fail_at=4)):
            seen.append(k)
    assert seen == [0, 1, 2, 3] and made[-1] == "closed"


def test_leaving_early_ends_the_thread_and_closes_the_file():
    made = []
    source = counted(made, 1000)  # held here: nobody but read_ahead closes it
    blocks = read_ahead(source)
    assert [next(blocks), next(blocks)] == [0, 1]
    blocks.close()
    assert made[-1] == "closed" and len(made) <= 5
    assert not [t for t in threading.enumerate() if t.name.startswith("ellipsum-read-ahead")]


@pytest.mark.parametrize("n, workers", [(0, 1), (1, 3), (2, 1), (40, 3)])
def test_what_several_threads_make_comes_in_the_order_of_the_items(n, workers):
    made, most = [], 0
    for k, square in enumerate(mapped_ahead(lambda k: k * k, counted(made, n), workers)):
        assert square == k * k
        most = max(most, sum(m != "closed" for m in made) - k)
    assert most <= workers + 2 and made[-1] == "closed"


@pytest.mark.parametrize("what", ["item", "work"])
def test_an_error_of_several_threads_comes_where_its_block_would(what):
    made, seen = [], []

    def work(k):
        if k == 4 and what == "work":
            raise OSError("damaged")
        return k

    with pytest.raises(OSError, match="damaged"):
        for k in mapped_ahead(work, counted(made, 9, fail_at=4 if what == "item" else None), 2):
            seen.append(k)
    assert seen == [0, 1, 2, 3] and made[-1] == "closed"
    assert not [t for t in threading.enumerate() if t.name.startswith("ellipsum-read-ahead")]


def test_leaving_several_threads_early_ends_them_and_closes_the_file():
    made = []
    blocks = mapped_ahead(abs, counted(made, 1000), 3)
    assert next(blocks) == 0
    blocks.close()
    assert made[-1] == "closed" and len(made) <= 6
    assert not [t for t in threading.enumerate() if t.name.startswith("ellipsum-read-ahead")]


def test_a_file_cut_short_leaves_the_sum_of_what_was_before_it(tmp_path, monkeypatch):
    monkeypatch.setattr("ellipsum.rows.sources.Source._check_facts", lambda source: None)
    rows = np.random.default_rng(0).normal(size=(5000, 4))
    names = [str(tmp_path / f"{k}.parquet") for k in range(3)]
    for name in names:
        pq.write_table(pa.table({f"x{j}": rows[:, j] for j in range(4)}), name)
    data = open_rows(names)
    cut = Path(names[2])
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    total, region = 0, Ellipsoid.ball(1.0, d=4)
    with pytest.raises(OSError, match="truncated or damaged") as caught:
        for batch in data.batches(4):
            total += len(batch)
    assert total == 10000 and caught.value.__cause__ is None
    with pytest.raises(OSError, match="truncated or damaged"):
        ExactSum(region).add([np.asarray(b) for b in data.batches(4)])


def test_an_interrupt_while_the_thread_starts_waits_for_its_block(monkeypatch):
    """The executor does not know that thread yet, and waits for none: the generator was closed
    under way, and the interrupt became a ValueError."""
    started, closed = threading.Event(), []

    def blocks():
        try:
            yield 1
            started.set()
            time.sleep(0.2)
            yield 2
        finally:
            closed.append(True)

    class Interrupted(ahead.ThreadPoolExecutor):
        def submit(self, *work):
            super().submit(*work)
            self._threads.clear()
            started.wait()
            raise KeyboardInterrupt

    monkeypatch.setattr(ahead, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(ahead.read_ahead(blocks()))
    assert closed == [True]
