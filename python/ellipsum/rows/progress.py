"""A progress bar: which pass, rows, bytes a second and time left, on standard error (claim
channels-4)."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["DrawnMeter", "Meter", "watch"]

_SECONDS_BETWEEN_LINES = 0.2  # of the bar: five a second, as an eye can follow


class Meter:
    """What a pass tells of its progress to: this one keeps it to itself."""

    def add(self, rows: int) -> None:
        """So many more rows are done."""

    def close(self) -> None:
        """The pass is over."""


class DrawnMeter(Meter):
    """A bar on standard error: which pass, rows, bytes a second, time left. Threads may share it.

    Parameters
    ----------
    total : int or None
        Rows in all, if known.
    nbytes : int
        Bytes in all.
    fraction : callable
        How much has been read, from 0 to 1.
    title : str
        Which pass it is, where there are several.
    """

    def __init__(
        self, total: int | None, nbytes: int, fraction: Callable[[], float], title: str = ""
    ) -> None:
        self._total, self._nbytes, self._fraction = total, nbytes, fraction
        self._bar, self._rows, self._lock = _bar(total, title), 0, threading.Lock()

    def add(self, rows: int) -> None:
        """So many more rows are done."""
        with self._lock:
            self._rows += rows
            share = self._fraction()
            total = self._total or int(self._rows / max(share, 1e-9))
            self._bar.show(self._rows, total, share * self._nbytes)

    def close(self) -> None:
        """The pass is over."""
        self._bar.close()


def watch(batches: Iterator[Any], make: Callable[[], Meter]) -> Iterator[Any]:
    """Yield the batches and tell the meter; a batch counts when the next one is asked for.

    Parameters
    ----------
    batches : iterator of tuples that begin with an array (n, d)
    make : callable that returns the meter, when the first batch is asked for
    """
    meter = make()
    try:
        for batch in batches:
            yield batch
            meter.add(len(batch[0]))  # of rows, with labels beside them
    finally:
        meter.close()


def _bar(total: int | None, title: str) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return _PlainBar(title)
    known = {"desc": title or None, "unit": " rows", "unit_scale": True, "dynamic_ncols": True}
    return _TqdmBar(tqdm(total=total, **known))


class _TqdmBar:
    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._start = time.monotonic()

    def show(self, done: int, total: int, nbytes: float) -> None:
        rate = nbytes / max(time.monotonic() - self._start, 1e-9)
        self._bar.set_postfix_str(f"{_short(rate)}B/s", refresh=False)
        self._bar.total = max(done, total)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _PlainBar:
    def __init__(self, title: str = "") -> None:
        self._title = f"{title}: " if title else ""
        self._start = time.monotonic()
        self._drawn = -1.0
        self._line = ""

    def show(self, done: int, total: int, nbytes: float) -> None:
        seconds = time.monotonic() - self._start
        rate = done / max(seconds, 1e-9)
        left = max(0, total - done) / max(rate, 1e-9)
        share = done / max(total, done, 1)
        self._line = (
            f"{self._title}{share:4.0%} |{'#' * int(20 * share):20}| {_short(done)} rows, "
            f"{_short(rate)} rows/s, {_short(nbytes / max(seconds, 1e-9))}B/s, {_clock(left)} left"
        )
        if seconds - self._drawn >= _SECONDS_BETWEEN_LINES:
            self._drawn = seconds
            self._draw("")

    def close(self) -> None:
        self._draw("\n")

    def _draw(self, end: str) -> None:
        print(f"\r{self._line}\x1b[K", end=end, file=sys.stderr, flush=True)


def _short(number: float) -> str:
    for unit in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}T"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
