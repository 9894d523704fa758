"""What a signal (Ctrl-C) leaves of an exact sum."""

from __future__ import annotations

import dis
import sys

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum


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
