"""What samples of a log-likelihood ratio say about mu; how: ``test_audit_plans.py``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, chi2, norm

from ellipsum import calibrate

LEVEL = 1e-8  # of a false alarm, for each check


@dataclass
class Audit:
    """Log-likelihood ratios of as many runs on the one neighbour as on the other."""

    ratios: np.ndarray  # shape (2, runs)

    def mu_interval(self):
        """Limits of Phi^-1(1 - a) + Phi^-1(1 - b), a and b the errors of both kinds."""
        runs = self.ratios.shape[1]
        errors = (self.ratios[0] <= 0).sum(), (self.ratios[1] > 0).sum()
        most = [beta.ppf(1 - LEVEL / 2, k + 1, runs - k) for k in errors]
        least = [beta.ppf(LEVEL / 2, k, runs - k + 1) if k else 0.0 for k in errors]
        return float(sum(norm.isf(most))), float(sum(norm.isf(least)))

    def epsilon_bound(self, delta):
        """A lower bound of epsilon for this delta: the best of a few thresholds and both sides."""
        runs, best = self.ratios.shape[1], 0.0
        thresholds = np.linspace(-6, 12, 10)
        level = LEVEL / (4 * len(thresholds))
        for sign, (one, other) in ((1, self.ratios), (-1, self.ratios[::-1])):
            for threshold in thresholds:
                hits, false = (int((sign * side > threshold).sum()) for side in (one, other))
                true_rate = beta.ppf(level, hits, runs - hits + 1) if hits else 0.0
                false_rate = beta.ppf(1 - level, false + 1, runs - false) if false < runs else 1.0
                if true_rate > delta:
                    best = max(best, math.log((true_rate - delta) / false_rate))
        return best

    def flags(self, mu):
        """Every way, in words, in which this is no mechanism that spends mu and no more."""
        runs, found = self.ratios.shape[1], []
        low, high = self.mu_interval()
        if low > mu:
            found.append(f"leaks: empirical mu at least {low:.3f}, promised {mu:.3f}")
        if high < mu:
            found.append(f"wastes: empirical mu at most {high:.3f}, of {mu:.3f}")
        told = calibrate.epsilon(1 / mu, 0.01)
        if (bound := self.epsilon_bound(0.01)) > told:
            found.append(f"leaks: epsilon at least {bound:.3f} at delta 0.01, promised {told:.3f}")
        gap = float(np.subtract(*self.ratios.mean(axis=1))) / mu**2
        band = norm.isf(LEVEL / 2) * math.sqrt(2 / runs) / mu
        if abs(gap - 1) > band:
            word = "leaks" if gap > 1 else "wastes"
            found.append(f"{word}: mean of L {gap:.3f} of its own, not within {band:.3f} of 1")
        spread = float(self.ratios.var(axis=1, ddof=1).mean()) / mu**2
        least, most = chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], 2 * (runs - 1)) / (2 * (runs - 1))
        if not least <= spread <= most:
            word = "leaks" if spread < least else "strays"
            found.append(f"{word}: variance of L {spread:.3f} of its own")
        return found
