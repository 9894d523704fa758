"""What a notebook shows: every public class has text and HTML of its own, and no private number."""

from __future__ import annotations

import enum
import inspect
from html.parser import HTMLParser
from importlib import import_module

import numpy as np
import pytest

from ellipsum import (
    Budget,
    Checkpoint,
    Ellipsoid,
    ExactSum,
    GaussianShape,
    Parts,
    PrivateCounts,
    PrivateGroupMean,
    PrivateMean,
    QuadraticForm,
    backend,
    open_rows,
)
from ellipsum.notebook import as_html

MODULES = ["ellipsum", "ellipsum.quadratic_form", "ellipsum.records", "ellipsum.tradeoff",
           "ellipsum.learned", "ellipsum.engines.spark", "ellipsum.engines.dask"]  # fmt: skip
BALL = Ellipsoid.ball(3.0, d=2)
LOW_RANK = Ellipsoid.for_covariance(np.eye(2) + 0.5, rank=1)
ROWS = np.full((1000, 2), 0.8765432)
KEYS = ["CANARY<b>", "other"] * 500


def no_display_of_its_own(kind):
    """The reason why a class needs none, or None."""
    if issubclass(kind, BaseException):
        return "an exception is shown by its traceback"
    if issubclass(kind, enum.Enum):
        return "a member of an enumeration is shown by its name"
    return None


@pytest.mark.parametrize("name", MODULES)
def test_every_public_class_has_text_and_html_of_its_own(name):
    try:
        module = import_module(name)
    except ImportError:  # an extra that is not installed
        pytest.skip(f"{name} cannot be imported here")
    kinds = {n: getattr(module, n) for n in module.__all__}
    for n, kind in kinds.items():
        if inspect.isclass(kind) and no_display_of_its_own(kind) is None:
            assert kind.__repr__ is not object.__repr__, n
            assert hasattr(kind, "_repr_html_"), n


def made(path):
    """Objects, by the name of their class."""
    np.save(path / "x.npy", ROWS)
    budget = Budget(epsilon=3, delta=1e-5, path=path / "a.ledger", neighbors="replace")
    mean = PrivateMean(BALL, epsilon=0.5, delta=1e-7)
    release = mean(ROWS, budget=budget)
    groups = PrivateGroupMean(BALL, mu=0.5, keys=["CANARY<b>"])
    shape, form = GaussianShape([1.0, 2.0]), QuadraticForm([1.0, 2.0])
    plan = PrivateMean(lower=[0, 0], upper=[1, 1], mu=1)
    things = [
        BALL, Ellipsoid.box([0, 0], [1, 4]), Ellipsoid.for_covariance(np.eye(2) + 0.5), LOW_RANK,
        LOW_RANK.scale, shape,
        shape.at().predicted_error(n=1000, epsilon=1, delta=1e-6), mean, mean.guarantee, release,
        budget, budget.entries[0], budget.guarantee, budget.left, budget.limit, groups,
        groups.guarantee_for("user"), PrivateCounts(edges=[0, 1, 2], mu=1), plan, plan.plan(1000),
        plan.plan(1000).steps[0], form, form.evaluate(1.0), form.sf_gradient(1.0), form.to_matrix(),
        QuadraticForm.broadcast([[1], [2]]), QuadraticForm.fit([1.0, 2.0, 4.0], 2),
        QuadraticForm.broadcast([[1], [2]]).sf_gradient(3.0), QuadraticForm.broadcast([1.0]),
        backend(), Checkpoint(path / "a.ck"),
        open_rows(path / "x.npy"), *private(path),
    ]  # fmt: skip
    return things


def private(_path):
    """Objects that hold private numbers."""
    parts = Parts(BALL)
    parts.add("one", ExactSum(BALL).add(ROWS).partial())
    groups = PrivateGroupMean(BALL, epsilon=1, delta=1e-6)
    return [ExactSum(BALL).add(ROWS), parts, groups.exact_sum(ROWS, key=KEYS)]


class Tags(HTMLParser):
    """Raises unless every tag is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, _attributes):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_display_is_whole_html_and_names_its_class(tmp_path):
    for thing in made(tmp_path):
        text = thing._repr_html_()
        tags = Tags()
        tags.feed(text)
        assert not tags.open and text.startswith("<div><b>") and text.endswith("</div>")
        assert "object at 0x" not in text and "object at 0x" not in repr(thing)
        assert "CANARY<b>" not in text


def test_no_private_number_is_shown(tmp_path):
    for thing in private(tmp_path):
        total = ExactSum(BALL).add(ROWS).integers()
        shown = thing._repr_html_() + repr(thing) + str(thing)
        assert "CANARY" not in shown and "1000" not in shown and "8765" not in shown
        assert not any(str(abs(x))[:6] in shown for x in total)


def test_a_table_shows_what_is_public(tmp_path):
    things = {type(thing).__name__: thing for thing in made(tmp_path)}
    shown = {name: thing._repr_html_() for name, thing in things.items()}
    budget = things["Budget"]
    assert str(tmp_path / "a.ledger") in shown["Budget"] and "left: " in shown["Budget"]
    assert f"<td>{budget.entries[0].cost}</td>" in shown["Budget"]
    assert Budget(mu=1)._repr_html_().count("<table") == 0
    box = Ellipsoid.box({"low": 1, "h<i": 2}, {"low": 3, "h<i": 10})._repr_html_()
    assert "h&lt;i" in box and "half-width" in box
    assert all(f'right">{x}</td>' in box for x in (2, 6, 1, 4))  # centers and half-widths
    assert "half-axis</th>" in BALL._repr_html_() and 'right">3</td>' in BALL._repr_html_()
    assert "half" not in Ellipsoid.for_covariance(np.eye(2) + 0.5)._repr_html_()
    assert "clipping</th>" in shown["ErrorPrediction"]
    assert "0.236705" in PrivateMean(BALL, epsilon=1, delta=1e-6).guarantee._repr_html_()
    assert "bins: 2" in shown["PrivateCounts"]


def test_text_keeps_its_spaces_and_is_escaped():
    text = as_html(["a<b", "  c"], {}, ["  d & e", "f"])
    assert text == "<div><b>a&lt;b</b><br>c<pre>  d &amp; e\nf</pre></div>"
