"""What stands beside a learned release: exact for Gaussian laws, closed forms for records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

DRAWS = 4
ALL = ("linear", "mlp", "rbf", "knn")

#: Share of the rows inside the radius that a proved release of numbers is clipped to.
INSIDE = 0.99


def gaussian_leakage(covariance: np.ndarray, k: int, gain: np.ndarray, noise: float) -> float:
    """I(X; Z), Z = gain (X, Y) + isotropic noise of this variance, exactly."""
    spread = gain @ covariance @ gain.T + noise * np.eye(len(gain))
    cross = covariance[:k] @ gain.T
    both = np.block([[covariance[:k, :k], cross], [cross.T, spread]])
    logs = [np.linalg.slogdet(part)[1] for part in (covariance[:k, :k], spread, both)]
    return 0.5 * float(logs[0] + logs[1] - logs[2])


def noise_leakage(covariance: np.ndarray, k: int, distortion: float) -> float:
    """I(X; Y + noise) of isotropic Gaussian noise with this squared error, exactly."""
    r = len(covariance) - k
    return gaussian_leakage(covariance, k, np.eye(len(covariance))[k:], distortion / r)


def shift_distortion(covariance: np.ndarray, k: int) -> float:
    """Squared error of Y - E[Y | X], the oracle shift of numbers: it tells nothing."""
    slope = np.linalg.solve(covariance[:k, :k], covariance[:k, k:])
    return float(np.trace(slope.T @ covariance[:k, :k] @ slope))


def shift_leakage(covariance: np.ndarray, k: int, distortion: float) -> float | None:
    """I(X; Z) of a part of that shift, with this squared error; None where Y is a function of X."""
    whole = shift_distortion(covariance, k)
    if whole > 0.999 * np.trace(covariance[k:, k:]):
        return None
    part = min(1.0, (distortion / whole) ** 0.5)
    slope = np.linalg.solve(covariance[:k, :k], covariance[:k, k:])
    return gaussian_leakage(covariance, k, np.hstack([-part * slope.T, np.eye(len(slope.T))]), 0.0)


def proved_mu(covariance: np.ndarray, k: int, distortion: float) -> float:
    """mu of isotropic noise of this squared error on rows clipped at the radius of `INSIDE`."""
    from learned_settings import draw

    rows = draw(covariance, 200_000, 0)[:, k:]
    size = np.linalg.norm(rows, axis=1)
    radius = np.quantile(size, INSIDE)
    lost = (np.maximum(size - radius, 0) ** 2).mean()
    if distortion <= lost:
        return float("inf")
    return float(2 * radius / ((distortion - lost) / rows.shape[1]) ** 0.5)


def letters_response(joint: np.ndarray, distortion: float) -> tuple[float, float]:
    """Leakage of randomised response on Y that errs this often, and the epsilon it proves."""
    m = joint.shape[1]
    channel = np.full((m, m), distortion / (m - 1))
    np.fill_diagonal(channel, 1 - distortion)
    seen = joint @ channel
    apart = np.outer(seen.sum(1), seen.sum(0))
    leakage = float((seen * np.log(seen / apart)).sum())
    return leakage, float(np.log((1 - distortion) * (m - 1) / distortion))


def label_only(latents: np.ndarray, useful: np.ndarray, train: np.ndarray) -> np.ndarray:
    """The useful label as a kernel machine predicts it: what to send if one task is known."""
    from sklearn.svm import SVC

    model = SVC(C=10.0).fit(latents[train], useful[train])
    return model.predict(latents)[:, None].astype(float)


def flipped(bits: np.ndarray, epsilon: float, draws: int = DRAWS) -> np.ndarray:
    """Randomised response on a predicted label: epsilon-DP for any two records."""
    rng = np.random.default_rng(0)
    keep = 1 / (1 + np.exp(-epsilon))
    stay = rng.random((draws, *bits.shape)) < keep
    return np.where(stay, bits, 1 - bits)


def erased(rows: np.ndarray, private: np.ndarray, train: np.ndarray) -> dict[str, np.ndarray]:
    """LEACE, and the shift by the true label."""
    from ellipsum.tradeoff import LinearEraser, OracleShift

    seen = (rows[train], private[train])
    return {
        "LEACE": LinearEraser().fit(*seen).transform(rows),
        "oracle shift (label)": OracleShift().fit(*seen).transform(rows, private),
    }


def besides(
    latents: np.ndarray,
    hidden: np.ndarray,
    kept: np.ndarray,
    train: np.ndarray,
    mus: Sequence[float] = (4.0, 8.0),
    draws: int = DRAWS,
) -> dict[str, np.ndarray]:
    """What has no budget: closed forms, the useful label alone, and proofs on clipped latents."""
    from ellipsum.learned import GenerativeFilter

    predicted = label_only(latents, kept, train)
    found = erased(latents, hidden, train) | {
        "predicted label alone": predicted,
        "randomised response, epsilon = 4": flipped(predicted, 4.0, draws),
    }
    clip = float(np.median(np.linalg.norm(latents[train], axis=1)))
    for mu in mus:
        made = GenerativeFilter(mu=mu, clip=clip, method="isotropic")
        made.fit(latents[train], hidden[train], kept[train])
        found[f"clip and noise, proved mu = {mu:g}"] = releases_of(made, latents)[:draws]
    return found


def cost_of(rows: np.ndarray, released: np.ndarray, train: np.ndarray) -> float:
    """The realised budget that a change of latents uses up: half its mean square, whitened."""
    moved = (released - rows)[..., train, :]
    inverse = np.linalg.inv(np.cov(rows[train], rowvar=False))
    return 0.5 * float(np.einsum("...i,ij,...j->...", moved, inverse, moved).mean())


def tabled(bits: np.ndarray, hidden: np.ndarray, epsilon: float = np.inf) -> float:
    """I(hidden; bit) of the frequencies in nats, the bit told by randomised response."""
    table = np.zeros((int(hidden.max()) + 1, 2))
    np.add.at(table, (hidden, bits.astype(int)), 1 / len(hidden))
    keep = 1 / (1 + np.exp(-epsilon))
    table = table @ np.array([[keep, 1 - keep], [1 - keep, keep]])
    apart = np.outer(table.sum(1), table.sum(0))
    live = table > 0
    return float((table[live] * np.log(table[live] / apart[live])).sum())


def releases_of(made, latents: np.ndarray, labels=None) -> np.ndarray:
    """Several releases of every row."""
    if labels is not None:
        return np.array([made.transform(latents, labels, seed=i) for i in range(DRAWS)])
    return np.array([made.transform(latents, seed=i) for i in range(DRAWS)])


def attacked(
    released: np.ndarray, label: np.ndarray, test: np.ndarray, attackers=ALL, area: bool = False
) -> dict:
    """Accuracy of each attacker, the largest, and the best lower bound of the information.

    With ``area`` the largest area under the ROC, too, where there are two classes.
    """
    from ellipsum.tradeoff import audit

    found = audit(released, label, test=test, attackers=attackers)
    row = {result.attacker: round(result.accuracy, 4) for result in found.results}
    row["strongest"] = round(found.strongest.accuracy, 4)
    row["se"] = round(found.strongest.accuracy_se, 4)
    row["information"] = round(found.guarantee.lower, 4)
    row["constant"] = round(found.baseline, 4)
    if area and len(np.unique(label)) == 2:
        areas = [area_under(released, label, test, name) for name in attackers]
        row["auroc"], row["auroc se"] = (round(value, 4) for value in max(areas))
    return row


def area_under(
    released: np.ndarray, label: np.ndarray, test: np.ndarray, attacker: str
) -> tuple[float, float]:
    """Area under the ROC of one of the audit's attackers, with DeLong's error over records."""
    from ellipsum.tradeoff.attackers import _attacker, _scores

    draws = released if released.ndim == 3 else released[None]
    train = np.setdiff1d(np.arange(len(label)), test)
    seen = np.concatenate(draws[:, train])
    model = _attacker(attacker, 0, len(seen)).fit(seen, np.tile(label[train], len(draws)))
    yes = label[test] == label.max()
    above = np.zeros((yes.sum(), (~yes).sum()))
    for draw in draws:  # share of the draws in which a yes scores above a no; half for a tie
        score = _scores(model, draw[test])[:, -1]
        above += (np.sign(score[yes, None] - score[~yes]) + 1) / (2 * len(draws))
    by_yes, by_no = above.mean(1), above.mean(0)
    error = by_yes.var(ddof=1) / len(by_yes) + by_no.var(ddof=1) / len(by_no)
    return float(above.mean()), float(error**0.5)
