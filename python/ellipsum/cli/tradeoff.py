"""``ellipsum tradeoff``: the least leakage at each distortion, for the covariance of a file."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

import numpy as np

from .. import __version__
from ..tradeoff import GaussianTradeoff, TradeoffCurve
from .exit import Exit, Problem, own_text
from .options import split_names
from .read_columns import NOT_PRIVATE, read_columns

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Print the curve, and draw it if a picture is asked for."""
    private, useful = split_names(arguments.private), split_names(arguments.useful)
    assert private is not None and useful is not None
    if not 2 <= arguments.points <= 1000:
        raise Problem(Exit.PARAMETER, "--points must be between 2 and 1000")
    if arguments.out:
        _check_picture()
    rows, incomplete = read_columns(arguments.files, [*private, *useful])
    x, y = rows[:, : len(private)], rows[:, len(private) :]
    if arguments.standardize:
        sd = y.std(0)
        y = y / np.where(sd > 0, sd, 1.0)
    try:
        solver = GaussianTradeoff(arguments.observe, distortion=float(y.var(0).sum()) * 2)
        curve = solver.fit(x, y).curve(points=arguments.points)
    except ValueError as error:
        raise Problem(Exit.DATA, own_text(error)) from None
    about = {
        "ellipsum": __version__,
        "private": private,
        "useful": useful,
        "observe": arguments.observe,
        "rows": len(rows),
        "incomplete": incomplete,
        "caveat": NOT_PRIVATE,
    }
    if arguments.out:
        _draw(curve, arguments.out, about)
    if arguments.json:
        lists = {name: values.tolist() for name, values in asdict(curve).items()}
        print(json.dumps(about | lists))
    else:
        print(_text(curve, about))
    return Exit.OK


def _text(curve: TradeoffCurve, about: dict[str, object]) -> str:
    lines = [
        f"least leakage of {_listed(about['private'])} at each squared error of "
        f"{_listed(about['useful'])}",
        f"{about['rows']} rows ({about['incomplete']} incomplete left out), "
        f"observed: {about['observe']}; model: the Gaussian law of their covariance",
        f"CAVEAT: {about['caveat']}",
        "",
        "  distortion  leakage (nats)  within",
    ]
    points = zip(curve.distortion, curve.leakage, curve.gap, strict=True)
    lines += [f"{d:12.6g}  {leak:14.6f}  {gap:.0e}" for d, leak, gap in points]
    return "\n".join(lines)


def _listed(names: object) -> str:
    assert isinstance(names, list)
    return ", ".join(names)


def _check_picture() -> None:
    from ..plot import check_matplotlib

    check_matplotlib()


def _draw(curve: TradeoffCurve, path: str, about: dict[str, object]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = curve.plot(figure.subplots())
    axis.set_title(f"{_listed(about['private'])} against {_listed(about['useful'])}")
    axis.set_ylim(bottom=0)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise Problem(Exit.OUTPUT, f"--out cannot be written: {error.strerror}") from None
    except ValueError:
        raise Problem(Exit.USAGE, "--out must end in .png, .pdf or .svg") from None
