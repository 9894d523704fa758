"""Copies: a part counts once, a sum is released once, and what is in it never decides."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from ellipsum import Ellipsoid, ExactSum, PrivateSum

REGION = Ellipsoid.ball(1.0, d=2)
ROWS = np.random.default_rng(0).normal(size=(9, 2))
COPIES = {
    "bytes": lambda total: ExactSum.from_bytes(total.to_bytes()),
    "pickle": lambda total: pickle.loads(pickle.dumps(total)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def summed(rows=ROWS):
    return ExactSum(REGION).add(rows)


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_copy_made_before_the_release_is_not_released_again(duplicate):
    total, run = summed(), PrivateSum(REGION, mu=1.0)
    twin = duplicate(total)
    run(total)
    with pytest.raises(ValueError, match="spend_again=True"):
        run(twin)
    with pytest.raises(ValueError, match="spend_again=True"):
        run(twin.add(ROWS))  # rows that were released are in it still
    assert run(twin, spend_again=True).private


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_copy_is_not_merged(duplicate):
    total = summed()
    before, twin = total.to_bytes(), duplicate(total)
    for other in (twin, total, summed(-ROWS).merge(twin)):
        with pytest.raises(ValueError, match="count twice"):
            total.merge(other)
        assert total.to_bytes() == before  # a call that raises leaves the sum as it was


def test_a_part_that_was_merged_is_not_merged_again():
    part = summed()
    twin = COPIES["bytes"](part)
    total = ExactSum(REGION).merge(part)
    with pytest.raises(ValueError, match="count twice"):
        total.merge(twin)


def test_parts_of_equal_rows_are_two_parts():
    """An honest job must not fail because two parts happen to be equal."""
    parts = [summed(), summed()]
    total = ExactSum(REGION)
    for data in [part.to_bytes() for part in parts]:
        total.merge(ExactSum.from_bytes(data))
    assert (total.integers() == 2 * summed().integers()).all()
    run = PrivateSum(REGION, mu=1.0)
    assert run(summed()).private and run(summed()).private


def test_an_empty_sum_is_a_zero_for_many_workers():
    zero = ExactSum(REGION)
    for _ in range(2):
        workers = [duplicate(zero).add(ROWS) for duplicate in COPIES.values()]
        total = ExactSum(REGION)
        for worker in workers:
            total.merge(worker)
        assert total.count == 9 * len(workers)
        assert PrivateSum(REGION, mu=1.0)(total).private


def test_a_batch_without_rows_marks_a_sum_like_any_other():
    """Else a copy that is released again would tell an empty table from one of a row."""
    run = PrivateSum(REGION, mu=1.0, neighbors="add-remove")
    for duplicate in (*COPIES.values(), lambda total: ExactSum.from_bytes(total.to_bytes())):
        for nothing in (
            ROWS[:0],
            [],
            pa.table({"a": ROWS[:0, 0], "b": ROWS[:0, 1]}),
        ):
            total = ExactSum(REGION).add(nothing)
            twin = duplicate(total)
            with pytest.raises(ValueError, match="count twice"):
                total.merge(twin)
            run(total)
            with pytest.raises(ValueError, match="spend_again=True"):
                run(twin)


def test_bytes_from_elsewhere_have_marks_whether_they_hold_rows_or_not():
    for rows in (ROWS, ROWS[:0]):
        total = ExactSum.from_bytes(bytes(bytearray(ExactSum(REGION).add(rows).to_bytes())))
        with pytest.raises(ValueError, match="count twice"):
            total.merge(copy.copy(total))


def test_a_view_of_bytes_has_their_marks():
    total = summed()
    with pytest.raises(ValueError, match="count twice"):
        total.merge(ExactSum.from_bytes(memoryview(total.to_bytes())))


def test_adding_arrow_data_keeps_one_mark():
    total = summed()
    for _ in range(5):
        total.add(pa.table({"a": [1.0], "b": [2.0]}))
    assert len(total._marks) == 1


def test_bytes_do_not_carry_marks():
    assert summed().to_bytes() == summed().to_bytes()
    left, right = summed(ROWS[:4]), summed(ROWS[4:])
    assert left.merge(right).to_bytes() == summed().to_bytes()


def test_a_pickle_takes_its_marks_to_another_process():
    total = summed()
    code = "import pickle, sys; x = sys.stdin.buffer.read(); "
    code += "sys.stdout.buffer.write(pickle.dumps(pickle.loads(x)))"
    run = [sys.executable, "-c", code]
    back = subprocess.run(run, input=pickle.dumps(total), capture_output=True, check=True).stdout
    with pytest.raises(ValueError, match="count twice"):
        total.merge(pickle.loads(back))


def test_bytes_from_a_file_are_those_of_another_sum():
    total = summed()
    ExactSum(REGION).merge(total).merge(ExactSum.from_bytes(bytes(bytearray(total.to_bytes()))))


def test_a_part_that_was_released_elsewhere_marks_the_sum_that_it_is_merged_into():
    """Marks do not travel with plain bytes; the number of releases does, through a merge too."""
    region = Ellipsoid.ball(1.0, d=2)
    part = ExactSum(region).add(np.ones((5, 2)))
    PrivateSum(region, mu=1.0)(part)
    elsewhere = bytes(bytearray(part.to_bytes()))  # as a file or a network hands them over
    total = ExactSum(region).add(np.zeros((3, 2))).merge(ExactSum.from_bytes(elsewhere))
    with pytest.raises(ValueError, match="released before"):
        PrivateSum(region, mu=1.0)(total)
