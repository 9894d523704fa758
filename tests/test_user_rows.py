"""At most k rows of a user, each by itself: `max_rows`."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import ellipsum.users as users_module
from ellipsum import Ellipsoid, ExactSum, GaussianShape, PrivateMean, PrivateSum, open_rows
from ellipsum.rows import divided
from ellipsum.rows.labels import labels_of
from ellipsum.users import UserRows

REGION = Ellipsoid.ball(2.0, d=3)


def table(seed, n=400, people=40):
    rng = np.random.default_rng(seed)
    users = rng.integers(0, people, n).astype(object)
    users[rng.random(n) < 0.05] = None
    rows = rng.normal(0, 2, (n, 3)).round(1)  # rows that are alike, too
    rows[rng.random((n, 3)) < 0.02] = np.nan
    rows[rng.random((n, 3)) < 0.02] = -0.0
    return rows, users


def kept(rows, users, most, **known):
    parts = list(UserRows(rows, 3, users, most=most, **known).batches())
    return np.concatenate(parts) if parts else np.empty((0, 3))


def total(rows):
    return ExactSum(REGION).add(rows).integers()


def sizes(users, most):
    return sum(min(most, int(k)) for k in pd.Series(users).value_counts())


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_any_order_split_and_container_keeps_the_same_rows(most, monkeypatch):
    for seed in range(8):
        rows, users = table(seed)
        whole = kept(rows, users, most)
        assert len(whole) == sizes(users, most)
        order = np.random.default_rng(seed).permutation(len(rows))
        assert (total(kept(rows[order], users[order], most)) == total(whole)).all()
        together = np.argsort(pd.Series(users).fillna(-1).to_numpy(int), kind="stable")
        got = kept(rows[together], users[together], most, grouped=True)
        assert (total(got) == total(whole)).all()
        monkeypatch.setattr(
            "ellipsum.rows.divided._NUMBERS_PER_BLOCK", 50
        )  # runs over blocks' ends
        assert (total(kept(rows, users, most)) == total(whole)).all()
        monkeypatch.setattr("ellipsum.rows.divided.MEMORY_BYTES", 1000)  # and files
        assert (total(kept(rows, users, most)) == total(whole)).all()
        monkeypatch.undo()


def test_which_rows_stay_depends_on_the_user_alone():
    for seed in range(8):
        rows, users = table(seed)
        whole = kept(rows, users, 3)
        for person in (0, 7):
            mine = users == person
            alone = kept(rows[mine], users[mine], 3)
            others = kept(rows[~mine], users[~mine], 3)
            assert (total(alone) + total(others) == total(whole)).all()


@pytest.mark.parametrize("hashes", [1, 3])
def test_rows_of_one_hash_are_chosen_by_what_they_are(monkeypatch, hashes):
    """Who knows the hash can make rows that differ and have the same: which of them stays may
    depend on nobody else, on no order, and on no split."""
    real = users_module._ranks
    monkeypatch.setattr(users_module, "_ranks", lambda *known: real(*known) % np.uint64(hashes))
    test_any_order_split_and_container_keeps_the_same_rows(2, monkeypatch)
    monkeypatch.setattr(users_module, "_ranks", lambda *known: real(*known) % np.uint64(hashes))
    test_which_rows_stay_depends_on_the_user_alone()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_signalling_nan_is_told_by_a_warning(dtype, monkeypatch):
    """Rows that are alike, and a user's rows that go on in the next block."""
    monkeypatch.setattr("ellipsum.rows.divided._NUMBERS_PER_BLOCK", 6)
    signalling = {np.float32: 0x7F800001, np.float64: 0x7FF0000000000001}[dtype]
    rows = np.zeros((20, 3), dtype)
    rows.view(f"u{rows.itemsize}")[::3, 1] = signalling
    users = np.repeat([1, 2], 10)
    with np.errstate(all="raise"):
        for most in (1, 3, 9):
            assert len(kept(rows, users, most)) == 2 * most
            assert len(kept(rows, users, most, grouped=True)) == 2 * most


def test_the_choice_favours_no_row():
    n, people = 8, 4000
    rows = np.tile(np.arange(n)[:, None] * [1.0, 0, 0], (people, 1))
    users = np.repeat(np.arange(people), n)
    found = kept(rows, users, 2)[:, 0].astype(int)
    counts = np.bincount(found, minlength=n)
    assert counts.sum() == 2 * people
    assert stats.chisquare(counts).pvalue > 1e-6


def test_no_user_moves_the_sum_past_k_rows_and_one_reaches_it():
    bound = REGION.sensitivity("add-remove") / REGION.grid
    for k in (1, 3):
        farthest = 0.0
        for seed in range(20):
            rows, users = table(seed)
            mine = users == 5
            rows[mine] = np.random.default_rng(seed).normal(size=3) * 1e6  # all of them one way
            change = total(kept(rows, users, k)) - total(kept(rows[~mine], users[~mine], k))
            moved = float(np.linalg.norm(change.astype(float)))
            assert moved <= k * bound
            farthest = max(farthest, moved)
        assert farthest > 0.999 * k * bound


@pytest.mark.parametrize("kind", [PrivateSum, PrivateMean])
def test_the_noise_is_that_of_all_rows_of_a_user(kind):
    region = Ellipsoid.ball(2.0, [1, 0, 0])
    known = {"mu": 0.5, "neighbors": "add-remove"}
    one = kind(region, **known)
    several = kind(region, by="u", max_rows=4, **known)
    for n in (50, 5000):
        expected = kind(region, mu=0.125, neighbors="add-remove").noise_sd(n)
        assert np.allclose(several.noise_sd(n), expected, rtol=1e-12)
        assert (several.noise_sd(n) > one.noise_sd(n)).all()
    assert several.guarantee.mu == 0.5 and several.guarantee.unit == "all rows of one value of u"
    assert several.guarantee.cost() == one.guarantee.cost()
    assert several.guarantee.for_rows(9) is several.guarantee


def test_a_release_counts_rows_and_one_key_has_one_noise():
    rows, users = table(1)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(u=pd.Series(users, dtype="Int64"))
    known = {"mu": 5.0, "neighbors": "add-remove", "by": "u"}
    release = PrivateMean(REGION, max_rows=3, **known)(frame)
    assert abs(release.n - sizes(users, 3)) < 10 * 3 * 8 / 5 and "rows (noisy count)" in str(
        release
    )
    one, two = (PrivateSum(REGION, max_rows=k, **known)(frame[:1], seed=3) for k in (2, 4))
    exact = total(rows[:1])
    noise, twice = one.integers - exact, two.integers - exact
    # with one key the second noise would be twice the first, but for the roundings of both
    assert (abs(2 * noise - twice) > 1e-6 * abs(twice) + 2).all(), "no two levels share a key"


def test_where_it_does_not_go_is_said():
    add = {"mu": 1.0, "neighbors": "add-remove"}
    with pytest.raises(TypeError, match="need by"):
        PrivateSum(REGION, max_rows=2, **add)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="max_rows"):
            PrivateSum(REGION, by="u", max_rows=wrong, **add)
    with pytest.raises(ValueError, match="statistic"):
        PrivateSum(REGION, by="u", max_rows=2, statistic="sum", **add)
    with pytest.raises(ValueError, match="add-remove"):
        PrivateSum(REGION, by="u", max_rows=2, mu=1.0)
    with pytest.raises(ValueError, match="region"):
        PrivateSum(lower=[0], upper=[1], by="u", max_rows=2, **add)


def test_users_beyond_the_memory_are_kept_in_a_file_for_every_pass(monkeypatch):
    rng = np.random.default_rng(3)
    rows, users = rng.random((5000, 2)), np.arange(5000)
    plan = PrivateMean(lower=[0, 0], upper=[1, 1], mu=1.0, by="u")
    whole = plan(rows, users=users, seed=1)
    monkeypatch.setattr("ellipsum.rows.divided.MEMORY_BYTES", 1 << 14)
    spilt = plan(rows, users=users, seed=1)
    assert (spilt.value == whole.value).all() and spilt.n == 5000


@pytest.mark.parametrize("n", [50, 2000])
@pytest.mark.parametrize("kind", ["object", "U2", "int64", "float64"])
def test_masked_labels_are_refused_whatever_they_mask(n, kind):
    """Beyond some size their mask was lost: users that were nobody's came in."""
    labels = np.ma.array((np.arange(n) % 5).astype(kind), mask=np.arange(n) % 5 == 0)
    for refused in (labels, labels[:0]):
        with pytest.raises(TypeError, match="users is a masked array: give a list"):
            labels_of("users", refused)


@pytest.mark.parametrize("how", ["plan", "resumed", "counted"])
def test_no_row_is_on_disk_while_an_error_is_held(monkeypatch, tmp_path, how):
    """Who holds it, as a notebook does, holds what it went through."""
    opened = []
    make = divided.tempfile.TemporaryFile
    monkeypatch.setattr(
        divided.tempfile, "TemporaryFile", lambda **k: opened.append(make(**k)) or opened[-1]
    )
    monkeypatch.setattr(divided, "MEMORY_BYTES", 1 << 12)
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.random(4000), "y": rng.random(4000), "u": np.arange(4000) % 1500})
    pq.write_table(table, tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", by="u")
    known = {"mu": 1.0, "by": "u"}

    def refuse(*_given):
        raise KeyboardInterrupt

    if how == "plan":
        mechanism = PrivateMean(lower=[0, 0], upper=[1, 1], **known)
        call = partial(mechanism, rows, on_plan=refuse)
    else:
        monkeypatch.setattr(ExactSum, "add", refuse)
        shape = GaussianShape(sigma=[1, 1]) if how == "counted" else Ellipsoid.ball(2.0, d=2)
        resume = {"resume": tmp_path / "job"} if how == "resumed" else {}
        call = partial(PrivateMean(shape, **known), rows, **resume)
    with pytest.raises(KeyboardInterrupt) as held:
        call()
    assert held.value.__traceback__ is not None
    assert opened and all(file.closed for file in opened)
