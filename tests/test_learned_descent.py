"""What trains the learned releases: Adam on a schedule, L-BFGS, classifiers side by side."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned.classifiers import Classifiers  # noqa: E402
from ellipsum.learned.descent import Adam, quasi_newton  # noqa: E402
from ellipsum.learned.networks import generator_of, mlp  # noqa: E402

torch.set_num_threads(1)


def test_adam_steps_as_written_and_leaves_other_weights_alone():
    """Kingma & Ba 2015, Algorithm 1, on f = sum of (c p - 1)^4, with a cosine schedule.

    The matrix is used transposed, so that its gradient does not come in its own layout.
    """
    scale = np.linspace(0.5, 2.0, 6)
    own = [torch.zeros(2, 2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)]
    for part in own:
        part.requires_grad_(True)
    unused = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    other = torch.ones((), dtype=torch.float64, requires_grad=True)
    adam, c = Adam([*own, unused], 0.1, 10), torch.as_tensor(scale)
    p, first, second = np.array([0.0] * 4 + [1.0] * 2), np.zeros(6), np.zeros(6)
    for step in range(1, 11):
        joined = torch.cat([own[0].T.reshape(-1), own[1]])
        adam.descend(other * ((c * joined - 1) ** 4).sum())
        assert other.grad is None
        slope = 4 * scale * (scale * p - 1) ** 3
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        rate = 0.001 + 0.099 * (1 + np.cos(np.pi * (step - 1) / 10)) / 2
        better = first / (1 - 0.9**step), second / (1 - 0.999**step)
        p = p - rate * better[0] / (np.sqrt(better[1]) + 1e-8)
    found = np.concatenate([own[0].detach().numpy().T.ravel(), own[1].detach().numpy()])
    np.testing.assert_allclose(found, p, rtol=1e-12)
    assert (unused == 0).all() and adam.rate == pytest.approx(0.001)


def test_quasi_newton_finds_the_least_point():
    target = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    parts = [torch.zeros(2, 3, dtype=torch.float64), torch.ones((), dtype=torch.float64)]
    for part in parts:
        part.requires_grad_(True)

    def value():
        return ((parts[0] - target) ** 4).sum() + ((parts[0] - target) ** 2).sum() + parts[1] ** 2

    quasi_newton(parts, value, 50)
    torch.testing.assert_close(parts[0].detach(), target, rtol=0, atol=1e-7)
    assert abs(float(parts[1].detach())) < 1e-7


def test_classifiers_side_by_side_are_those_one_by_one():
    """Two labels of 2 and 3 classes: losses and gradients of separate networks of those starts."""
    labels = [torch.tensor([0, 1, 1, 0, 1]), torch.tensor([2, 0, 1, 2, 1])]
    beside = Classifiers(4, labels, generator_of(5))
    generator = generator_of(5)
    alone = [mlp([4, 48, 48, count], generator) for count in (2, 3)]
    rows = torch.randn(5, 4, generator=generator_of(0))
    found = beside.losses(rows, torch.stack(labels))
    wanted = [
        torch.nn.functional.cross_entropy(n(rows), t) for n, t in zip(alone, labels, strict=True)
    ]
    for one, other in zip(found, wanted, strict=True):
        assert float(one.detach()) == pytest.approx(float(other.detach()), rel=1e-5)
    found.sum().backward()
    for number, net in enumerate(alone):
        wanted[number].backward()
        for layer in range(3):
            mine = beside.parameters[2 * layer].grad[number].T
            theirs = net[2 * layer].weight.grad
            torch.testing.assert_close(mine[: len(theirs)], theirs, rtol=1e-4, atol=1e-6)
            assert (mine[len(theirs) :] == 0).all()  # a class that the label does not have
