"""Which arrangement of the clip kernels runs is measured, named and forced as documented, and
changes no bit (every arrangement by itself: test_arrangements.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from clip_cases import Region, gaussian_rows, hostile_rows

_core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")


@pytest.mark.parametrize(("d", "order"), [(4, "C"), (9, "C"), (64, "C"), (9, "F"), (64, "F")])
def test_measuring_and_what_it_chooses_change_no_bit(d, order):
    """Calls with large batches take slices in each arrangement; other threads call meanwhile. (What
    was measured before in this process is kept.)"""
    # So few have holes that a slice counts, and of two shares each holds the longest slice.
    few = np.concatenate([hostile_rows(64, d, np.float32), gaussian_rows(2000, d, np.float32)])
    region = Region("halves", d)
    wanted = np.frombuffer(region.sums(_core, few)[1], np.int64)
    times = -(-(40 << 20) // few.nbytes)
    many = np.asarray(np.tile(few, (times, 1)), order=order)
    sums, known = [], "unmeasured"
    _core.choose_target("")
    try:
        with ThreadPoolExecutor(3) as pool:
            while known == "unmeasured" and len(sums) < 400:
                sums += pool.map(lambda _: region.sums(_core, many, threads=2)[1], range(8))
                _, known = _core.variant_of(many, halves=True)
    finally:
        _core.choose_target("")
    assert all((np.frombuffer(s, np.int64) == times * wanted).all() for s in sums)
    assert known != "unmeasured"


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_leads_serves_until_all_is_measured_and_batches_too_small_to_measure(order):
    # 16 MB: fewer than all trials take, and as many as a long one of columns does.
    code = f"""
import numpy as np
from ellipsum import Ellipsoid, ExactSum
from ellipsum.kernels import _core
rows = np.asarray(np.random.default_rng(0).normal(size=(65_536, 64)), "f4", order="{order}")
few, seen, region = rows[:99], [], Ellipsoid.ball(8.0, d=64)
def variant_of(rows, *, ball=True, **options):
    return _core.variant_of(rows, ball=ball, **options)
assert variant_of(few)[1] == "unmeasured"
for _ in range(200):
    ExactSum(region).add(rows)
    name, known = variant_of(few)
    assert variant_of(rows) == (name, known) and ("columns" in name) == ("{order}" == "F")
    seen.append(known)
    if known == "fastest":
        break
others = [variant_of(few, halves=True), variant_of(few.astype("f8"))]
if "{order}" == "C":  # a class is a quarter of an octave, and balls are others than ellipsoids
    assert variant_of(np.ascontiguousarray(few[:, :57]))[1] == "fastest"
    others += [variant_of(np.ascontiguousarray(few[:, :56])), variant_of(few, ball=False)]
    others += [variant_of(few[::2])]
others += [variant_of(np.asfortranarray(few.copy()))]  # its columns begin at many places of a page
print(*dict.fromkeys(seen), "and", *{{known for _, known in others}}, sep=", ")
"""
    result = run(code, "")
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("leader so far, fastest, and, unmeasured\n")


def test_short_rows_go_one_way_and_what_is_asked_for_is_measured():
    code = """
import numpy as np
from ellipsum import Ellipsoid, ExactSum
from ellipsum.kernels import _core
for d, order in ((1, "C"), (2, "C"), (4, "C"), (8, "C"), (4, "F"), (4, "gaps")):
    shape = (1 << 21) // d, d + (order == "gaps")
    rows = np.random.default_rng(0).normal(size=shape)[:, :d]
    rows = np.asfortranarray(rows) if order == "F" else rows
    for _ in range(40):
        ExactSum(Ellipsoid.ball(2.0, d=d)).add(rows)
    name, known = _core.variant_of(rows, ball=True)
    print(d, order, "registers" in name, name.split(":")[0], known, sep=", ")
"""
    result = run(code, "")
    assert result.returncode == 0, result.stderr
    seen = [line.split(", ") for line in result.stdout.splitlines()]
    measured = [(d, order) for d, order, *_, known in seen if known == "fastest"]
    assert measured == [("2", "C"), ("4", "C"), ("8", "C")]
    assert all(registers == "True" for _, order, registers, *_ in seen if order == "C")
    assert len({target for *_, target, _ in seen}) == 1, "the widest, which has holes, too"


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_which_many_have_holes_do_not_count_as_trials(order):
    """In row order they go another way, so what is fastest for them says nothing of others."""
    code = f"""
import numpy as np
from ellipsum import Ellipsoid, ExactSum
from ellipsum.kernels import _core
rows = np.asarray(np.random.default_rng(0).normal(size=(65_536, 64)), "f4", order="{order}")
holed, region = rows.copy(order="K"), Ellipsoid.ball(8.0, d=64)
holed[::9, 5] = np.nan
for table in (holed, rows):
    for _ in range(200):
        ExactSum(region).add(table)
        if (known := _core.variant_of(rows, ball=True)[1]) == "fastest":
            break
    print(known, end=" ")
"""
    result = run(code, "")
    assert result.returncode == 0, result.stderr
    assert result.stdout == {"C": "unmeasured fastest ", "F": "fastest fastest "}[order]


def test_an_arrangement_can_be_forced_and_an_unknown_one_is_a_clear_error():
    code = "import ellipsum; print(ellipsum.backend())"
    for cpu in (_core.variants()[0], _core.variants()[-1]):
        result = run(code, cpu)
        assert result.stdout.startswith(f"cpp ({cpu}): forced by ELLIPSUM_CPU")
    result = run(code, "baseline:9-near")
    assert result.returncode != 0
    assert "ELLIPSUM_CPU=baseline:9-near is unknown: baseline has the arrangements 4-near" in (
        result.stderr
    )


def run(code: str, cpu: str) -> subprocess.CompletedProcess[str]:
    base = {k: v for k, v in os.environ.items() if not k.startswith("ELLIPSUM_")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=base | {"ELLIPSUM_CPU": cpu}, capture_output=True, text=True)
