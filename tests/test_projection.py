"""PrivateProjection: exact sums, numbers used once, bytes, releases, an audit from both sides."""

from __future__ import annotations

import copy
import os
import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from attack import breaks
from ellipsum import Budget
from ellipsum.kernels.backend import use_kernels
from ellipsum.noise import keystream, rounded_gaussian
from ellipsum.records import PrivateProjection
from ellipsum.records.projection_sketch import MOST_ROWS, Numbers, Sketch
from ellipsum.records.record_clip import RecordClip
from regions import KERNEL_SETS

KEY = bytes(range(32))


def projection(rows=20, d=5, **options):
    given = {"radius": 4.0, "epsilon": 2.0, "delta": 1e-6, "key": KEY} | options
    return PrivateProjection(rows=rows, d=d, **given)


def table(n=300, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * 2.5


def sums(mechanism):
    return mechanism._sketch.sums


# ---- exact sums ---------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNEL_SETS)
def test_sums_are_those_of_whole_numbers(name):
    """Against Python integers, for every backend: columns from the stream, rows from the clip."""
    rows = table(1100, 3) * np.array([1, 1e-3, 30])
    with use_kernels(name):
        mechanism = projection(rows=7, d=3).add(rows)
    phi = rounded_gaussian(1100 * 7, 2.0**14, key=mechanism._column_key).reshape(1100, 7)
    integers = mechanism._sketch.clip.integers(rows)
    exact = phi.astype(object).T @ integers.astype(object)
    assert (sums(mechanism).astype(object) == exact).all()
    assert np.abs(integers).max() > 2**24


def test_no_partial_sum_of_a_block_leaves_the_exact_doubles():
    """The largest entries that there can be: 31.2 standard deviations, a row along one axis."""
    sketch = projection(rows=1)._sketch
    assert sketch._block == 512
    assert 512 * int(31.2 * 2**14) * int(sketch.clip.row_bound + 1) < 2**53
    wide = projection(rows=1, d=1 << 16)._sketch
    assert 512 * int(31.2 * 2**14) * int(wide.clip.row_bound + 1) < 2**53


def test_any_split_order_layout_and_merge_gives_the_same_bits():
    rows, rng = table(), np.random.default_rng(1)
    whole = projection().add(rows)
    expected = projection().add(rows).release().value
    one_by_one = projection()
    for i in rng.permutation(300).tolist():
        one_by_one.add(rows[i], first=i)
    edges = np.sort(rng.choice(300, 6, replace=False)).tolist()
    parts = [
        projection().add(np.asfortranarray(rows[a:b]), first=a)
        for a, b in zip([0, *edges], [*edges, 300], strict=True)
    ]
    merged = projection()
    for i in rng.permutation(len(parts)).tolist():
        merged.merge(parts[i])
    strided = projection().add(np.repeat(rows, 2, axis=1)[::1, ::2])
    listed = projection().add(rows.tolist())
    threaded = projection(threads=3).add(iter([rows[:100], rows[100:]]))
    restored = PrivateProjection.from_bytes(projection().add(rows[:50]).to_bytes(), key=KEY)
    for other in (one_by_one, merged, strided, listed, threaded, restored.add(rows[50:])):
        assert (sums(other) == sums(whole)).all()
        assert other.count == 300
        assert (other.release().value == expected).all()


def test_a_long_row_is_the_same_alone_and_among_others():
    """The first 2000 cells lie where another last bit of the norm rounds them another way."""
    rng, clip = np.random.default_rng(2), RecordClip(np.zeros(10_000), np.ones(10_000), 1.0, 25)

    def factors(row):
        y = row[None] / clip.grid
        pair = np.concatenate([y, y])
        return [2.0**25 / np.sqrt(np.einsum("ij,ij->i", z, z)[0]) for z in (y, pair)]

    apart = 0
    for _ in range(400):
        row = rng.normal(size=10_000) * np.exp(2 * rng.normal(size=10_000))
        row[:2000] = 0
        row[:2000] = 0.5 / factors(row)[0] * clip.grid
        low, high = sorted(factors(row))
        halves = 0.5 / low * (1 + np.arange(-4, 8) * 2.0**-53)
        split = halves[(halves * low <= 0.5) & (halves * high > 0.5)]
        if split.size:
            row[:2000] = split[0] * clip.grid
            apart += sorted(factors(row)) == [low, high]
            alone, among = clip.integers(row[None]), clip.integers(np.stack([row, -row]))
            assert (alone[0] == among[0]).all() and (alone[0] == -among[1]).all()
        if apart == 2:
            break


def test_columns_come_from_the_stream_by_the_rows_number():
    mechanism = projection(rows=3, d=1, radius=1.0)
    mechanism.add([[1.0]], first=5)
    phi = sums(mechanism)[:, 0] / 2**25
    words = keystream(18, key=mechanism._column_key)[15:]
    fill = rounded_gaussian(18, 2.0**14, key=mechanism._column_key)[15:]
    assert (phi == fill).all() and len(set(words.tolist())) == 3


def test_columns_are_standard_normal():
    mechanism = projection(rows=200_000, d=1, radius=1.0)
    phi = sums(mechanism.add([[1.0]]))[:, 0] / 2.0**39
    assert kstest(phi, "norm").pvalue > 1e-6


def test_sums_beyond_64_bits_wrap_without_a_word():
    mechanism = projection(rows=2, d=1, radius=1.0)
    mechanism._sketch.sums[:] = np.iinfo(np.int64).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism.add([[1.0], [1.0]]).release()


def test_rows_that_are_no_numbers_count_as_the_center():
    rows = table(6)
    odd = rows.copy()
    odd[1, 2], odd[3, 0], odd[4] = np.nan, np.inf, 1e308
    center = np.arange(5.0)
    clean = np.where([[True], [False], [True], [False], [True], [True]], odd, center)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = projection(center=center).add(odd)
    assert (sums(one) == sums(projection(center=center).add(clean))).all()


# ---- numbers, keys, releases ----------------------------------------------------------


def test_a_number_that_was_used_is_refused():
    mechanism = projection().add(table(10))
    before = sums(mechanism).copy()
    for first, n in ((9, 1), (0, 1), (5, 3), (8, 9)):
        with pytest.raises(ValueError, match="number was used"):
            mechanism.add(table(n), first=first)
    assert (sums(mechanism) == before).all() and mechanism.count == 10
    mechanism.add(table(3), first=20).add(table(10), first=10)
    for first in (10, 19, 22):
        with pytest.raises(ValueError, match="number was used"):
            mechanism.add(table(1), first=first)
    assert next(iter(mechanism._sketch.used.values())).ranges == [(0, 23)]


def test_parts_that_share_a_number_are_not_merged():
    one, other = projection().add(table(10)), projection().add(table(5), first=9)
    before = sums(one).copy()
    for merge in (lambda: one.merge(other), lambda: one.add_bytes(other.to_bytes())):
        with pytest.raises(ValueError, match="number was used"):
            merge()
    with pytest.raises(ValueError, match="number was used"):
        one.merge(one)
    assert (sums(one) == before).all()


def test_parts_of_different_keys_have_columns_of_their_own():
    """So their numbers may coincide."""
    one, other = projection(key=None).add(table(10)), projection(key=None).add(table(10))
    assert (sums(one) != sums(other)).any()
    assert one.merge(other).count == 20


def test_numbers_are_ranges_whatever_the_order():
    rng = np.random.default_rng(0)
    for _ in range(200):
        numbers, seen = Numbers(), set()
        for _ in range(20):
            first = int(rng.integers(0, 60))
            end = first + int(rng.integers(0, 6))
            if seen & set(range(first, end)):
                with pytest.raises(ValueError):
                    numbers.take(first, end)
            else:
                numbers.take(first, end)
                seen |= set(range(first, end))
        assert {i for a, b in numbers.ranges for i in range(a, b)} == seen
        assert len(numbers) == len(seen) and numbers.end == max(seen, default=-1) + 1


def test_after_a_release_nothing_may_be_added():
    mechanism = projection().add(table())
    state = mechanism.to_bytes()
    first = mechanism.release()
    assert mechanism.release() is first
    for again in (
        lambda: mechanism.add(table(), first=300),
        lambda: mechanism.merge(projection()),
        lambda: projection().merge(mechanism),
        lambda: mechanism.add_bytes(state),
    ):
        with pytest.raises(ValueError, match="was released"):
            again()
    with pytest.raises(ValueError, match="released already"):
        projection().add_bytes(state).release()


def test_the_key_does_not_leave():
    mechanism = projection().add(table())
    assert KEY not in mechanism.to_bytes()
    assert mechanism._column_key not in mechanism.to_bytes()
    for leave in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(TypeError, match="secret key"):
            leave(mechanism)


def test_another_budget_or_table_has_another_floor_and_other_columns():
    whole = projection().add(table())
    for other in (projection(epsilon=2.1), projection(radius=4.1), projection(rows=21)):
        with pytest.raises(ValueError, match="other parameters"):
            whole.merge(other)
        assert other._column_key != whole._column_key
    assert (projection().add(table(seed=1)).release().value != whole.release().value).all()


def test_bytes_that_are_altered_are_refused():
    raw = bytes(projection(rows=3).add(table(4)).add(table(2), first=9).to_bytes())
    restored = PrivateProjection.from_bytes(raw)
    assert restored.count == 6 and restored.floor == projection(rows=3).floor
    for i in range(len(raw)):
        forged = raw[:i] + bytes([raw[i] ^ 1]) + raw[i + 1 :]
        with pytest.raises(ValueError, match="is no projection"):
            PrivateProjection.from_bytes(forged)
    for cut in (0, 7, 40, len(raw) - 1):
        with pytest.raises(ValueError, match="is no projection"):
            PrivateProjection.from_bytes(raw[:cut])


def test_bytes_tell_what_was_made_with_a_seed():
    seeded = projection(key=None, seed=3).add(table())
    raw = bytes(seeded.to_bytes())
    for other in (
        PrivateProjection.from_bytes(raw),
        projection().add_bytes(raw),
        projection().add(table(seed=1)).add_bytes(raw),
        PrivateProjection.from_bytes(bytes(PrivateProjection.from_bytes(raw).to_bytes())),
    ):
        release = other.release()
        assert not release.private and release.caveats == ("not private: made with a seed",)
    plain = PrivateProjection.from_bytes(bytes(projection().add(table()).to_bytes()))
    assert plain.release().private


def test_bytes_of_what_has_a_budget_ask_for_it():
    budget = Budget(epsilon=3.0, delta=1e-5)
    raw = bytes(projection(budget=budget).add(table()).to_bytes())
    for restored in (PrivateProjection.from_bytes(raw), projection().add_bytes(raw)):
        with pytest.raises(ValueError, match="made with a budget"):
            restored.release()
    assert not budget.entries
    assert restored.release(budget=budget).entry is not None


def test_a_fork_releases_no_rows_that_were_there_before(monkeypatch):
    """Both copies have one Phi: their difference has none of its noise."""
    mechanism, empty = projection().add(table()), projection()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    mechanism.add(table(2))
    for forked in (mechanism, projection().merge(mechanism)):
        with pytest.raises(ValueError, match="hand to_bytes"):
            forked.release()
    raw = bytes(mechanism.to_bytes())
    assert empty.add(table()).release().private
    monkeypatch.undo()
    assert PrivateProjection.from_bytes(raw).release().private


def test_a_budget_is_charged_once():
    budget = Budget(epsilon=3.0, delta=1e-5)
    mechanism = projection().add(table())
    release = mechanism.release(budget=budget)
    assert release.entry is not None and mechanism.release(budget=budget) is release
    with pytest.raises(ValueError):
        projection().add(table(seed=3)).release(budget=budget)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"rows": 0}, ValueError, "rows"),
        ({"rows": 2.0}, TypeError, "rows"),
        ({"d": 0}, ValueError, "d must"),
        ({"radius": 0.0}, ValueError, "radius"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"neighbors": "swap"}, ValueError, "neighbors"),
        ({"center": [0.0]}, ValueError, "center"),
        ({"key": b"short"}, TypeError, "key must be 32"),
        ({"seed": 1}, TypeError, "key or seed"),
    ],
)
def test_parameters_are_checked(wrong, error, says):
    with pytest.raises(error, match=says):
        projection(**wrong)


def test_what_is_added_is_checked_by_shape_alone():
    with pytest.raises(ValueError, match="shape"):
        projection().add(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="2\\^36"):
        projection().add(table(1), first=MOST_ROWS)
    with pytest.raises(TypeError, match="PrivateProjection"):
        projection().merge(3)
    with pytest.raises(ValueError, match="no rows"):
        projection().release()
    assert projection(neighbors="add-remove").release().n is None


def test_a_seed_is_not_private_and_a_key_is():
    assert not projection(key=None, seed=1).add(table()).release().private
    assert projection().add(table()).release().private
    mixed = projection().merge(projection(key=None, seed=1).add(table()))
    assert not mixed.release().private


# ---- an audit of the released bits -------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_released_bits_keep_the_guarantee_and_would_not_with_less_floor(neighbors):
    """The likelihood ratio's own event for the worst two tables, in 2,500 runs each."""
    runs, epsilon, delta, m = 2500, 0.5, 0.2, 4
    one = np.array([[1.0, 0.0]])
    other = np.array([[0.0, 1.0]]) if neighbors == "replace" else np.zeros((0, 2))
    common = np.array([[0.0, 0.0]])

    def statistic(rows, share, seed):
        out = np.empty(runs)
        for i in range(runs):
            mechanism = PrivateProjection(
                rows=m, radius=1.0, d=2, epsilon=epsilon, delta=delta,
                neighbors=neighbors, seed=runs * seed + i,
            )  # fmt: skip
            mechanism._sigma *= share
            y = mechanism.add(np.concatenate([common, rows])).release().value
            out[i] = (y[:, 0] ** 2).sum() - (y[:, 1] ** 2).sum() * (neighbors == "replace")
        return out

    ratio = projection(
        rows=m, d=2, radius=1.0, epsilon=epsilon, delta=delta, neighbors=neighbors
    ).guarantee.ratio
    with_row, without = statistic(one, 1.0, 1), statistic(other, 1.0, 2)
    levels = np.quantile(np.concatenate([with_row, without]), np.linspace(0.05, 0.95, 13))
    for level in levels:
        assert not breaks(with_row > level, without > level, epsilon, delta)
    with_row, without = statistic(one, 0.25, 3), statistic(other, 0.25, 4)
    assert any(breaks(with_row > x, without > x, epsilon, delta) for x in levels / 4)
    if neighbors == "add-remove":  # and the law itself is the one of the claim
        y2 = statistic(one, 1.0, 5) / (1 + 1 / ratio)
        assert kstest(y2, chi2(m).cdf).pvalue > 1e-6


def test_a_sketch_is_wiped_of_what_it_drew(monkeypatch):
    """Blocks of Phi do not stay in memory that was given back."""
    kept = []
    empty = np.empty

    def remember(*args, **kwargs):
        out = empty(*args, **kwargs)
        kept.append(out)
        return out

    mechanism = projection()
    monkeypatch.setattr(np, "empty", remember)
    Sketch.add(mechanism._sketch, table(), mechanism._column_key, 0, 1)
    blocks = [a for a in kept if a.shape == (300, 20)]
    assert blocks and all((a == 0).all() for a in blocks)
