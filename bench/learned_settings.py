"""The Gaussian settings of Tripathy, Wang & Ishwar, for tests and benches (no PyTorch here)."""

from __future__ import annotations

import numpy as np

RHO = (0.47, 0.24, 0.85, 0.07, 0.66)


#: A distortion in the middle of each setting's curve.
MIDDLE = {
    "scalar, useful": 0.5,
    "scalar, full": 0.3,
    "vector, useful": 1.5,
    "vector, full": 0.8,
    "rate-distortion": 1.2,
}


def covariances() -> dict[str, tuple[str, np.ndarray, int]]:
    """Name: (what is observed, covariance of (X, Y), sensitive coordinates)."""
    scalar = np.array([[1.0, 0.85], [0.85, 1.0]])
    rho, eye = np.diag(RHO), np.eye(5)
    vector = np.block([[eye, rho], [rho, eye]])
    return {
        "scalar, useful": ("useful", scalar, 1),
        "scalar, full": ("full", scalar, 1),
        "vector, useful": ("useful", vector, 5),
        "vector, full": ("full", vector, 5),
        "rate-distortion": ("useful", np.block([[rho, rho], [rho, rho]]), 5),
    }


def draw(covariance: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Rows of (X, Y)."""
    values, basis = np.linalg.eigh(covariance)
    root = basis * np.sqrt(np.maximum(values, 0.0))
    return np.random.default_rng(seed).standard_normal((n, len(covariance))) @ root.T


def symmetric_pair(letters: int = 10, error: float = 0.4) -> np.ndarray:
    """Y = X, or with probability ``error`` any other letter."""
    joint = np.full((letters, letters), error / (letters * (letters - 1)))
    np.fill_diagonal(joint, (1 - error) / letters)
    return joint


def pairs_observed(joint: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Law of X and W = (X, Y), and the cost of z given w."""
    x, y = joint.shape
    pairs = np.zeros((x, x, y))
    pairs[np.arange(x), np.arange(x)] = joint
    return pairs.reshape(x, x * y), np.tile(cost, (x, 1))
