"""Parts of a sum: exactly once each, whatever is retried, lost, doubled or altered."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum, Parts, PrivateSum
from regions import make_regions

D = 3
REGION = Ellipsoid.ball(2.0, d=D)
ROWS = np.random.default_rng(0).normal(size=(90, D))
SPLITS = np.array_split(ROWS, 5)
NAMES = [f"part-{k}" for k in range(5)]


def foreign(rows: np.ndarray, region: Ellipsoid = REGION) -> bytes:
    """A part as another process hands it on: bytes without a mark."""
    return bytes(bytearray(ExactSum(region).add(rows).partial()))


@pytest.mark.parametrize("kind", ["ball", "box", "ellipsoid", "matrix", "low-rank"])
def test_parts_in_any_order_and_any_number_of_times_give_the_sum_of_the_rows(kind):
    region = make_regions(D)[kind]
    whole = ExactSum(region).add(ROWS)
    delivered = [(name, foreign(part, region)) for name, part in zip(NAMES, SPLITS, strict=True)]
    draws = np.random.default_rng(1)
    for _ in range(20):
        order = draws.permutation([*range(5), *draws.integers(0, 5, size=7)])
        parts = Parts(region, names=NAMES)
        for k in order:
            parts.add(*delivered[k])
        assert parts.total().to_bytes() == whole.to_bytes()
        assert len(parts) == 5 and not parts.missing


def test_other_bytes_under_a_name_are_an_error_and_change_nothing():
    parts = Parts(REGION).add("a", foreign(SPLITS[0]))
    before = parts.total().to_bytes()
    with pytest.raises(ValueError, match="part 'a' came before with other bytes"):
        parts.add("a", foreign(SPLITS[1]))
    assert parts.total().to_bytes() == before and "a" in parts


def test_a_missing_part_and_one_too_many_are_errors():
    parts = Parts(REGION, names=NAMES)
    for name, rows in itertools.islice(zip(NAMES, SPLITS, strict=True), 4):
        parts.add(name, foreign(rows))
    assert parts.missing == {"part-4"}
    with pytest.raises(ValueError, match="the total lacks 'part-4'"):
        parts.total()
    with pytest.raises(ValueError, match="not in the manifest"):
        parts.add("part-5", foreign(SPLITS[4]))
    with pytest.raises(ValueError, match="and 15 more"):
        Parts(REGION, names=map(str, range(20))).total()
    with pytest.raises(ValueError, match="a name twice"):
        Parts(REGION, names=["a", "a"])


def test_names_are_not_the_letters_of_one_text():
    with pytest.raises(TypeError, match="one text"):
        Parts(REGION, names="ab")


def test_the_same_rows_under_two_names_are_seen_in_one_process():
    total = ExactSum(REGION).add(ROWS)
    parts = Parts(REGION).add("a", total.partial())
    with pytest.raises(ValueError, match="count twice"):
        parts.add("b", total.partial())
    with pytest.raises(ValueError, match="count twice"):
        parts.add("b", pickle.loads(pickle.dumps(total)).partial())
    assert parts.total().count == len(ROWS) and "b" not in parts


def test_a_part_is_a_function_of_region_and_rows():
    for order in itertools.permutations(range(3)):
        total = ExactSum(REGION)
        for k in order:
            total.add(SPLITS[k])
        assert total.partial() == foreign(np.concatenate(SPLITS[:3]))
    assert len(foreign(ROWS)) == len(foreign(ROWS[:1])) == 16 * D + 80


def test_a_part_of_a_released_sum_is_not_released_again():
    total = ExactSum(REGION).add(ROWS)
    PrivateSum(REGION, mu=1)(total)
    parts = Parts(REGION).add("a", bytes(bytearray(total.partial())))
    with pytest.raises(ValueError, match="released before"):
        PrivateSum(REGION, mu=1)(parts.total())
    fresh = Parts(REGION).add("a", foreign(ROWS))
    PrivateSum(REGION, mu=1)(fresh.total())
    with pytest.raises(ValueError, match="released before"):
        PrivateSum(REGION, mu=1)(fresh.total())


def test_every_damaged_byte_and_every_cut_is_seen():
    good = foreign(ROWS)
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 0x41
        with pytest.raises(ValueError, match=r"no part of a sum|ellipsoid"):
            Parts(REGION).add("a", bytes(bad))
        with pytest.raises(ValueError, match="no part of a sum"):
            Parts(REGION).add("a", good[:at])
    for wrong in ("text", 3, None):
        with pytest.raises(TypeError, match="part must be bytes"):
            Parts(REGION).add("a", wrong)
    with pytest.raises(TypeError, match="name must be a str"):
        Parts(REGION).add(1, good)


def test_a_part_that_no_rows_make_is_refused():
    import ellipsum.partial_bytes as pb

    state = pb.unpack_part(foreign(ROWS))
    for change in ({"rows": 1}, {"clipped": 91}, {"nonfinite_rows": 91}):
        with pytest.raises(ValueError, match="contradict each other"):
            Parts(REGION).add("a", pb.pack_part(state._replace(**change)))


def test_another_region_or_policy_is_refused():
    with pytest.raises(ValueError, match="different ellipsoid"):
        Parts(Ellipsoid.ball(2.5, d=D)).add("a", foreign(ROWS))
    with pytest.raises(ValueError, match="nonfinite policy"):
        Parts(REGION, nonfinite="raise").add("a", foreign(ROWS))


def test_what_is_printed_tells_nothing_private():
    parts = Parts(REGION, names=NAMES).add("part-0", foreign(SPLITS[0]))
    assert repr(parts) == "Parts(d=3, 1 of 5 parts)"
    assert repr(Parts(REGION)) == "Parts(d=3, 0 parts)"


def test_a_row_with_a_missing_cell_alone_is_read_back():
    """The bound on what rows can add left such rows out, whose other cells count."""
    region = Ellipsoid.ball(1.0, d=3)
    total = ExactSum(region).add(np.array([[np.nan, 5.0, 5.0]]))
    assert ExactSum.from_bytes(total.to_bytes()).to_bytes() == total.to_bytes()
    part = ExactSum(region).merge_partial(total.partial())
    assert (part.integers() == total.integers()).all() and part.integers().any()
