"""What a signal (Ctrl-C) leaves of an exact sum."""

from __future__ import annotations

import dis
import sys
from functools import partial

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactGroupSum, ExactSum


def interrupted(call, place):
    """Whether a call was broken off at the place-th moment at which Python looks for signals: after
    a call, as it returns to Python code of ours."""
    last, left = {}, [place]

    def stop(frame, event, _arg):
        if "ellipsum" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before = last.get(frame, "")
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            left[0] -= before.startswith("CALL")
            if left[0] == 0:
                left[0] = -1
                raise KeyboardInterrupt
        return stop

    sys.settrace(stop)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("rows", [1, 4, 6000])
def test_an_interrupt_leaves_all_of_a_batch_in_the_sum_or_none(kernel_set, rows):
    region, batch = Ellipsoid.ball(100.0, d=3), np.ones((rows, 3))
    unit, place, broken = ExactSum(region).add(np.ones(3)).integers()[0], 0, True
    while broken:
        place, total = place + 1, ExactSum(region).add(np.ones((7, 3)))
        broken = interrupted(lambda total=total: total.add(batch), place)
        assert total.count in (7, 7 + rows)
        assert (total.integers() == unit * total.count).all()
    assert place > 3


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("merges", [True, False])
def test_a_table_of_groups_that_was_broken_off_tells_nothing(kernel_set, known, merges):
    """Or all of the rows are in it, or none (a key may be known that has no rows)."""
    region, rows = Ellipsoid.ball(100.0, d=3), np.ones((6, 3))
    keys, others = np.arange(6) % 3, np.arange(6) % 2 + 2

    def table(*parts):
        made = ExactGroupSum(region, range(4) if known else None)
        for part in parts:
            made.add(rows, part)
        return made

    def content(made):
        groups = zip(made.keys, made.counts().tolist(), made.integers().tolist(), strict=True)
        return made.units, [group for group in groups if group[1]]

    wanted = [content(table(keys)), content(table(keys, others))]
    place, broken, unusable = 0, True, 0
    while broken:
        place, total, more = place + 1, table(keys), table(others)
        change = partial(total.merge, more) if merges else partial(total.add, rows, others)
        broken = interrupted(change, place)
        try:
            assert content(total) in wanted
        except RuntimeError:
            unusable += 1
            for use in (
                total.to_bytes,
                total.integers,
                total.counts,
                partial(total.add, rows, keys),
                partial(total.add_indexed, rows, keys),
                partial(total.merge, table(keys)),
                partial(table(keys).merge, total),
            ):
                with pytest.raises(RuntimeError, match="make the table anew"):
                    use()
    assert unusable > 3 and place > unusable
