"""``--cpu-seconds``: processor time of each test with its fixtures, and of those that train.

A test trains where it, or a fixture that it is the first to ask for, takes a step of Adam or fits
an affine release. Imports are the collection's and not counted.
"""

from __future__ import annotations

import sys
import time

import pytest

_SHOWN = 12


class CpuSeconds:
    """Pytest's plugin; with xdist, in the workers and in the process that gathers reports."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[float, bool]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        _watch()
        item._cpu_started = time.process_time(), _steps
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        try:
            return (yield)
        finally:
            seconds, steps = item._cpu_started
            spent = time.process_time() - seconds, _steps > steps
            item.user_properties.append(("cpu_seconds", spent))

    def pytest_runtest_logreport(self, report):
        for name, spent in report.user_properties if report.when == "teardown" else ():
            if name == "cpu_seconds":
                self.found[report.nodeid] = tuple(spent)

    def pytest_terminal_summary(self, terminalreporter):
        if not self.found:
            return
        terminalreporter.section("CPU seconds")
        slowest = sorted(self.found.items(), key=lambda item: -item[1][0])
        for name, (seconds, trains) in slowest[:_SHOWN]:
            kind = "trains" if trains else ""
            terminalreporter.write_line(f"{seconds:7.2f}  {kind:6}  {name}")
        training = [seconds for seconds, trains in self.found.values() if trains]
        rest = [seconds for seconds, trains in self.found.values() if not trains]
        terminalreporter.write_line(
            f"{sum(training):.1f} CPU s in {len(training)} tests that train, "
            f"{sum(rest):.1f} in {len(rest)} others"
        )


_steps = 0


def _watch() -> None:
    """Count what trains, as soon as its modules are there."""
    for module, owner, name in (
        ("ellipsum.learned.descent", "Adam", "descend"),
        ("ellipsum.learned.affine_training", None, "train"),
    ):
        place = sys.modules.get(module)
        place = place if owner is None else getattr(place, owner, None)
        done = getattr(place, name, None)
        if done is not None and not hasattr(done, "_counted"):
            setattr(place, name, _counting(done))


def _counting(function):
    def counted(*arguments, **options):
        global _steps
        _steps += 1
        return function(*arguments, **options)

    counted._counted = True
    return counted
