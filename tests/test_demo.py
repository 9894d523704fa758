"""The demo: the main job on a real table, the same answer as by hand, and a picture."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from ellipsum.cli.demo import CLIP_PROBABILITY, make_demo, report
from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main
from ellipsum.ellipsoid import Ellipsoid
from ellipsum.private_sum import PrivateMean


@pytest.fixture(scope="module")
def demo():
    return make_demo(seed=3)


def test_the_release_is_that_of_the_three_lines_it_stands_for(demo):
    table = load_breast_cancer().data
    public, private = table[:285], table[285:]
    center, sigma = public.mean(axis=0), public.std(axis=0, ddof=1)
    region = Ellipsoid.for_covariance(
        np.corrcoef(public, rowvar=False), clip_probability=CLIP_PROBABILITY
    )
    release = PrivateMean(region, epsilon=1, delta=1e-6)((private - center) / sigma, seed=3)
    np.testing.assert_allclose(demo.value, center + sigma * release.value, rtol=1e-9)
    np.testing.assert_allclose(demo.truth, private.mean(axis=0), rtol=1e-12)
    assert demo.release.n == 284


def test_the_errors_are_those_of_the_noise(demo):
    """Two halves: the noise as claimed (whitened, a chi-square of 30 degrees of freedom, which
    leaves [8, 70] once in 2e4), and a clip that takes less than half a noise sd."""
    error = demo.release.value - (demo.truth - demo.center) / demo.sigma
    whitened = float(error @ np.linalg.solve(demo.release.covariance, error))
    assert 8 < whitened < 70


def test_shapes_are_ordered_as_the_picture_claims(demo):
    ball, scaled, turned = (np.sqrt(np.mean(noise**2)) for noise in demo.noise.values())
    assert turned < 0.8 * scaled and scaled < 0.01 * ball
    public = (demo.center - demo.truth) / demo.sigma
    private = (demo.value - demo.truth) / demo.sigma
    assert np.linalg.norm(private) < np.linalg.norm(public)


def test_the_table_has_a_line_for_each_feature(demo):
    lines = report(demo)
    assert sum(line.startswith(tuple(demo.names)) for line in lines) == 30
    assert any("not private: made with a seed" in line for line in lines)


def test_the_command_prints_the_table_and_writes_the_picture(tmp_path, capsys):
    path = tmp_path / "x.png"
    assert main(["demo", "--out", str(path), "--seed", "3"]) == Exit.OK
    out, err = capsys.readouterr()
    assert out.splitlines()[:-2] == report(make_demo(seed=3)) and err == ""
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size < 150_000


def test_without_a_plot_no_matplotlib_is_needed(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "--no-plot", "--seed", "3"]) == Exit.OK
    assert list(tmp_path.iterdir()) == []
    assert main(["demo"]) == Exit.MISSING
    out, err = capsys.readouterr()
    assert "pip install matplotlib" in err
    assert out.count("worst area") == 1  # the second time, nothing was released


def test_without_scikit_learn_the_message_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert main(["demo", "--no-plot"]) == Exit.MISSING
    assert "pip install scikit-learn" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, code, phrase",
    [
        (["--epsilon", "-1"], Exit.PARAMETER, "epsilon must be"),
        (["--delta", "2"], Exit.PARAMETER, "delta must"),
        (["--out", "no/such/folder.png"], Exit.OUTPUT, "--out cannot be written"),
        (["--out", "x.nonsense"], Exit.PARAMETER, "nonsense"),
    ],
)
def test_bad_arguments(capsys, monkeypatch, tmp_path, arguments, code, phrase):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", *arguments]) == code
    err = capsys.readouterr().err
    assert phrase in err and err.count("\n") == 1
