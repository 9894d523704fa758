"""The generative filter: what its bits prove, its budget met, and what it only estimates."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import ndtr

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum import calibrate  # noqa: E402
from ellipsum.learned import (  # noqa: E402
    FilterBank,
    GenerativeFilter,
    GuaranteedFilter,
    LocalGuarantee,
    VariationalEncoder,
    label_reader,
    load,
    together,
)
from ellipsum.learned.local_mechanism import LocalMechanism  # noqa: E402
from ellipsum.learned.networks import generator_of, mlp  # noqa: E402
from ellipsum.tradeoff import EstimatedInformation, LinearErasure, divergences  # noqa: E402
from fresh_attackers import accuracies  # noqa: E402

torch.set_num_threads(1)


def people(n=400, d=4, seed=0):
    """Latents, a private label that two of them carry together, a useful one on a third."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d)) @ np.diag(np.linspace(1.5, 0.5, d))
    return z, (z[:, 0] * z[:, 1] > 0).astype(int), (z[:, 2] > 0.2).astype(int)


@pytest.fixture
def quick_reader(monkeypatch):
    """For tests of what does not depend on how well the labels are read."""
    monkeypatch.setattr(label_reader, "_STEPS", 20)


quickly = pytest.mark.usefixtures("quick_reader")


def shifting(shift):
    """The parameters of the three kinds of filters."""
    return {"uses_label": True} if shift == "label" else {"shift": shift}


def mechanism(seed, labels, d=3, radius=1.7):
    """A random filter on a ball: its axes, noise and shifts."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d)) + 0.5 * np.eye(d)
    V = rng.normal(size=(d, labels))
    basis, size, _ = np.linalg.svd(A)
    shifts = basis.T @ V if labels > 1 else None
    return LocalMechanism(basis.T, radius, size, shifts, basis), rng


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_no_two_records_are_further_apart_than_mu(labels, seed):
    """On the integers themselves: random records, far ones, odd ones, and a gradient search."""
    made, rng = mechanism(seed, labels)
    rows = rng.normal(size=(20_000, 3)) * np.exp(3 * rng.normal(size=(20_000, 1)))
    rows[:3] = [[np.nan, 0, 0], [np.inf, 1, 1], [1e308, -1e308, 1e308]]
    which = rng.integers(0, labels, len(rows))
    integers = made.clip.integers(rows) + made.shifts[which]
    assert np.isfinite(integers).all()
    pairs = rng.integers(0, len(rows), (100_000, 2))
    apart = np.linalg.norm((integers[pairs[:, 0]] - integers[pairs[:, 1]]) / made.steps, axis=1)
    assert apart.max() <= made.mu
    best = 0.0
    for i in range(labels):
        for j in range(labels):
            u = rng.normal(size=3)
            for _ in range(3000):  # ascent over u = z - z' on the ball of twice the radius
                u = (2 * made.clip.row_bound) * (u / np.linalg.norm(u))
                moved = u + made.shifts[i] - made.shifts[j]
                u = u + moved / made.steps**2 * made.steps.min() ** 2
            u = (2 * made.clip.row_bound) * (u / np.linalg.norm(u))
            found = np.linalg.norm((u + made.shifts[i] - made.shifts[j]) / made.steps)
            best = max(best, found)
    assert best <= made.mu * (1 + 1e-12)
    assert best >= made.mu * (1 - 1e-6)  # and the bound is reached


def test_the_bits_are_integers_plus_rounded_noise():
    made, rng = mechanism(1, 2)
    rows, which = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    released = made.release(rows, which, None)
    on_grid = released @ made.back / made.clip.grid  # back is a rotation
    assert np.abs(on_grid - np.rint(on_grid)).max() < 1e-4
    noise = np.rint(on_grid) - made.clip.integers(rows) - made.shifts[which]
    assert np.abs((noise / made.steps).std(0) - 1).max() < 0.2
    again = made.release(rows, which, None)
    assert (again != released).any()  # fresh keys
    assert (made.release(rows, which, 5) == made.release(rows, which, 5)).all()
    other = made.release(rows + 1e-3, which, 5)  # a seed, but other rows: other noise
    assert np.abs((other - made.release(rows, which, 5)) / made.clip.grid).max() > 1e5


def test_the_best_attacker_on_the_worst_pair_is_right_as_often_as_mu_says():
    """Phi(mu/2), within five standard errors on both sides: the noise is neither less nor more."""
    z, private, useful = people()
    made = GenerativeFilter(mu=2.0, clip=1.5, method="isotropic").fit(z, private, useful)
    n = 200_000
    direction = np.array([1.0, 0, 0, 0])
    truth = np.arange(n) % 2
    rows = np.where(truth[:, None] == 1, 9.0, -9.0) * direction
    guess = made.transform(rows) @ direction > 0
    right, best = (guess == truth).mean(), ndtr(made.guarantee_.mu / 2)
    error = (best * (1 - best) / n) ** 0.5
    assert abs(right - best) < 5.5 * error
    assert best == pytest.approx(made.guarantee_.most_accurate)


@quickly
@pytest.mark.parametrize("shift", ["none", "predicted", "label"])
@pytest.mark.parametrize("method", ["adversarial", "kernel", "isotropic"])
def test_the_mu_asked_for_is_the_mu_proved(shift, method):
    z, private, useful = people(200)
    labels = shift == "label"
    made = GenerativeFilter(mu=3.0, clip=2.0, method=method, steps=15, **shifting(shift))
    release = made.fit(z, private, useful).release(z, private if labels else None)
    guarantee = release.guarantee
    assert guarantee.kind == "local-gdp" and release.private and not release.caveats
    assert 3.0 * (1 - 1e-6) <= guarantee.mu <= 3.0
    assert guarantee.epsilon(1e-6) == pytest.approx(calibrate.epsilon(1 / 3.0, 1e-6), rel=1e-5)
    assert guarantee.renyi(4.0) == pytest.approx(4 * guarantee.mu**2 / 2)
    assert "not covered" in str(release) and "labels included" in str(guarantee)
    assert json.loads(json.dumps(release.to_dict()))["guarantee"]["mu"] == guarantee.mu
    seeded = made.release(z, private if labels else None, seed=1)
    assert not seeded.private and "seed" in seeded.caveats[0]


@quickly
@pytest.mark.parametrize("shift", ["none", "predicted", "label"])
@pytest.mark.parametrize(
    "divergence, budget",
    [("realised", 2.0), ("kl", 0.7), ("reverse-kl", 0.4), ("chi2", 0.3), ("renyi", 0.3)],
)
def test_every_budget_is_met_exactly(shift, divergence, budget):
    z, private, useful = people(300)
    made = GenerativeFilter(budget, divergence=divergence, order=3.0, steps=10, **shifting(shift))
    made.fit(z, private, useful)
    cov, zero = np.cov(z, rowvar=False), np.zeros(4)
    added = cov + made.A_ @ made.A_.T
    share = np.ones(1)
    if shift == "label":
        share = np.bincount(private) / len(z)
    elif shift == "predicted":
        # one seed, the same noise: what is left is the difference of two columns of V
        still = made.transform(z, seed=0) - made.transform(z[:1].repeat(300, 0), seed=0)
        moved = still - (z - z[0])
        apart = made.V_.T[:, None] - made.V_.T[None]
        away = np.linalg.norm(moved[:, None, None] - apart[None], axis=3).reshape(300, -1)
        assert away.min(1).max() < 1e-9
        share = np.bincount(made._reader.read(z), minlength=4) / len(z)
    if divergence == "realised":
        inverse = np.linalg.inv(cov)
        moved = np.einsum("ij,ik,kj->j", made.V_, inverse, made.V_) @ share
        spent = 0.5 * (np.trace(inverse @ made.A_ @ made.A_.T) + moved)
    elif divergence in ("chi2", "renyi"):
        order = 2.0 if divergence == "chi2" else 3.0
        each = np.array([divergences.renyi(zero, cov, v, added, order) for v in made.V_.T])
        spent = np.log(share @ np.exp((order - 1) * each)) / (order - 1)
        spent = np.expm1(spent) / 2 if divergence == "chi2" else spent
    else:
        count = divergences.kl if divergence == "kl" else divergences.reverse_kl
        spent = share @ [count(zero, cov, v, added) for v in made.V_.T]
    assert spent == pytest.approx(budget, rel=1e-6)
    assert made.V_.any() == (shift != "none")
    with pytest.raises(AttributeError, match="no epsilon"):
        made.guarantee_.epsilon(1e-6)


@pytest.mark.parametrize("divergence", ["kl", "reverse-kl", "chi2", "renyi"])
def test_gradients_pass_through_the_scale(divergence):
    """Against finite differences of the exact root."""
    from ellipsum.learned.filter_training import Budget

    rng = np.random.default_rng(0)
    A, V = np.eye(3) + 0.3 * rng.normal(size=(3, 3)), 0.4 * rng.normal(size=(3, 2))
    budget = Budget(divergence, 0.3, 2.5, np.array([0.4, 0.6]), True)

    def root(a, v):
        return np.linalg.norm(budget.exact(a, v)[0]) / np.linalg.norm(a)

    a, v = (torch.tensor(t, requires_grad=True) for t in (A, V))
    budget.scale(a, v)
    for _ in range(30):  # it follows the root by one Newton step at a time
        scale = budget.scale(a, v)
    assert float(scale.detach()) == pytest.approx(root(A, V), rel=1e-8)
    scale.backward()
    for given, slope, place in ((A, a.grad, 0), (V, v.grad, 1)):
        step = np.zeros_like(given)
        step[1, 1] = 1e-5
        pair = [(A, V), (A, V)]
        up = [g + step if i == place else g for i, g in enumerate(pair[0])]
        down = [g - step if i == place else g for i, g in enumerate(pair[1])]
        assert float(slope[1, 1]) == pytest.approx((root(*up) - root(*down)) / 2e-5, rel=1e-4)


@quickly
def test_nothing_escapes_by_errors_or_shapes():
    """With a proof: odd rows and unknown labels are released like any other."""
    z, private, useful = people(200)
    made = GenerativeFilter(mu=3.0, clip=2.0, uses_label=True, steps=5).fit(z, private, useful)
    odd = np.array([[np.nan] * 4, [np.inf, 0, 0, 0], [1e308] * 4])
    released = made.transform(odd, np.array([0, 77, 1]))
    assert released.shape == (3, 4) and np.isfinite(released).all()
    for method in ("adversarial", "isotropic"):
        read = GenerativeFilter(mu=3.0, clip=2.0, steps=5, method=method).fit(z, private, useful)
        released = read.transform(odd)
        assert released.shape == (3, 4) and np.isfinite(released).all()
    trained = GuaranteedFilter(2.0, steps=5, batch_size=50).fit(z, private, useful)
    released = trained.transform(odd)
    assert released.shape == (3, 2) and np.isfinite(released).all()


def test_a_trained_map_keeps_its_mu_whatever_the_network_says():
    z, private, useful = people(300)
    made = GuaranteedFilter(2.5, dimension=3, steps=20).fit(z, private, useful)
    assert 2.5 * (1 - 1e-6) <= made.guarantee_.mu <= 2.5
    with torch.no_grad():
        for weight in made._net.parameters():
            weight.mul_(1e6)  # a network gone wild
    big = made._mechanism.clip.integers(1e9 * np.random.default_rng(0).normal(size=(5000, 3)))
    apart = np.linalg.norm(big[:, None, :][:1000] - big[None, :1000], axis=2).max()
    assert apart / made._mechanism.steps.min() <= made.guarantee_.mu
    released = made.transform(100 * z)
    size = np.linalg.norm(released, axis=1).max()
    assert size < 1.25 + 8  # mu/2 and noise
    keep = GuaranteedFilter(8.0, dimension=4, steps=80, keep_weight=5.0).fit(z, private)
    back = keep.inverse_transform(keep.transform(z, seed=0))
    assert ((back - z) ** 2).mean() < 0.7 * z.var(0).mean()


def test_guarantees_together():
    proof, other = LocalGuarantee(3.0, 1.0), LocalGuarantee(4.0, 2.0)
    assert together(proof, other).mu == pytest.approx(5.0)
    assert together(proof).mu == 3.0
    estimate = EstimatedInformation(0.2, 0.01, ("rbf",), 100)
    mixed = together(proof, estimate)
    assert mixed.kind == "mutual-information-estimated" and not mixed.is_private
    with pytest.raises(AttributeError, match="no epsilon"):
        mixed.epsilon(1e-6)
    with pytest.raises(ValueError, match="nothing follows"):
        together(proof, LinearErasure(1))


@quickly
def test_only_the_proved_kind_has_an_epsilon():
    z, private, useful = people(200)
    made = GenerativeFilter(1.0, steps=5).fit(z, private, useful)
    assert made.guarantee_.kind == "mutual-information-estimated"
    found = made.measure(z, private, attackers=("linear",), draws=2)
    assert made.guarantee_ == found.guarantee and made.guarantee_.n_test == 80
    release = made.release(z)
    assert not release.private
    with pytest.raises(AttributeError, match="no epsilon"):
        _ = release.guarantee.epsilon


def test_the_game_hides_what_isotropic_noise_of_the_same_size_cannot_keep_apart():
    """Private: the sign of the product of two coordinates; useful: the sign of a third."""
    z, private, useful = people(1200, seed=1)
    half = slice(0, 800)
    accuracy, test = {}, np.arange(800, 1200)
    for method in ("isotropic", "adversarial"):
        made = GenerativeFilter(2.0, method=method, steps=100, batch_size=128)
        made.fit(z[half], private[half], useful[half])
        released = [made.transform(z, seed=i) for i in range(2)]
        found = [accuracies(released, label, test, ["rbf"]) for label in (private, useful)]
        accuracy[method] = [each["rbf"] for each in found]
    assert accuracy["adversarial"][1] > accuracy["isotropic"][1] + 0.08
    assert accuracy["adversarial"][0] < accuracy["isotropic"][0] + 0.05


def test_cells_are_read_by_networks_that_have_not_seen_the_row(monkeypatch):
    """Labels by chance, 200 rows: read in sample they look known, across folds they are not."""
    z = people(200)[0]
    cells = np.random.default_rng(1).integers(0, 2, 200)
    own = label_reader.LabelReader(np.eye(4), 2, "cpu").fit(z, cells, generator_of(0)).read(z)
    found = label_reader.cross_read(z, cells, np.eye(4), 2, "cpu", generator_of(0))
    assert (own == cells).mean() > 0.8 and 0.3 < (found == cells).mean() < 0.7
    monkeypatch.setattr(label_reader, "_STEPS", 20)
    made = [GenerativeFilter(2.0, steps=3, folds=n).fit(z, cells) for n in (1, 2)]
    assert (made[0].V_ != made[1].V_).any()


def test_spectral_norms_are_those_of_the_jacobian():
    from ellipsum.learned.encoder import spectral_norm

    generator = generator_of(0)
    net = mlp([3, 8, 5], generator, dtype=torch.float64)
    at = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    found = spectral_norm(net, at, generator, steps=200).detach().numpy()
    for row, norm in zip(at, found, strict=True):
        jacobian = torch.autograd.functional.jacobian(net, row)
        assert norm == pytest.approx(np.linalg.norm(jacobian.numpy(), 2), rel=1e-6)


def test_the_lipschitz_penalty_lowers_the_decoders_norm():
    rows = people(300)[0] @ np.random.default_rng(0).normal(size=(4, 12))
    norms = []
    for bound in (None, 0.5):
        encoder = VariationalEncoder(
            3, hidden=(24,), epochs=25, batch_size=50, lipschitz=bound, lipschitz_weight=20.0
        ).fit(rows)
        norms.append(encoder.decoder_norm(encoder.transform(rows)))
    assert norms[1] < 0.6 * norms[0]


@quickly
def test_a_bank_keeps_each_users_choice(tmp_path):
    z, first, second = people(300)
    users = np.arange(300) % 2
    bank = FilterBank(GenerativeFilter(2.0, steps=20), VariationalEncoder(3, epochs=3).fit(z))
    bank.fit(z, users, {0: (first, second), 1: (second, first)})
    released = bank.transform(z, users, seed=1)
    assert released.shape == (300, 3) and len(bank.filters_) == 2
    assert (bank.filters_[0].A_ != bank.filters_[1].A_).any()
    found = bank.measure(z, users, first, 0, attackers=("linear",), draws=2)
    assert found.pooled.n_test == found.informed.n_test
    assert found.pooled.n_train > found.informed.n_train
    bank.save(tmp_path / "bank.safetensors")
    read = load(tmp_path / "bank.safetensors")
    assert (read.transform(z, users, seed=1) == released).all()
    assert not bank.guarantee(0).is_private


@quickly
def test_files_hold_no_pickle_and_give_the_same_release(tmp_path):
    z, private, useful = people(150)
    path = tmp_path / "filter.safetensors"
    for made in (
        GenerativeFilter(1.0, steps=5, uses_label=True).fit(z, private.astype(str), useful),
        GenerativeFilter(mu=2.0, clip=1.0, steps=5).fit(z, private, useful),
        GenerativeFilter(1.0, shift="none", steps=5).fit(z, private, useful),
        GuaranteedFilter(2.0, steps=5).fit(z, private, useful),
        VariationalEncoder(2, epochs=2).fit(z),
    ):
        made.save(path)
        read = load(path)
        options = {} if isinstance(made, VariationalEncoder) else {"seed": 3}
        labels = (private.astype(str),) if getattr(made, "uses_label", False) else ()
        given = made.transform(z, *labels, **options)
        assert (read.transform(z, *labels, **options) == given).all()
        if hasattr(made, "guarantee_"):
            assert read.guarantee_ == made.guarantee_
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(1)}, str(path))
    with pytest.raises(ValueError, match="not written by"):
        load(path)


@pytest.mark.parametrize(
    "params, said",
    [
        ({}, "give budget .* or mu"),
        ({"mu": 1.0}, "mu needs clip"),
        ({"budget": 1.0, "method": "best"}, "method must be"),
        ({"budget": 1.0, "divergence": "l2"}, "divergence must be"),
        ({"budget": -1.0}, "budget must be"),
    ],
)
def test_what_is_refused(params, said):
    z, private, useful = people(50)
    with pytest.raises(ValueError, match=said):
        GenerativeFilter(**params).fit(z, private, useful)


@quickly
def test_a_progress_bar_goes_to_standard_error_and_changes_nothing(capsys):
    z, private, useful = people(60)
    made = [
        GenerativeFilter(1.0, steps=4, progress=shown).fit(z, private, useful)
        for shown in (False, True)
    ]
    said = capsys.readouterr()
    assert "filter" in said.err and not said.out
    assert (made[0].A_ == made[1].A_).all()


@quickly
def test_labels_go_with_filters_that_use_them():
    z, private, useful = people(60)
    made = GenerativeFilter(1.0, steps=3).fit(z, private, useful)
    with pytest.raises(ValueError, match="uses no label"):
        made.transform(z, private)
    shifted = GenerativeFilter(1.0, steps=3, uses_label=True).fit(z, private, useful)
    with pytest.raises(ValueError, match="give it, row by row"):
        shifted.transform(z)
