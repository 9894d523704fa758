"""What trains the learned releases: Adam on a schedule, gradients of affine maps, classifiers."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum.learned.affine_training import AffineProblem  # noqa: E402
from ellipsum.learned.classifiers import Classifiers  # noqa: E402
from ellipsum.learned.descent import Adam  # noqa: E402
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


@pytest.mark.parametrize("information", [False, True])
def test_values_of_an_affine_map_have_the_gradients_that_they_say(information):
    """Central differences in each entry (a covariance's with its mirror); I(X; Z), and what the
    best estimate of Y from Z leaves, from the joint covariance."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 7)) @ rng.normal(size=(7, 7))  # 2 of X, 2 of Y, 3 of W
    moments = np.cov(rows, rowvar=False)
    problem = AffineProblem(moments, (2, 2), 1.0, information)
    gain, root = rng.normal(size=(2, 3)), rng.normal(size=(2, 2))
    found = problem.values(gain, root @ root.T)
    z = np.block([[np.eye(4), np.zeros((4, 3))], [np.zeros((2, 4)), gain @ problem.whiten]])
    joint = z @ moments @ z.T
    joint[4:, 4:] += root @ root.T

    def told(side):
        both = np.r_[side, 4, 5]
        parts = (joint[np.ix_(part, part)] for part in (side, [4, 5], both))
        own, seen, all_of_it = (np.linalg.slogdet(part)[1] for part in parts)
        return 0.5 * (own + seen - all_of_it)

    explained = joint[2:4, 4:] @ np.linalg.solve(joint[4:, 4:], joint[4:, 2:4])
    error = np.trace(joint[2:4, 2:4] - explained)
    assert found[0].value == pytest.approx(told([0, 1]), rel=1e-7)
    assert found[1].value == pytest.approx(-told([2, 3]) if information else error, rel=1e-7)
    for number in (0, 1):
        for given, slope in ((0, found[number].by_gain), (1, found[number].by_noise)):
            for place in np.ndindex(slope.shape):
                ends = []
                move = np.zeros_like(slope)
                move[place] = 1e-5
                move = (move + move.T) / 2 if given else move
                for way in (move, -move):
                    moved = [gain, root @ root.T]
                    moved[given] = moved[given] + way
                    ends.append(problem.values(*moved)[number].value)
                assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-7)


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
            np.testing.assert_allclose(mine[: len(theirs)], theirs, rtol=1e-4, atol=1e-6)
            assert (mine[len(theirs) :] == 0).all()  # a class that the label does not have
