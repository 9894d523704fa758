"""Filters and banks: what a seed is, what columns are called, what an encoder must not tell."""

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
    label_reader,
)
from ellipsum.tradeoff import audit  # noqa: E402

torch.set_num_threads(1)


def people(n):
    z = np.random.default_rng(0).normal(size=(n, 4))
    return z, z[:, 0] > 0, z[:, 1] > 0


@pytest.mark.filterwarnings("error")
def test_nothing_escapes_through_an_encoder(monkeypatch):
    """A row with a hole counts as latents of 0, and its neighbours do not notice."""
    monkeypatch.setattr(label_reader, "_STEPS", 20)  # how well labels are read is not asked
    z, first, second = people(120)
    encoder = VariationalEncoder(3, epochs=2).fit(z)
    users, labels = np.arange(120) % 2, {0: (first, second), 1: (second, first)}
    for uses_label in (False, True):
        one = GenerativeFilter(1.0, clip=2.0, steps=3, uses_label=uses_label)
        bank = FilterBank(one, encoder).fit(z, users, labels)
        given = {0: first, 1: second} if uses_label else None
        whole = bank.transform(z, users, given, seed=None)
        odd = z.copy()
        odd[3, 1], odd[4, 0], odd[5] = np.nan, -np.inf, 1e308
        released = bank.transform(odd, users, given)
        assert released.shape == whole.shape and np.isfinite(released).all()
        latents = encoder.encoded_whatever(odd)
        assert not latents[[3, 4]].any()
        others = np.delete(np.arange(120), [3, 4, 5])
        np.testing.assert_allclose(latents[others], encoder.transform(z)[others], rtol=1e-12)
    plain = FilterBank(GenerativeFilter(1.0, steps=3), encoder).fit(z, users, labels)
    with pytest.raises(ValueError, match="NaN"):
        plain.transform(odd, users)


def seeded(kind):
    """A release of rows as a function of the seed, and whether it has a proof."""
    z, first, second = people(80)
    users, one = np.arange(80) % 2, {"method": "isotropic"}
    if kind.startswith("bank"):
        clip = {"clip": 2.0} if kind == "bank, proved" else {}
        bank = FilterBank(GenerativeFilter(1.0, **one, **clip))
        bank.fit(z, users, {0: (first, second), 1: (second, first)})
        return lambda seed: bank.transform(z, users, seed=seed)
    made = {
        "filter": GenerativeFilter(1.0, **one),
        "filter, proved": GenerativeFilter(1.0, clip=2.0, **one),
        "trained inside": GuaranteedFilter(2.0, steps=2),
    }
    if kind in made:
        return made[kind].fit(z, first).transform
    if kind == "table":
        return PrivacyNetwork("discrete", distortion=0.2, steps=2).fit(first, second).transform
    return PrivacyNetwork("affine", distortion=0.5, steps=2).fit(z[:, :2], z[:, 2:]).transform


KINDS = ["filter", "filter, proved", "trained inside", "bank", "bank, proved", "network", "table"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_a_number_bytes_or_a_generator(kind):
    release = seeded(kind)
    z, _, second = people(80)
    rows = {"table": second, "network": z[:, 2:]}.get(kind, z)
    made = release if kind.startswith("bank") else (lambda seed: release(rows, seed=seed))
    for seed in (7, bytes(range(32))):
        assert (made(seed) == made(seed)).all()
    first, again = (np.random.default_rng(3) for _ in range(2))
    drawn = made(first)
    assert (made(again) == drawn).all()
    assert (made(first) != drawn).any()  # the generator has moved on
    assert (made(None) != made(None)).any()


def test_a_generator_takes_the_promise_away_as_a_number_does():
    z, first, second = people(80)
    for made, d in (
        (GenerativeFilter(1.0, clip=2.0, method="isotropic").fit(z, first), 4),
        (GuaranteedFilter(2.0, steps=2).fit(z, first), 2),
    ):
        for seed in (1, bytes(32), np.random.default_rng(1)):
            release = made.release(z, seed=seed)
            assert not release.private and "seed" in release.caveats[0]
            assert str(release).splitlines()[0] == f"latents, d = 80x{d}, not private"
        assert made.release(z).private
        assert str(made.release(z)).splitlines()[0] == f"private latents, d = 80x{d}"
    unproved = GenerativeFilter(1.0, method="isotropic").fit(z, first).release(z)
    assert str(unproved).splitlines()[0] == "latents, d = 80x4, not private"
    assert "not private" in repr(unproved) and "<b>latents, d" in unproved._repr_html_()
    bank = FilterBank(GenerativeFilter(1.0, method="isotropic"))
    bank.fit(z, np.arange(80) % 2, {0: (first, second), 1: (second, first)})
    found = [
        bank.measure(
            z,
            np.arange(80) % 2,
            first,
            0,
            draws=1,
            attackers=["linear"],
            seed=np.random.default_rng(1),
        )
        for _ in range(2)
    ]
    assert found[0] == found[1]


class Odd:
    __hash__ = None


def test_one_odd_label_or_row_changes_nobody_elses_release():
    """As an array, labels beside one of another type would all be text, and all unknown."""
    z, first, second = people(80)
    one = GenerativeFilter(1.0, clip=2.0, method="isotropic", uses_label=True).fit(z, first)
    one.V_ = np.outer(np.ones(4), [1e3, -1e3])  # which shift is taken shows
    plain = list(map(bool, first))
    wanted = one._which(z, plain)
    assert set(wanted.tolist()) == {0, 1}
    for odd in ("a", None, [1, 2], np.nan, Odd(), 10**400):
        assert np.array_equal(one._which(z, [*plain[:-1], odd])[:-1], wanted[:-1])
    users = np.arange(80) % 2
    bank = FilterBank(one).fit(z, users, {0: (first, None), 1: (second, None)})
    given = {0: [*plain[:-1], "a"], 1: [*plain[:-1], [1, 2]]}
    whole = bank.transform(z, users, {0: plain, 1: plain}, seed=3)
    np.testing.assert_array_equal(bank.transform(z, users, given, seed=3)[:-1], whole[:-1])
    rows = z.tolist()
    rows[3], rows[4], rows[5] = ["a", 0, 0, 0], [1.0], [10**400, 0, 0, 0]
    released = bank.transform(rows, users, given)
    assert released.shape == whole.shape and np.isfinite(released).all()
    others = np.delete(np.arange(80), [3, 4, 5])
    np.testing.assert_array_equal(bank._latents(rows, proved=True)[others], z[others])


def test_another_label_is_measured_on_the_release_that_the_private_one_shifts():
    """The useful label was what the filter shifted by, and its finding the filter's."""
    z, private, useful = people(200)
    made = GenerativeFilter(1.0, steps=5, uses_label=True).fit(z, private, useful)
    options = {"attackers": ("linear",), "draws": 1}
    kept = made.measure(z, private, **options).guarantee
    found = made.measure(z, useful, private_labels=private, **options)
    released = made.transform(z, private, seed=0)
    assert found == audit(released, useful, attackers=("linear",))
    assert made.guarantee_ == kept != found.guarantee
    with pytest.raises(ValueError, match="give private_labels"):
        made.measure(z, np.where(useful, "a", "b"), **options)


def test_a_bank_without_an_encoder_meets_its_columns_by_name():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    z, first, second = people(80)
    frame, users = pandas.DataFrame(z, columns=list("abcd")), np.arange(80) % 2
    bank = FilterBank(GenerativeFilter(1.0, method="isotropic"))
    bank.fit(frame, users, {0: (first, None), 1: (second, None)})
    assert bank.transform(frame, users).shape == z.shape
    with pytest.raises(ValueError, match="columns of fit, in their order"):
        bank.transform(frame[list("bacd")], users)
