"""A budget is compared with a release before data are read, and again after (claim ledger-5)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ellipsum import (
    Budget,
    BudgetError,
    Ellipsoid,
    GaussianShape,
    PrivateCounts,
    PrivateGroupMean,
    PrivateGroupSum,
    PrivateMean,
    PrivateSum,
    estimate_center,
    estimate_covariance,
    estimate_scale,
    open_rows,
)
from ellipsum.guarantee import GaussianGuarantee
from ellipsum.records import PrivatePCA, PrivateProjection, PrivateRegression

REGION = Ellipsoid.ball(3.0, d=2)
BOX = {"lower": [-9.0, -9.0], "upper": [9.0, 9.0]}
SHAPE = GaussianShape(sigma=[1.0, 1.0])


def unread():
    """Rows, or tables, that nobody may ask for."""
    pytest.fail("the data were read")
    yield  # pragma: no cover


def releases(budget):
    """A call of each mechanism, and its unit."""
    mu, pair = {"mu": 0.5}, {"epsilon": 1.0, "delta": 1e-6}
    group = {"keys": ["a", "b"], "neighbors": "replace", **mu}
    known = {"center": [0.0, 0.0], "radius": 2.0}
    yield lambda: PrivateSum(REGION, **mu)(unread, budget=budget)
    yield lambda: PrivateMean(REGION, **mu)(unread(), budget=budget)
    yield lambda: PrivateMean(SHAPE, **mu)(unread, budget=budget)
    yield lambda: PrivateMean(**BOX, **mu)(unread, budget=budget)
    yield lambda: PrivateMean(REGION, **mu, by="u")(unread(), budget=budget)
    yield lambda: PrivateMean(**BOX, **mu, by="u")(unread, budget=budget)
    yield lambda: PrivateGroupSum(REGION, **group)(unread(), key="k", budget=budget)
    yield lambda: PrivateGroupMean(REGION, **group)(unread(), key="k", user="u", budget=budget)
    yield lambda: PrivateCounts(**group)(unread(), key="k", budget=budget)
    yield lambda: estimate_center(unread, **BOX, **mu, budget=budget)
    yield lambda: estimate_scale(unread, **BOX, **mu, budget=budget)
    yield lambda: estimate_covariance(unread, **known, **mu, budget=budget)
    yield lambda: estimate_covariance(unread, **known, **pair, method="wishart", budget=budget)
    yield lambda: PrivatePCA(1, 2.0, center=[0.0, 0.0], **mu).fit(unread, budget=budget)
    yield lambda: PrivateRegression(2.0, center=[0.0, 0.0], **mu).fit(unread, budget=budget)
    yield lambda: PrivateProjection(rows=3, d=2, radius=2.0, **pair, budget=budget)


@pytest.mark.parametrize("of", ["unit", "neighbors", "room", "ledger", "kind"])
def test_a_release_without_room_or_of_another_unit_reads_nothing(of, tmp_path):
    budget = {
        "unit": lambda: Budget(mu=9, delta=0.1, unit="one household"),
        "neighbors": lambda: Budget(mu=9, delta=0.1, neighbors="add-remove"),
        "room": lambda: Budget(mu=0.01),
        "ledger": lambda: Budget(mu=0.01, path=tmp_path / "a.ledger"),
        "kind": lambda: 0.5,
    }[of]()
    for call in releases(budget):
        with pytest.raises(TypeError if of == "kind" else BudgetError):
            call()
    if of == "unit":
        with pytest.raises(BudgetError, match=r"Budget\(neighbors='replace', unit='all rows of"):
            PrivateMean(REGION, mu=0.5, by="u")([], budget=budget)
    if of != "kind":
        assert not budget.entries


def test_room_that_went_while_the_data_were_read_is_seen_too(tmp_path):
    budget = Budget(mu=1, path=tmp_path / "a.ledger")

    def rows():
        Budget(path=budget.path).spend(mu=0.9)
        yield np.ones((4, 2))

    with pytest.raises(BudgetError, match="left is"):
        PrivateSum(REGION, mu=0.5)(rows(), budget=budget)
    assert len(budget.entries) == 1


@pytest.mark.parametrize("plan", [False, True])
def test_a_job_that_has_drawn_repeats_its_release_without_room(plan, tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(4000, 2)))
    rows, mu = open_rows([str(tmp_path / "rows.npy")]), {"mu": 0.8}
    mechanism = PrivateMean(**BOX, **mu) if plan else PrivateMean(REGION, **mu)
    budget = Budget(mu=1, path=tmp_path / "a.ledger")
    first = mechanism(rows, budget=budget, resume=tmp_path / "job.ck")
    again = mechanism(rows, budget=budget, resume=tmp_path / "job.ck")
    assert again.entry == first.entry and (again.value == first.value).all()
    with pytest.raises(BudgetError, match="left is"):  # a new job has no entry
        mechanism(rows, budget=budget, resume=tmp_path / "other.ck")
    assert not (tmp_path / "other.ck").exists()


def test_a_projection_draws_from_the_budget_that_it_was_made_with():
    budget, known = Budget(epsilon=1, delta=1e-6), {"epsilon": 1.0, "delta": 1e-6}
    projection = PrivateProjection(rows=3, d=2, radius=2.0, **known, budget=budget)
    projection.add(np.ones((4, 2)))
    with pytest.raises(ValueError, match="budget once"):
        projection.release(budget=Budget(epsilon=1, delta=1e-6))
    assert projection.release().entry.number == 1
    with pytest.raises(BudgetError, match="left is"):
        PrivateProjection(rows=3, d=2, radius=2.0, **known, budget=budget)


@pytest.mark.parametrize("number", [np.float32(0.1), np.int64(1), Fraction(1, 10)])
def test_a_budget_may_be_any_kind_of_number_and_costs_no_more_than_it(number, tmp_path):
    """A fraction is taken as the double below: above it, the noise would be less than it says."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(40000, 2)))
    np.savez(tmp_path / "groups.npz", x=np.ones(50), y=np.ones(50), k=np.repeat(["a", "b"], 25))
    rows, groups = open_rows(tmp_path / "rows.npy"), ["k"]
    labelled = open_rows(tmp_path / "groups.npz", ["x", "y"], by=groups)
    several = {"by": "k", "max_rows": np.int64(2), "neighbors": "add-remove"}
    PrivateSum(REGION, mu=number, **several)(labelled, resume=tmp_path / "several.ck")
    pair = {"epsilon": number, "delta": number / 100}
    for k, (make, data, more) in enumerate(
        [
            (PrivateSum(REGION, mu=number), rows, {}),
            (PrivateMean(REGION, rho=number), rows, {}),
            (PrivateMean(**BOX, **pair), rows, {}),
            (PrivateGroupSum(REGION, keys=["a"], mu=number), labelled, {"key": "k"}),
            (PrivateGroupMean(REGION, **pair), labelled, {"key": "k"}),
        ]
    ):
        relation = "add-remove" if more else "replace"
        budget = Budget(mu=number + 3, delta=number / 50, neighbors=relation)
        release = make(data, **more, budget=budget, resume=tmp_path / f"{k}.ck")
        promise = release.guarantee
        assert release.entry.cost.mu_squared >= 1 / Fraction(promise.noise_multiplier) ** 2
    exact = number if isinstance(number, Fraction) else Fraction(float(number))
    assert Budget(mu=number).limit.mu_squared == exact**2
    assert PrivateSum(REGION, mu=number)(rows, budget=Budget(mu=number)).entry.number == 1


def test_numbers_of_numpy_do_not_wrap_around():
    budget = Budget(mu=10)
    budget.spend(mu=np.int64(3))
    budget.spend(mu=2.0**-31)
    budget.draw(GaussianGuarantee("replace", 1 / 3, asked_mu=np.int64(3)), "known")
    assert budget.spent.mu_squared == 18 + Fraction(1, 2**62)
    small = Budget(mu=2.5)
    small.spend(mu=2.0**-31)
    with pytest.raises(BudgetError, match="left is mu = 2"):
        PrivateSum(REGION, mu=np.int64(3))(np.ones((4, 2)), budget=small)
