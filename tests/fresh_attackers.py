"""Accuracy alone of the audit's attackers: a third of its time, which calibration takes."""

from __future__ import annotations

import warnings

import numpy as np

from ellipsum.tradeoff.attackers import _attacker


def accuracies(released, labels, test, attackers):
    """Of attackers trained on all draws (draws, n, d) of the other records, as `audit` does it."""
    released = np.asarray(released)
    released = released[None] if released.ndim == 2 else released
    train = np.setdiff1d(np.arange(len(labels)), test)
    seen, known = np.concatenate(released[:, train]), np.tile(labels[train], len(released))
    found = {}
    for name in attackers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an attacker that has not converged, as in `audit`
            attacker = _attacker(name, 0, len(seen)).fit(seen, known)
        guesses = np.array([attacker.predict(draw) for draw in released[:, test]])
        found[name] = float((guesses == labels[test]).mean())
    return found
