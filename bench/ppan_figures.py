"""Figures and the table of Tripathy, Wang & Ishwar (PPAN), with the optimum beside each point.

python bench/ppan_figures.py              everything that is not in bench/results yet
python bench/ppan_figures.py affine       five Gaussian settings, three seeds (Figures 4, 5, 6)
                             sampling     how far off 8,000 rows must be: exact beside learned
                             network      the same with networks, by three estimates
                             discrete     Figure 3
                             recipe       the paper's own recipe: plug-in against neighbours
                             components   Figure 12
                             images       Figures 7 to 9, on digits of 8 x 8 pixels
                             erasers      closed forms and a proved release beside these
                             (--again: those of them that are in bench/results, too)
                             pictures     draw ppan_*.png; show: print the tables

With one's own images, to ./own_results or --results FOLDER:

    ppan_figures.py images erasers --rows mnist_images.npy --labels mnist_digits.npy

Results: bench/results/ppan_figures.json and .md.
"""

from __future__ import annotations

import time

import numpy as np

from ellipsum.tradeoff import DiscreteTradeoff, GaussianTradeoff, ksg_information
from learned_baselines import erased, letters_response, noise_leakage, proved_mu
from learned_data import Labelled, Source
from learned_information import paired_information, scalar_information
from learned_pictures import Results, options
from learned_settings import MIDDLE, covariances, draw, pairs_observed, symmetric_pair
from ppan_sampling import sampling

TARGETS = {
    "scalar, useful": (0.1, 0.2, 0.35, 0.5, 0.65, 0.8),
    "scalar, full": (0.05, 0.1, 0.2, 0.3, 0.45, 0.6),
    "vector, useful": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    "vector, full": (0.15, 0.3, 0.5, 0.8, 1.1),
    "rate-distortion": (0.2, 0.5, 0.8, 1.2, 1.7),
}
ROWS = 8000  # as in the paper
DIGITS_VARIANCE = 4.7  # of scikit-learn's pixels: the distortions of images() are for these
COMPONENTS_AT = 0.23  # the distortion of Figure 12


def affine(results: Results, source: Source) -> None:
    """Exact leakage and distortion on the true covariance: trained on n rows, and on the law."""
    from ellipsum.learned import PrivacyNetwork

    rows = results.setdefault("affine", [])
    known = {(r["setting"], r["rows"], r["target"]) for r in rows}
    for n in (None, ROWS, 100_000):
        for setting, targets in TARGETS.items():
            observe, covariance, k = covariances()[setting]
            for target in targets if n != 100_000 else (MIDDLE[setting],):
                if (setting, n, target) in known:
                    continue
                for seed in range(3 if n else 1):
                    net = PrivacyNetwork("affine", observe=observe, distortion=target, seed=seed)
                    data = draw(covariance, n, 100 + seed) if n else None
                    start = time.process_time()
                    if data is None:
                        net.fit_covariance(covariance, k)
                    else:
                        net.fit(data[:, :k], data[:, k:])
                    seconds = time.process_time() - start
                    point = net.evaluate(covariance, k)
                    rows.append(
                        {
                            "setting": setting,
                            "rows": n,
                            "target": target,
                            "seed": seed,
                            "distortion": point.distortion,
                            "sampling": net.distortion_error_,
                            "leakage": point.leakage,
                            "optimum": point.optimum,
                            "seconds": round(seconds, 2),
                        }
                    )
                results.keep()


def network(results: Results, source: Source) -> None:
    """Universal, Gaussian and mixture mechanisms; estimates on 40,000 new rows."""
    from ellipsum.learned import PrivacyNetwork

    rows = results.setdefault("network", {})
    runs = [("universal", setting, 0) for setting in MIDDLE]
    runs += [(name, "scalar, useful", 0) for name in ("gaussian", "mixture")]
    runs += [("universal", one, seed) for one in sorted(MIDDLE)[::-1] for seed in (1, 2)]
    for name, setting, seed in runs:
        observe, covariance, k = covariances()[setting]
        target = MIDDLE[setting]
        key = f"{setting}; {name}; {target:g}; seed {seed}"
        if key in rows:
            continue
        data = draw(covariance, ROWS, 100 + seed)
        net = PrivacyNetwork(name, observe=observe, distortion=target, seed=seed)
        start = time.process_time()
        net.fit(data[:, :k], data[:, k:])
        seconds = time.process_time() - start
        test = draw(covariance, 40_000, 200 + seed)
        found = net.measure(test[:, :k], test[:, k:])
        best = GaussianTradeoff(observe, distortion=found.distortion)
        if setting == "scalar, useful":
            seen = scalar_information(lambda y, n=net: n.transform(y, seed=7), 0.85)
        else:
            draws = np.random.default_rng(7)
            seen = paired_information(
                lambda w, n=net, d=draws: n.transform(w, seed=d), observe, covariance, k
            )
        rows[key] = {
            "quadrature": seen,
            "distortion": found.distortion,
            "plug-in": found.plug_in,
            "held-out network": found.held_out,
            "se": found.standard_error,
            "neighbours": found.neighbors,
            "optimum": best.from_covariance(covariance, k).leakage_,
            "seconds": round(seconds, 1),
        }
        results.keep()
        print(key, flush=True)


def discrete(results: Results, source: Source) -> None:
    """Figure 3: ten letters, error 0.4; from the exact law and from one sample of each size.

    Learned, and the plug-in: the exact solver on the frequencies. Both are read under the true law.
    """
    from ellipsum.learned import PrivacyNetwork

    joint, cost = symmetric_pair(), 1 - np.eye(10)
    rows = results["discrete"] = []
    laws = {"exact": joint}
    for n in (1000, 10_000):
        flat = np.random.default_rng(0).choice(100, n, p=joint.ravel())
        laws[f"{n:,} samples"] = np.bincount(flat, minlength=100).reshape(10, 10) / n
    for observe in ("useful", "full"):
        true, costs = (joint, cost) if observe == "useful" else pairs_observed(joint, cost)
        for target in (0.05, 0.1, 0.2, 0.3, 0.45, 0.6):
            row = {"observe": observe, "target": target}
            for name, law in laws.items():
                table = law if observe == "useful" else pairs_observed(law, cost)[0]
                net = PrivacyNetwork("discrete", distortion=target).fit_law(table, costs)
                row[name] = letters_row(net.channel_, true, costs)
                if name != "exact":
                    plug_in = DiscreteTradeoff(distortion=target).fit(table, costs)
                    row[f"plug-in, {name}"] = letters_row(plug_in.channel_, true, costs)
            told = letters_response(joint, row["exact"]["distortion"])
            row["exact"]["response"], row["exact"]["epsilon"] = told
            rows.append(row)
            print("discrete", observe, target, flush=True)
    results.keep()


def letters_row(channel: np.ndarray, true: np.ndarray, costs: np.ndarray) -> dict:
    """A channel under the true law, and the optimum at the distortion that it has there."""
    spent = float((true.sum(0)[:, None] * channel * costs).sum())
    seen = true @ channel
    apart = np.outer(seen.sum(1), seen.sum(0))
    live = seen > 0
    leakage = float((seen[live] * np.log(seen[live] / apart[live])).sum())
    best = DiscreteTradeoff(distortion=spent).fit(true, costs).leakage_
    return {"distortion": spent, "leakage": leakage, "optimum": best}


def recipe(results: Results, source: Source) -> None:
    """The paper's own recipe at one distortion, read by a Gaussian plug-in and by neighbours."""
    from ppan_recipe import train

    _, covariance, _ = covariances()["scalar, useful"]
    rows = results.setdefault("recipe", {})
    for target in (0.5, 0.8):
        if str(target) in rows:
            continue
        start = time.process_time()
        released = train(draw(covariance, ROWS, 0), target)
        seconds = time.process_time() - start
        test = draw(covariance, 40_000, 1)
        z = released(test[:, 1:])
        rho = np.corrcoef(test[:, 0], z[:, 0])[0, 1]
        error = float(((z - test[:, 1:]) ** 2).mean())
        best = GaussianTradeoff(distortion=error).from_covariance(covariance, 1).leakage_
        rows[str(target)] = {
            "distortion": error,
            "plug-in": float(-0.5 * np.log(1 - rho**2)),
            "neighbours": ksg_information(test[:, 0], z[:, 0]),
            "optimum": best,
            "seconds": round(seconds, 1),
            "points": np.c_[test[:1500, 1], z[:1500, 0]].round(4).tolist(),
        }
        results.keep()


def components(results: Results, source: Source) -> None:
    """Figure 12: useful against sensitive and against released, of rho .85, .47 and .07."""
    from ellipsum.learned import PrivacyNetwork

    _, covariance, k = covariances()["vector, useful"]
    data = draw(covariance, ROWS, 0)
    net = PrivacyNetwork("affine", distortion=COMPONENTS_AT).fit(data[:, :k], data[:, k:])
    test = draw(covariance, 600, 1)
    z = net.transform(test[:, k:], seed=0)
    point = net.evaluate(covariance, k)
    results["components"] = {
        "distortion": point.distortion,
        "leakage": point.leakage,
        "optimum": point.optimum,
        "isotropic noise": noise_leakage(covariance, k, point.distortion),
        "mu": proved_mu(covariance, k, point.distortion),
        "points": {
            f"{rho:g}": np.c_[test[:, k + j], z[:, j], test[:, j]].round(4).tolist()
            for rho, j in ((0.85, 2), (0.47, 0), (0.07, 3))
        },
    }
    results.keep()


def images(results: Results, source: Source) -> None:
    """Figures 7 to 9 on digits: hide which digit, keep the pixels; without and with discriminator.

    The paper's Figure 8 reads the adversary that was trained along; here attackers are fresh.
    """
    from ellipsum.learned import PrivacyNetwork

    data = source.digits()
    live = data.rows.std(0) > 0.02
    pixels, digit = data.rows[:, live], data.labels["digit"]
    rows = results.setdefault("images", {})
    size = pixels[data.test].var(0).sum() / DIGITS_VARIANCE if source.own else 1.0
    for weight in (0.0, 2.0):
        for target in (1.5, 2.5, 3.5, 4.2) if weight == 0 else (2.5, 3.5):
            key = f"{weight:g}; {target:g}"
            if key in rows:
                continue
            net = PrivacyNetwork(
                sensitive="labels",
                distortion=target * size,
                discriminator=weight,
                hidden=(128, 128),
                steps=500,
                batch_size=200,
                learning_rate=4e-3,
            )
            start = time.process_time()
            net.fit(digit[data.train], pixels[data.train])
            seconds = time.process_time() - start
            z = np.array([net.transform(pixels, seed=i) for i in range(2)])
            rows[key] = image_row(data, live, z) | {"seconds": round(seconds, 1)}
            results.keep()
            print("images", key, flush=True)


def image_row(data: Labelled, live: np.ndarray, z: np.ndarray) -> dict:
    """Squared error, what fresh attackers learn of the digit, noise of the same size, samples."""
    from ellipsum.tradeoff import audit

    pixels, digit, test = data.rows[:, live], data.labels["digit"], data.test
    error = float(((z - pixels)[:, test] ** 2).sum(2).mean())
    noise = np.random.default_rng(1).normal(size=z.shape) * (error / pixels.shape[1]) ** 0.5
    row = {"squared error": error, "variance": float(pixels[test].var(0).sum())}
    for name, released in (("learned", z), ("plain noise", pixels + noise)):
        found = audit(released, digit, test=test, attackers=("rbf",))
        row[name] = {r.attacker: round(r.accuracy, 4) for r in found.results}
        row[name]["information"] = round(found.guarantee.lower, 4)
    shown = [int(test[digit[test] == k][0]) for k in range(10)]
    samples = np.zeros((3, 10, data.rows.shape[1]))
    samples[0] = data.rows[shown]
    samples[1][:, live], samples[2][:, live] = z[0][shown], (pixels + noise[0])[shown]
    return row | {"samples": samples.round(3).tolist()}


def erasers(results: Results, source: Source) -> None:
    """Beside the digits: the pixels as they are, LEACE, oracle shift, and proved releases."""
    from ellipsum.learned import GenerativeFilter
    from ellipsum.tradeoff import audit

    data = source.digits()
    live, digit = data.rows.std(0) > 0.02, data.labels["digit"]
    pixels = data.rows[:, live]
    rows = results.setdefault("erasers", {})
    released = {"pixels as they are": (pixels, None)}
    released |= {name: (z, None) for name, z in erased(pixels, digit, data.train).items()}
    clip = float(np.median(np.linalg.norm(pixels - 0.5, axis=1)))
    for mu in (4.0, 16.0, 64.0):
        made = GenerativeFilter(mu=mu, clip=clip, method="isotropic")
        made.fit(pixels[data.train] - 0.5, digit[data.train])
        z = 0.5 + np.array([made.transform(pixels - 0.5, seed=i) for i in range(2)])
        released[f"clip and noise, proved mu = {mu:g}"] = (z, mu)
    for name, (z, mu) in released.items():
        if name in rows:
            continue
        found = audit(z, digit, test=data.test, attackers=("linear", "rbf"))
        rows[name] = {r.attacker: round(r.accuracy, 4) for r in found.results}
        rows[name]["information"] = round(found.guarantee.lower, 4)
        error = ((z - pixels) ** 2)[..., data.test, :].sum(-1).mean()
        rows[name] |= {"squared error": float(error), "mu": mu}
        results.keep()


def main(arguments: list[str] | None = None) -> None:
    import torch

    torch.set_num_threads(1)
    made = (affine, sampling, network, discrete, recipe, components, images, erasers)
    jobs = {f.__name__: f for f in made}
    known = [*jobs, "pictures", "show"]
    given = options(__doc__, known, arguments)
    results = Results(given.results, "ppan_figures")
    for name in given.jobs or known:
        if name in jobs:
            if given.again:
                results.pop(name, None)
            jobs[name](results, given.source)
        elif name == "pictures":
            from ppan_pictures import draw as paint

            paint(results)
        else:
            from ppan_tables import write_tables

            print(write_tables(results))


if __name__ == "__main__":
    main()
