"""A progress bar: rows per second and time left, on standard error (claim channels-4)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["watch"]

_SECONDS_BETWEEN_LINES = 0.2  # of the bar: five a second, as an eye can follow


def watch(
    batches: Iterator[Any], total: int | None, fraction: Callable[[], float]
) -> Iterator[Any]:
    """Yield the batches and draw a bar; a batch counts when the next one is asked for.

    Parameters
    ----------
    batches : iterator of arrays (n, d), or of tuples that begin with one
    total : int or None
        Rows in all, if known.
    fraction : callable
        How much has been read, from 0 to 1, to estimate the total from.
    """
    bar = _bar(total)
    done = 0
    try:
        for batch in batches:
            yield batch
            done += len(batch[0] if isinstance(batch, tuple) else batch)
            bar.show(done, total or int(done / max(fraction(), 1e-9)))
    finally:
        bar.close()


def _bar(total: int | None) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return _PlainBar()
    return _TqdmBar(tqdm(total=total, unit=" rows", unit_scale=True, dynamic_ncols=True))


class _TqdmBar:
    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def show(self, done: int, total: int) -> None:
        self._bar.total = max(done, total)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _PlainBar:
    def __init__(self) -> None:
        self._start = time.monotonic()
        self._drawn = -1.0
        self._line = ""

    def show(self, done: int, total: int) -> None:
        seconds = time.monotonic() - self._start
        rate = done / max(seconds, 1e-9)
        left = max(0, total - done) / max(rate, 1e-9)
        share = done / max(total, done, 1)
        self._line = (
            f"{share:4.0%} |{'#' * int(20 * share):20}| {_short(done)} rows, "
            f"{_short(rate)} rows/s, {_clock(left)} left"
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
