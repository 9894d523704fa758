"""Pictures of releases: any d, any intervals, and what is drawn is what was released."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pytest

from ellipsum.cli.demo_plot import save_demo
from ellipsum.ellipsoid import Ellipsoid
from ellipsum.plot import plot_release
from ellipsum.private_sum import PrivateMean, PrivateSum


@pytest.fixture(autouse=True)
def no_window():
    from matplotlib import pyplot

    with matplotlib.rc_context({"backend": "Agg"}):
        yield
        pyplot.close("all")


def release(d, *, scale=1.0, **options):
    sigma = np.full(d, 1.0) * scale
    rows = np.random.default_rng(0).normal(size=(500, d)) * sigma + 2 * sigma
    region = Ellipsoid.for_gaussian(sigma, 2 * sigma)
    return PrivateMean(region, **({"mu": 1.0} | options))(rows, seed=1)


@pytest.mark.parametrize("d", [1, 2, 45, 46, 1000])
def test_every_dimension_is_drawn(d):
    made = release(d)
    ax = made.plot()
    ax.figure.canvas.draw()
    (line,) = ax.get_lines()
    drawn = line.get_xdata() if d <= 45 else line.get_ydata()
    np.testing.assert_array_equal(np.sort(drawn), np.sort(made.value))
    assert (np.diff(drawn) <= 0).all()  # the largest first
    title = ax.get_title(loc="left")
    assert title.startswith("Mean, 95 %") and "NOT PRIVATE" in title


def test_intervals_are_those_of_the_release():
    made = release(3)
    ax = plot_release(made, level=0.5, sort=False, names=["x", "y", "z"])
    lower, upper = made.confidence_interval(0.5)
    (bars,) = ax.collections
    ends = np.array([segment[:, 0] for segment in bars.get_segments()])
    np.testing.assert_array_equal(ends, np.column_stack([lower, upper]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x", "y", "z"]
    assert "50 %" in ax.get_title(loc="left")


def test_values_of_many_sizes_get_a_logarithmic_axis():
    ax = release(60, scale=np.geomspace(1e-3, 1e4, 60)).plot()
    assert ax.get_yscale() == "symlog"
    assert release(60).plot().get_yscale() == "linear"
    assert release(30, scale=np.geomspace(1e-3, 1e4, 30)).plot().get_xscale() == "symlog"


def test_unbounded_intervals_are_drawn(monkeypatch):
    # One count in twenty would stand out from noise of this size: a key whose does not.
    monkeypatch.setattr("ellipsum.noise_keys.secrets.token_bytes", lambda n: b"\1" * n)
    made = PrivateMean(Ellipsoid.ball(1, d=3), mu=1e-6, neighbors="add-remove")(np.zeros((2, 3)))
    assert np.isinf(made.confidence_interval()[0]).all()
    ax = made.plot()
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert np.isfinite([low, high]).all()
    for segment in ax.collections[-1].get_segments():  # no end of it is to be seen
        assert segment[:, 0].min() < low and segment[:, 0].max() > high
    assert "NOT PRIVATE" not in ax.get_title(loc="left")


def test_a_sum_is_drawn_on_the_axes_given():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    made = PrivateSum(Ellipsoid.ball(1, d=3), mu=1.0)(np.ones((5, 3)))
    assert made.plot(ax=ax) is ax
    assert "Private sum" in ax.get_title(loc="left")


def test_names_must_fit():
    with pytest.raises(ValueError, match="names must have 3 entries, got 2"):
        plot_release(release(3), names=["x", "y"])


def test_without_matplotlib_the_message_says_how_to_get_it(monkeypatch):
    made = release(3)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        made.plot()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_demos_picture_is_written_without_touching_pyplot(tmp_path, suffix):
    from matplotlib import pyplot

    from ellipsum.cli.demo import make_demo

    before = pyplot.get_fignums(), dict(matplotlib.rcParams)
    save_demo(make_demo(seed=1), str(tmp_path / f"x.{suffix}"))
    assert (tmp_path / f"x.{suffix}").stat().st_size > 10_000
    assert (pyplot.get_fignums(), dict(matplotlib.rcParams)) == before
