"""What a person with several rows or records has, in releases of every kind (claim users-4)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ellipsum import (
    Budget,
    DeltaGuarantee,
    Ellipsoid,
    GaussianGuarantee,
    PrivateCounts,
    PrivateMean,
    calibrate,
    compose,
)
from ellipsum.records import RecordGuarantee

REGION = Ellipsoid.ball(3.0, d=2)
ROWS = np.random.default_rng(0).normal(size=(60, 2))


def gaussian(mu: float, **options) -> GaussianGuarantee:
    return PrivateMean(REGION, mu=mu, **options).guarantee


def test_several_releases_have_what_each_of_them_has():
    parts = [gaussian(0.5), gaussian(1.25)]
    three = compose(parts).for_rows(3)
    assert three.spent.mu_squared == 9 * compose(parts).spent.mu_squared
    assert three.unit == "3 rows of one person" and three.unit in str(three)
    assert three.mu == pytest.approx(3 * math.hypot(0.5, 1.25), rel=1e-15)
    assert three.is_private and three.neighbors == "replace" and len(three.parts) == 2
    pair = DeltaGuarantee("replace", 0.5, 1e-9)
    mixed = compose([*parts, pair]).for_rows(3)
    own = pair.for_rows(3)
    assert mixed.spent.epsilon == own.cost().epsilon and mixed.spent.delta == own.cost().delta
    assert mixed.delta(0.1) > three.delta(0.1)
    assert compose(parts).for_rows(1) == compose(parts)
    again = compose([compose(parts), gaussian(1.0)]).for_rows(2)  # compositions compose
    assert again.spent.mu_squared == 4 * (compose(parts).spent.mu_squared + 1)


def test_a_person_as_unit_stays_and_fewer_rows_are_not_taken_for_more():
    person = compose([gaussian(1.0, by="u"), gaussian(0.5, by="u")])
    assert person.for_rows(1000) is person
    for promise in (gaussian(1.0), DeltaGuarantee("replace", 0.5, 1e-9), compose([gaussian(1.0)])):
        three = promise.for_rows(3)
        assert three.for_rows(2) is three.for_rows(3) is three
        with pytest.raises(ValueError, match="ask the one that it was made from"):
            three.for_rows(4)
        with pytest.raises(ValueError, match="at least 1"):
            promise.for_rows(0)


def test_private_keys_have_no_more_than_their_pair():
    promise = PrivateCounts(epsilon=1.0, delta=1e-6, max_keys=3).guarantee_for(None)
    two = promise.for_rows(2)
    assert two.asked_epsilon >= 2.0 and two.unit == "2 rows of one person"
    chain = 1e-6 * (1 + math.e)
    assert chain <= two.asked_delta <= chain * (1 + 1e-12)
    assert promise.for_rows(1) is promise
    mean = PrivateMean(REGION, mu=0.5, neighbors="add-remove").guarantee
    both = compose([promise, mean]).for_rows(2)
    assert both.spent.delta == two.cost().delta and both.spent.mu_squared == 1
    users = PrivateCounts(epsilon=1.0, delta=1e-6, max_keys=3).guarantee_for("u")
    assert users.for_rows(50) is users


def test_sums_alone_are_not_below_the_parts():
    budget = Budget(mu=9, delta=1e-6)
    releases = [PrivateMean(REGION, mu=mu)(ROWS, budget=budget) for mu in (0.5, 0.25)]
    budget.spend(epsilon=0.5)
    spent = budget.guarantee.for_rows(4).spent
    assert spent.mu_squared == compose(releases).for_rows(4).spent.mu_squared
    assert spent.epsilon == 2
    budget.spend(delta=1e-7)  # of a selection, perhaps: nothing is known for several rows
    with pytest.raises(ValueError, match="compose"):
        budget.guarantee.for_rows(4)


def test_records_of_a_person_compose_and_a_fit_on_them_does_not():
    three = RecordGuarantee(mu_release=0.5).for_rows(3)
    assert three.unit == "3 records of one person" and three.unit in str(three)
    # The exact pair of the product: three Gaussians of distance 0.5 are one of sqrt(3)/2.
    for delta in (1e-9, 1e-3):
        true = calibrate.epsilon(1 / math.sqrt(0.75), delta)
        assert true <= three.epsilon(delta) <= true * (1 + 1e-9)
    fitted = RecordGuarantee(0.5, 0.0, 0.25).for_rows(4)
    assert fitted.mu == pytest.approx(math.sqrt(4 * 0.25 + 16 * 0.0625), rel=1e-11)
    pure = RecordGuarantee(pure_epsilon=2.0).for_rows(5)
    assert pure.epsilon() == 10.0 and pure.to_dict()["unit"] == "5 records of one person"
    far = RecordGuarantee(pure_epsilon=16.0, mu_fit=0.1).for_rows(100)
    assert math.isfinite(far.mu) and 1500 < far.epsilon(1e-6) < 1700
    both = compose([RecordGuarantee(0.5), RecordGuarantee(0.5)]).for_rows(4)
    assert both.mu == math.sqrt(2) and both.unit == "4 records of one person"
    assert RecordGuarantee(0.5).for_rows(1) == RecordGuarantee(0.5)
