"""Keys: bound to what they are for, so that no caller can draw the same noise for two purposes."""

from __future__ import annotations

import ast
import enum
import itertools
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import ellipsum
from ellipsum import Ellipsoid, ExactSum, PrivateMean, PrivateSum, estimate_covariance, noise
from ellipsum.noise_keys import JobKeys, Told, Use, digest, root_key

ROOT = bytes(range(32))
REGION = Ellipsoid.ball(1.0, d=3)
ROWS = np.random.default_rng(0).normal(size=(50, 3))


def integers(release):
    return release.integers.astype(object)


def test_one_key_under_two_noise_levels_does_not_give_the_sum_away():
    """With the noise of one key, 2a - b of levels s and 2s is the sum to a grid unit."""
    total = ExactSum(REGION).add(ROWS)
    a = PrivateSum(REGION, mu=0.5)(ROWS, seed=ROOT)
    b = PrivateSum(REGION, mu=0.25)(ROWS, seed=ROOT)
    off = 2 * integers(a) - integers(b) - total.integers()
    assert (np.abs(off) > 1e-3 * a.parameters["sum_sigma"]).all()


def test_the_same_key_and_the_same_job_repeat_the_same_release():
    run = PrivateMean(REGION, mu=0.5, neighbors="add-remove")
    first, again = run(ROWS, seed=ROOT), run(ROWS[::-1], seed=ROOT)
    assert (first.integers == again.integers).all() and first.n == again.n


def test_a_budget_is_a_number_whatever_its_type():
    total = ExactSum(REGION).add(ROWS)
    budgets = [{"mu": 1}, {"mu": 1.0}, {"mu": np.float32(1)}]
    drawn = [PrivateSum(REGION, **budget).noise_of(total, ROOT).tolist() for budget in budgets]
    assert drawn[0] == drawn[1] == drawn[2]


def test_any_other_job_has_noise_of_its_own():
    """Region, level, kind, relation, rows and the key itself: each alone changes the noise."""
    other_rows = np.vstack([ROWS[1:], [[0.25, 0, 0]]])
    jobs = [
        (PrivateSum(REGION, mu=1.0), ROWS, ROOT),
        (PrivateSum(REGION, mu=1.0), other_rows, ROOT),
        (PrivateSum(REGION, mu=1.0), ROWS, bytes(32)),
        (PrivateSum(REGION, mu=1.0, neighbors="add-remove"), ROWS, ROOT),
        (PrivateSum(REGION, rho=0.5000001), ROWS, ROOT),
        (PrivateMean(REGION, mu=1.0), ROWS, ROOT),
        (PrivateSum(Ellipsoid.ball(1.0, [0, 0, 1e-30]), mu=1.0), ROWS, ROOT),
    ]
    drawn = [
        run.noise_of(ExactSum(run.ellipsoid).add(rows), key).tolist() for run, rows, key in jobs
    ]
    assert len({tuple(noise) for noise in drawn}) == len(jobs)


def test_a_plan_and_a_covariance_are_bound_too():
    box = {"lower": np.full(3, -9.0), "upper": np.full(3, 9.0)}
    a, b = (PrivateMean(**box, mu=mu)(ROWS, seed=ROOT) for mu in (2.0, 2.0000001))
    assert (a.transcript[0] != b.transcript[0]).any()
    ball = {"center": np.zeros(3), "radius": 3.0, "seed": ROOT}
    one, two = (estimate_covariance(ROWS, mu=mu, **ball) for mu in (1.0, 2.0))
    noise_one = one.value - ROWS.T @ ROWS / 50
    noise_two = two.value - ROWS.T @ ROWS / 50
    assert not np.allclose(noise_one, 2 * noise_two, rtol=1e-3)


def test_no_two_uses_share_a_key():
    keys = JobKeys(ROOT, "job")
    drawn = [keys.of(use, *draw) for use in Use for draw in [(), (1,), (2,), (1.0,), ("1",)]]
    assert len(set(drawn)) == len(drawn)
    assert JobKeys(ROOT, "other").of(Use.SUM) != keys.of(Use.SUM)
    assert len({use.value for use in Use}) == len(list(Use))


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_no_two_draws_of_one_release_share_a_key(monkeypatch, neighbors):
    """A count under the sum's key has the sum's first noise, on another scale."""
    draw, keys = noise.rounded_gaussian, []

    def record(n, sigma, *, key, **how):
        keys.append(bytes(key))
        return draw(n, sigma, key=key, **how)

    monkeypatch.setattr(noise, "rounded_gaussian", record)
    moved = Ellipsoid.ball(1.0, [1.0, 2.0, 3.0])  # a count is needed for the sum, too
    box = {"lower": np.full(3, -9.0), "upper": np.full(3, 9.0)}
    ball = {"center": np.zeros(3), "radius": 3.0, "neighbors": neighbors, "seed": ROOT}
    pair = {"epsilon": 1.0, "delta": 1e-3}
    jobs = [
        lambda: PrivateSum(moved, mu=1.0, neighbors=neighbors)(ROWS, seed=ROOT),
        lambda: PrivateMean(moved, mu=1.0, neighbors=neighbors)(ROWS, seed=ROOT),
        lambda: PrivateMean(**box, mu=3.0, neighbors=neighbors)(ROWS, seed=ROOT),
        lambda: estimate_covariance(ROWS, mu=1.0, **ball),
        lambda: estimate_covariance(ROWS, method="wishart", **pair, **ball),
    ]
    used = []
    for job in jobs:
        keys.clear()
        job()
        assert len(set(keys)) == len(keys) >= (2 if neighbors == "add-remove" else 1)
        used += keys
    assert len(set(used)) == len(used)  # nor do two releases of one root key


def test_plans_over_other_boxes_share_no_noise():
    """Told by their centre and widest side alone, the steps of two boxes had the same noise where
    their counts agree: for rows on a line all, and another row would part them."""
    rows = np.zeros((3000, 2))
    rows[:, 0] = np.random.default_rng(0).normal(size=3000)
    boxes = [{"lower": [-8.0, -y], "upper": [8.0, y]} for y in (8.0, 4.0)]
    boxes.append({"center": [0.0, 0.0], "radius": 8.0})
    steps = [PrivateMean(**box, mu=2.0)(rows, seed=ROOT).transcript for box in boxes]
    more = PrivateMean(**boxes[0], mu=2.0)(rows[:-1], seed=ROOT).transcript
    for one, two in itertools.combinations([*steps, more], 2):
        for a, b in zip(one, two, strict=False):
            assert len(a) != len(b) or (a != b).any()


class Word(str, enum.Enum):
    FIRST = "first"


def test_a_job_is_bound_to_values_and_to_no_type_whose_value_is_not_sure():
    same = [(Word.FIRST, "first"), (np.int16(-3), -3), (np.float32(0.5), 0.5), (np.str_("a"), "a")]
    for one, two in same:
        assert digest(one) == digest(two) != digest("")
    long = [10**5000, 10**5000 + 1, -(10**5000), np.array([10**5000], object)]
    odd = ["\ud800", "\udc00", *long, np.bool_(True), np.array([True])]
    assert len({digest(part) for part in odd}) == len(odd)
    assert root_key(10**5000) != root_key(10**5000 + 1)
    other = [Fraction(1, 2), Decimal("1.5"), [1, 2], {}, np.ma.masked_array([1.0], [True])]
    other += [np.array([1.5], object), np.array(["1"], object), np.array([True], object)]
    other += [np.longdouble(1), np.ones(1, np.longdouble), np.zeros(1, [("a", float)])]
    for part in other:
        with pytest.raises(TypeError, match="no key is bound to"):
            digest(part)


def test_the_encoding_of_a_job_is_injective():
    parts = [
        None, b"", b"a", "a", "", False, True, 0, 1, -1, 0.0, -0.0, 1.0, np.zeros(1),
        np.zeros((1, 1)), np.zeros(2), np.zeros(1, np.int64), np.array([0], object),
        np.array([2**70], object),
    ]  # fmt: skip
    jobs = [(), *((p,) for p in parts), *itertools.product(parts, repeat=2), (b"as",)]
    assert len({digest(*job) for job in jobs}) == len(jobs)


def test_what_is_told_step_by_step_is_what_is_told_at_once():
    parts = ["plan", None, np.arange(3.0), np.array([2**70, -1], object), 1.5, b"x"]
    for k in range(len(parts)):
        told = Told(*parts[:k])
        assert told.digest(*parts[k:]) == digest(*parts)
        assert JobKeys(ROOT, *parts[k:], after=told).of(Use.STEP, 1) == (
            JobKeys(ROOT, *parts).of(Use.STEP, 1)
        )
        told.add(*parts[k:])
        assert told.digest() == digest(*parts)


def test_keys_are_derived_in_one_place():
    """BLAKE2b under a key, and fresh random bytes, are to be found in one module."""
    package = Path(ellipsum.__file__).parent
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
            named = ast.unparse(node.func)
            keyed = "blake2b" in named and any(k.arg == "key" for k in node.keywords)
            fresh = named in ("secrets.token_bytes", "os.urandom")
            if keyed or fresh:
                assert path.name in ("noise_keys.py", "noise.py"), path


@pytest.mark.parametrize("bad", ["secret", b"short", True, 1.5])
def test_a_seed_of_another_kind_is_refused(bad):
    with pytest.raises(TypeError, match="seed must be an int or 32 bytes"):
        root_key(bad)
