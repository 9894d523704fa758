"""What a first user gives the learned releases: frames, text, other columns, any unit, files."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned import (  # noqa: E402
    FilterBank,
    GenerativeFilter,
    GuaranteedFilter,
    PrivacyNetwork,
    VariationalEncoder,
    held_out,
    load,
)

torch.set_num_threads(1)

SECRET = "secret7"
MAKERS = {
    "encoder": lambda: VariationalEncoder(2, hidden=(8,), epochs=1),
    "filter": lambda: GenerativeFilter(1.0, shift="none", steps=2),
    "proved filter": lambda: GenerativeFilter(mu=2.0, clip=1.5, shift="none", steps=2),
    "guaranteed": lambda: GuaranteedFilter(2.0, hidden=(8,), steps=2),
}
PROVED = ("proved filter", "guaranteed")


def people(n=60):
    rows = np.random.default_rng(0).normal(size=(n, 3))
    return rows, (rows[:, 0] > 0).astype(int), (rows[:, 1] > 0).astype(int)


ROWS, PRIVATE, USEFUL = people()


def text():
    return np.array([[SECRET, 1.0, 2.0]] * 60, dtype=object)


@pytest.mark.parametrize("kind", MAKERS)
def test_no_error_quotes_a_cell(kind):
    """scikit-learn's own quote a text, and the whole of a single row."""
    made = MAKERS[kind]().fit(ROWS, PRIVATE)
    calls = [lambda: MAKERS[kind]().fit(text(), PRIVATE), lambda: MAKERS[kind]().fit(ROWS[0], [1])]
    if kind not in PROVED:
        calls += [lambda: made.transform(text()), lambda: made.transform(ROWS[0])]
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=r"must be numbers|two dimen") as raised:
            call()
        assert SECRET not in str(raised.value) and "0.12" not in str(raised.value)


def test_nothing_else_quotes_a_cell():
    bank = FilterBank(MAKERS["filter"]())
    users = np.arange(60) % 2
    network = PrivacyNetwork("affine", distortion=0.5, steps=20).fit(ROWS[:, :1], ROWS[:, 1:])
    for call in (
        lambda: bank.fit(text(), users, {0: (PRIVATE, USEFUL), 1: (PRIVATE, USEFUL)}),
        lambda: PrivacyNetwork("affine", distortion=0.5).fit(text(), ROWS),
        lambda: PrivacyNetwork("affine", distortion=0.5).fit(ROWS, text()),
        lambda: network.transform(text()[:, :2]),
        lambda: PrivacyNetwork("discrete", multiplier=1.0).fit_law([[SECRET]], [[1.0]]),
    ):
        with pytest.raises(TypeError, match="must be numbers") as raised:
            call()
        assert SECRET not in str(raised.value)


@pytest.mark.parametrize("kind", MAKERS)
def test_columns_are_met_by_name_before_and_after_a_file(kind, tmp_path):
    """A proved release took a frame in any order, and a file forgot the names."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=list("abc"))
    made = MAKERS[kind]().fit(frame, PRIVATE)
    made.save(tmp_path / "made")
    read = load(tmp_path / "made", device="cpu")
    assert list(read.feature_names_in_) == list("abc")
    for one in (made, read):
        assert one.transform(frame).shape[0] == 60
        with pytest.raises(ValueError, match="feature names should match"):
            one.transform(frame[list("cba")])


def test_a_file_of_somebody_else_and_labels_that_no_file_holds(tmp_path):
    path = tmp_path / "file"
    path.write_text("not ours")
    with pytest.raises(ValueError, match="not written by"):
        load(path)
    days = np.array(["2020-01-01", "2021-01-01"] * 30, "M8[D]")
    with pytest.raises(TypeError, match="give numbers or text"):
        MAKERS["filter"]().fit(ROWS, days).save(path)


def test_another_device_is_put_into_all_parts_of_a_file(tmp_path):
    users, choice = np.arange(60) % 2, (PRIVATE, USEFUL)
    bank = FilterBank(MAKERS["filter"](), MAKERS["encoder"]().fit(ROWS))
    bank.fit(ROWS, users, {0: choice, 1: choice}).save(tmp_path / "bank")
    bank.filter.device = bank.encoder.device = bank.filters_[0].device = "elsewhere"
    bank.save(tmp_path / "far")
    with pytest.raises(ValueError, match="give device"):
        load(tmp_path / "far")
    near = load(tmp_path / "far", device="cpu")
    released = load(tmp_path / "bank").transform(ROWS, users, seed=1)
    assert (near.transform(ROWS, users, seed=1) == released).all()


@pytest.mark.parametrize("kind", ["encoder", "filter", "guaranteed"])
@pytest.mark.parametrize("factor", [1e-200, [1, 1e200, 1]])
def test_units_whose_squares_leave_the_doubles_are_refused(kind, factor):
    """They gave latents of zeros, and a word of a constant X."""
    with pytest.raises(ValueError, match="another unit"):
        MAKERS[kind]().fit(ROWS * factor, PRIVATE)


@pytest.mark.parametrize(
    "made",
    [
        VariationalEncoder(2, epochs=3, learning_rate=1e30),
        GenerativeFilter(1e300, steps=2),
        GenerativeFilter(1e-300, steps=2),
    ],
)
def test_training_that_leaves_the_numbers_is_an_error(made):
    with pytest.raises(ValueError, match="not finite"):
        made.fit(ROWS, PRIVATE)


@pytest.mark.parametrize(
    "made, said",
    [
        (VariationalEncoder(2, hidden=8), "hidden must be a sequence"),
        (VariationalEncoder(2, kl_weight=-1), "kl_weight must be"),
        (VariationalEncoder(2, lipschitz=-1), "lipschitz must be"),
        (VariationalEncoder(2, epochs=1, learning_rate=-1), "learning_rate must be"),
        (VariationalEncoder(2, epochs=1, learning_rate="a"), "learning_rate must be"),
        (GenerativeFilter(1.0, useful_weight=float("nan")), "useful_weight must be"),
        (GenerativeFilter(1.0, divergence="renyi", order=1), "order must not be 1"),
        (GenerativeFilter(mu=1.0, clip=1e300), "clip must lie"),
        (GuaranteedFilter(keep_weight=-1), "keep_weight must be"),
    ],
)
def test_parameters_are_refused_by_name(made, said):
    with pytest.raises((TypeError, ValueError), match=said):
        made.fit(ROWS, PRIVATE)


def test_labels_are_refused_by_name():
    mixed = np.array(["a", None] * 30, dtype=object)
    for kind in ("filter", "guaranteed"):
        with pytest.raises(TypeError, match="y must be labels of one type"):
            MAKERS[kind]().fit(ROWS, mixed)
        with pytest.raises(ValueError, match="useful must hold two"):
            MAKERS[kind]().fit(ROWS, PRIVATE, np.zeros(60))


@pytest.mark.parametrize("kind", PROVED)
def test_no_rows_are_no_releases(kind):
    made = MAKERS[kind]().fit(ROWS, PRIVATE)
    assert made.transform(ROWS[:0]).shape == (0, made.transform(ROWS).shape[1])


def test_a_bank_says_what_is_wrong():
    users, choice = np.arange(60) % 2, (PRIVATE, USEFUL)
    bank = FilterBank(MAKERS["filter"]())
    with pytest.raises(ValueError, match="labels must be of all 60 rows"):
        bank.fit(ROWS, users, {0: (PRIVATE[:-1], USEFUL), 1: choice})
    bank.fit(ROWS, users, {0: (PRIVATE, None), 1: choice})
    with pytest.raises(TypeError, match="seed must be a whole number"):
        bank.transform(ROWS, users, seed="0")
    for call in (lambda: bank.guarantee(7), lambda: bank.measure(ROWS, users, PRIVATE, 7)):
        with pytest.raises(ValueError, match="user must be known"):
            call()


# ---- privacy networks ----------------------------------------------------------------------

X = np.random.default_rng(1).normal(size=(400, 1))
Y = 0.8 * X + 0.6 * np.random.default_rng(2).normal(size=(400, 1))


def affine(**params):
    return PrivacyNetwork("affine", **({"distortion": 0.5, "steps": 100} | params))


def correlation(made, rows):
    return abs(np.corrcoef(X[:, 0], made.transform(rows, seed=0)[:, 0])[0, 1])


def test_what_is_hidden_does_not_depend_on_the_unit_of_what_is_sensitive():
    """At 1e-12 X was below the ridge, and nothing was hidden; collinear columns were an error."""
    wanted = correlation(affine().fit(X, Y), Y)
    for x in (X * 1e-12, X * 1e100, np.c_[X, 2 * X] * 1e6, np.c_[X, np.full(400, 0.1)]):
        assert correlation(affine().fit(x, Y), Y) == pytest.approx(wanted, abs=1e-3)
    for x, y in ((X * 1e-160, Y), (X, Y * 1e160)):
        with pytest.raises(ValueError, match="another unit"):
            affine().fit(x, y)


def test_the_error_of_a_distortion_is_in_the_data_unit():
    """It overflowed from a Y of 1e77 on."""
    plain, large = affine().fit(X, Y), affine(distortion=0.5e200).fit(X, Y * 1e100)
    assert large.distortion_ == pytest.approx(1e200 * plain.distortion_, rel=1e-6)
    assert large.distortion_error_ == pytest.approx(1e200 * plain.distortion_error_, rel=1e-4)


def test_fit_transform_releases_what_is_observed_and_never_x():
    made = affine()
    released = made.fit_transform(X, Y)
    assert ((released - Y) ** 2).mean() == pytest.approx(0.5, rel=0.2)
    assert affine(observe="full").fit_transform(X, Y).shape == Y.shape
    words = np.where(Y[:, 0] > 0, "u", "v")
    table = PrivacyNetwork("discrete", multiplier=1.0, steps=10)
    assert set(table.fit_transform(X[:, 0] > 0, words)) <= {0, 1}


@pytest.mark.parametrize(
    "made, said",
    [
        (affine(distortion=-1.0), "distortion must be"),
        (affine(distortion=float("nan")), "distortion must be"),
        (affine(distortion="a"), "distortion must be"),
        (PrivacyNetwork("mixture", distortion=0.5, components=0), "components must be"),
        (PrivacyNetwork(distortion=0.5, discriminator=-1.0), "discriminator must be"),
        (
            PrivacyNetwork(distortion=0.5, steps=1, utility=lambda y, z: (y - z).sum()),
            "one cost for each row",
        ),
    ],
)
def test_what_a_network_refuses(made, said):
    with pytest.raises((TypeError, ValueError), match=said):
        made.fit(X, Y)


def test_a_limit_that_no_affine_map_keeps_is_refused():
    """It ended far above, and said nothing."""
    with pytest.raises(ValueError, match=r"distortion must be at least 0\.3"):
        affine(observe="given", distortion=0.01).fit(X, Y, X)


@pytest.mark.parametrize(
    "table, params, said",
    [
        ([[1.0, 1.0], [1.0, 1.0]], {"multiplier": 1.0}, "must sum to 1"),
        ([[-1.0, 2.0]], {"multiplier": 1.0}, "none below 0"),
        ([[0.3, 0.2], [0.1, 0.4]], {"distortion": -1.0}, "distortion must be at least 0"),
        ([[0.3, 0.2], [0.1, 0.4]], {"multiplier": float("nan")}, "multiplier must be"),
    ],
)
def test_tables_that_are_no_law_are_refused(table, params, said):
    """A table that sums to 2 leaked -5.5 nats."""
    with pytest.raises(ValueError, match=said):
        PrivacyNetwork("discrete", steps=5, **params).fit_law(table, 1 - np.eye(2))


def test_evaluation_refuses_what_is_no_law():
    made = affine().fit(X, Y)
    for covariance, k, said in (
        ([[1.0, 2.0], [3.0, 4.0]], 1, "symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], 1, "negative eigenvalue"),
        (np.eye(3), 1, "1 columns of Y"),
        (np.eye(2), 2, "n_sensitive must be"),
    ):
        with pytest.raises(ValueError, match=said):
            made.evaluate(covariance, k)
    with pytest.raises(ValueError, match="negative eigenvalue"):
        affine().fit_covariance([[1.0, 2.0], [2.0, 1.0]], 1)
    with pytest.raises(ValueError, match="n_sensitive must be"):
        affine().fit_covariance(np.eye(2), 2)


def test_measuring_takes_constant_columns_and_refuses_too_few_rows(monkeypatch):
    monkeypatch.setattr(held_out, "_STEPS", 30)  # what a network adds is not the question
    made = affine().fit(X, Y)
    plain, beside = (made.measure(x, Y) for x in (X, np.c_[X, np.ones(400)] * 1e-3))
    assert beside.plug_in == pytest.approx(plain.plug_in, rel=1e-6)
    assert made.measure(np.ones((400, 1)), Y).held_out == 0.0
    for x, y in ((X[:5], Y[:5]), (X[:-1], Y)):
        with pytest.raises(ValueError, match="the same rows, 20 or more"):
            made.measure(x, y)


def test_a_label_of_its_own_for_most_rows_is_no_label():
    z = np.random.default_rng(0).normal(size=(60, 3))
    for made in (GenerativeFilter(1.0, steps=2), GuaranteedFilter(2.0, hidden=(8,), steps=2)):
        with pytest.raises(ValueError, match="cut into ranges"):
            made.fit(z, z[:, 0])
