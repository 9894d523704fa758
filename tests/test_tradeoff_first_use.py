"""What a first user gives the exact part and the audit: text, holes, rare labels, any unit."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum.tradeoff import (
    DiscreteTradeoff,
    GaussianTradeoff,
    LinearEraser,
    OracleShift,
    audit,
)
from ellipsum.tradeoff.neighbors import knn_information

SECRET = "secret7"


def people(n=120):
    rows = np.random.default_rng(0).normal(size=(n, 3))
    return rows, (rows[:, 0] > 0).astype(int)


TEXT = np.array([[SECRET, 1.0]] * 120, dtype=object)
LABELS = people()[1]


@pytest.mark.parametrize(
    "given",
    [
        lambda: audit(TEXT, LABELS, attackers=("linear",)),
        lambda: audit(TEXT.astype(str), LABELS, attackers=("linear",)),
        lambda: audit(lambda rows: rows, LABELS, TEXT, attackers=("linear",)),
        lambda: knn_information(TEXT, LABELS),
        lambda: LinearEraser().fit(TEXT, LABELS),
        lambda: OracleShift().fit(TEXT, LABELS),
        lambda: GaussianTradeoff(distortion=1.0).fit(TEXT, LABELS),
        lambda: DiscreteTradeoff(multiplier=1.0).fit([[SECRET, 1.0]], np.eye(2)),
        lambda: DiscreteTradeoff(multiplier=1.0).fit([[0.5, 0.5]], [[SECRET, 1.0]] * 2),
    ],
)
def test_no_error_quotes_a_cell(given):
    with pytest.raises(TypeError, match="must be numbers") as raised:
        given()
    assert SECRET not in str(raised.value) and raised.value.__suppress_context__


def test_labels_of_several_types_are_refused_by_that_reason():
    rows, _ = people()
    mixed = np.array([SECRET, None] * 60, dtype=object)
    for given in (
        lambda: audit(rows, mixed, attackers=("linear",)),
        lambda: LinearEraser().fit(rows, mixed),
        lambda: OracleShift().fit(rows, mixed),
        lambda: DiscreteTradeoff(multiplier=1.0).fit_samples(mixed, LABELS, 1 - np.eye(2)),
    ):
        with pytest.raises(TypeError, match="labels of one type") as raised:
            given()
        assert SECRET not in str(raised.value)


@pytest.mark.parametrize("factor", [1e-200, 1e-12, 1e200])
def test_attackers_see_a_label_in_any_unit(factor):
    """A column of tiny or huge numbers, or beside a large mean, was flat to the attackers."""
    rows, y = people()
    wanted = audit(rows, y, attackers=("linear", "knn"))
    found = audit(rows * factor, y, attackers=("linear", "knn"))
    assert found.results[0].accuracy > 0.9
    assert found.results[0].information == pytest.approx(wanted.results[0].information, abs=0.05)
    assert found.knn_information == pytest.approx(wanted.knn_information, abs=1e-6)
    if factor == 1e-12:
        beside = audit(rows * 1e-3 + 1e9, y, attackers=("linear",))
        assert beside.results[0].accuracy > 0.9


@pytest.mark.parametrize("factor", [[1.0, 1e-11, 1.0], [1e-200] * 3, [1e200] * 3, [1, 1e150, 1]])
def test_leace_erases_in_any_unit(factor):
    """A column of small numbers beside large ones counted as rounding, and kept its label."""
    rows, _ = people()
    y = (rows[:, 1] > 0).astype(int)
    for made in (LinearEraser(), OracleShift()):
        more = () if isinstance(made, LinearEraser) else (y,)
        released = made.fit(rows * factor, y).transform(rows * factor, *more) / factor
        means = np.array([released[y == label].mean(0) for label in (0, 1)])
        np.testing.assert_allclose(means[0], means[1], atol=1e-9)
        assert made.guarantee_.rank == 1
    constant = np.c_[rows, np.full(120, 0.1)]
    assert LinearEraser().fit(constant, y).guarantee_.rank == 1
    assert OracleShift().fit(constant, y).guarantee_.rank == 1


@pytest.mark.parametrize("made", [LinearEraser(), OracleShift()])
def test_erasers_refuse_other_columns_and_no_rows(made):
    """One column was repeated to the three of fit."""
    rows, y = people()
    more = () if isinstance(made, LinearEraser) else (y,)
    made.fit(rows, y)
    for columns in (1, 2):
        with pytest.raises(ValueError, match="3 columns"):
            made.transform(rows[:, :columns], *more)
    with pytest.raises(ValueError, match="labels must"):
        type(made)().fit(rows[:0], y[:0])


def test_records_held_out_by_number_or_by_true():
    """A mask was read as the rows 0 and 1."""
    rows, y = people()
    held = np.arange(120) % 3 == 0
    found = audit(rows, y, attackers=("linear",), test=held)
    assert found == audit(rows, y, attackers=("linear",), test=np.flatnonzero(held))
    assert found.n_test == 40
    for test in (held[:-1], np.arange(5) + 0.5, [3], [0, 120], [[0, 1]]):
        with pytest.raises(ValueError, match="test must hold"):
            audit(rows, y, attackers=("linear",), test=test)


@pytest.mark.parametrize("few", [2, 3, 4, 5])
def test_rare_labels(few):
    """The folds of the calibration may each lack a rare one: now each has it, or it is refused."""
    rows, y = people()
    y = y.copy()
    y[:few] = 2
    if few == 2:  # one of the two is held out
        with pytest.raises(ValueError, match="join rare labels"):
            audit(rows, y, attackers=("linear",))
    else:
        found = audit(rows, y, attackers=("linear", "rbf", "knn"))
        assert np.isfinite([[r.information, r.information_se] for r in found.results]).all()
    with pytest.raises(ValueError, match="cut numbers into classes"):
        audit(rows, rows[:, 0], attackers=("linear",))


@pytest.mark.parametrize(
    "options, kind, said",
    [
        ({"attackers": ()}, ValueError, "attackers must name"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"draws": 1.5}, TypeError, "draws must be a whole number"),
        ({"test_share": 0.001}, ValueError, "test_share must leave"),
        ({"test_share": 0.999}, ValueError, "test_share must leave"),
    ],
)
def test_what_an_audit_refuses(options, kind, said):
    rows, y = people()
    with pytest.raises(kind, match=said):
        audit(lambda given: given, y, rows, **({"attackers": ("linear",)} | options))


def test_what_is_no_release():
    rows, y = people()
    with pytest.raises(ValueError, match="must be finite: leave incomplete rows out"):
        audit(np.where(rows > 2, np.nan, rows), y)
    with pytest.raises(ValueError, match="rows must be given"):
        audit(LinearEraser(), y)
    with pytest.raises(TypeError, match="must have a transform"):
        audit(object(), y, rows)
    with pytest.raises(ValueError, match=r"rows \(n, d\)"):
        audit(rows[:, :0], y)
    with pytest.raises(ValueError, match="labels must have shape"):
        knn_information(rows, y[:-1])
    assert audit(rows, y, attackers="linear").results[0].attacker == "linear"
    assert knn_information(rows[:4], y[:4]) == 0.0


def test_a_sample_whose_variance_leaves_the_doubles_is_refused():
    """Its leakage was 0, or the message spoke of a covariance that nobody gave."""
    rows, _ = people()
    for factor in (1e-170, 1e200):
        with pytest.raises(ValueError, match="another unit"):
            GaussianTradeoff(distortion=0.5).fit(rows[:, :1] * factor, rows[:, 1:] + rows[:, :1])


def test_letters_of_an_earlier_fit_are_forgotten():
    rows, y = people()
    made = DiscreteTradeoff(multiplier=2.0)
    made.fit_samples(y, np.where(rows[:, 1] > 0, "u", "v"), 1 - np.eye(2))
    assert made.transform(["u", "v"]).shape == (2,)
    made.fit([[0.3, 0.2], [0.1, 0.4]], 1 - np.eye(2))
    assert made.transform([0, 1]).shape == (2,)
    with pytest.raises(ValueError, match="letters must be at least 1"):
        DiscreteTradeoff(multiplier=1.0, utility="information", letters=0).fit(
            np.eye(2) / 2, np.eye(2) / 2
        )


def test_exact_releases_name_their_columns():
    rows, labels = people()
    for made, prefix in ((LinearEraser(), "erased"), (OracleShift(), "shifted")):
        made.fit(rows, labels)
        assert list(made.get_feature_names_out()) == [f"{prefix}{i}" for i in range(3)]
    best = GaussianTradeoff(distortion=0.5).fit(rows[:, :1], rows[:, 1:])
    assert list(best.get_feature_names_out()) == ["released0", "released1"]
    with pytest.raises(ValueError, match="not fitted"):
        GaussianTradeoff(distortion=0.5).get_feature_names_out()


def test_a_direction_without_noise_has_no_last_bits_of_what_is_observed():
    """Read along the direction that the noise does not reach: it said .7 of X where 0 is stated."""
    law = np.array([[1, 0.8, 0.3], [0.8, 1.3, 0.4], [0.3, 0.4, 0.7]])
    release = GaussianTradeoff("useful", distortion=1.5).from_covariance(law, 1)
    assert release.leakage_ == 0
    rows = np.random.default_rng(1).multivariate_normal(np.zeros(3), law, 20_000)
    z = release.transform(rows[:, 1:], seed=5)
    for basis in (np.linalg.eigh(release.noise_covariance_)[1], np.linalg.eigh(np.cov(z.T))[1]):
        read = np.corrcoef(z @ basis[:, 0], rows[:, 0])[0, 1]
        assert abs(read) < 0.05  # seven standard deviations


@pytest.mark.parametrize("seed", range(6))
def test_erased_directions_have_no_last_bits_of_the_label(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 5000)
    rows = rng.normal(size=(5000, 6)) @ rng.normal(size=(6, 6)) + np.outer(y, rng.normal(size=6))
    eraser = LinearEraser().fit(rows, y)
    left = np.linalg.svd(np.eye(6) - eraser.matrix_)[0][:, -1]
    assert abs(np.corrcoef(eraser.transform(rows) @ left, y)[0, 1]) < 0.1


def test_a_column_that_is_flat_but_for_a_label_in_its_last_digits_is_released_as_its_mean():
    y = np.arange(200) % 2
    rows = np.column_stack([1e15 + y, np.sin(np.arange(200.0)), np.cos(np.arange(200.0))])
    released = LinearEraser().fit_transform(rows, y)
    assert len(np.unique(released[:, 0])) == 1 and len(np.unique(released[:, 1])) > 100


@pytest.mark.parametrize("case", ["one-hot", "multiples", "copies", "sum", "far"])
def test_an_eraser_tells_nothing_where_columns_follow_from_each_other(case):
    """Directions in which the rows lie together hold the rounding of the label: it was read there,
    from rows that were not fitted, without an error."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 600)
    if case == "sum":
        free = np.c_[label + rng.normal(size=600), rng.normal(size=600)]
        rows = np.c_[free, free.sum(1), free @ [0.3, 0.7]]
    else:
        rows = {
            "one-hot": np.eye(2)[label],
            "multiples": np.c_[label, 1.7 * label, 1e-9 * label],
            "copies": np.repeat(label[:, None] * 1.0, 100, 1),
            "far": np.eye(2)[label] * [1e-3, 1e3] + [1e6, -1e9],
        }[case]
    released = LinearEraser().fit(rows[:300], label[:300]).transform(rows[300:])
    read = audit(released, label[300:], attackers=("linear", "knn"))
    # 120 records held out: six standard errors above what a constant reads
    assert read.strongest.accuracy < read.baseline + 0.27


def test_an_eraser_keeps_new_rows_where_the_fitted_ones_do_not_differ():
    rng = np.random.default_rng(0)
    rows, label = rng.normal(size=(60, 40)), np.arange(60) % 2
    eraser = LinearEraser().fit(rows[:30], label[:30])
    moved = rows - eraser.mean_
    kept = rows - moved @ eraser.matrix_.T
    assert np.abs(eraser.transform(rows) - kept).max() < 1e-6


def test_an_eraser_erases_what_few_rows_have_in_a_direction_that_is_small():
    rng = np.random.default_rng(0)
    for far in (0.0, 1e13):
        values, label = rng.normal(size=4000), (rng.random(4000) < 0.005).astype(float)
        rows = np.c_[values, values + 1e-6 * label, far + rng.normal(size=4000)]
        released = LinearEraser().fit(rows, label).transform(rows)
        apart = released[:, 1] - released[:, 0]
        assert abs(np.cov(apart, label)[0, 1]) < 1e-3 * abs(np.cov(1e-6 * label, label)[0, 1])
