"""``ellipsum records``: every row released by itself, under a guarantee of its own."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..column_names import Columns, coordinate_names
from ..kernels.backend import thread_count
from ..rows.files import Rows
from .exit import Exit, Problem, own_text
from .options import add_budget, add_data, add_json, opened, refuse_over, split_names, write_whole

if TYPE_CHECKING:
    from ..records import RecordRelease

__all__ = ["EPILOG", "add_arguments", "run"]

Array = NDArray[np.float64]

_SUFFIXES = (".json", ".npz", ".csv")

EPILOG = """\
Each record is released by itself (local differential privacy): for any two values of a record, what
is written for it is nearly equally likely. The number of rows and their order are public. Shape,
clip radius and reader are chosen from the public rows of --public, which must not be among
the records. Running it again on the same records spends the budget again.

--out: .npz holds "released" (what the guarantee speaks of), "read" (the estimate of each record,
in the data's unit) and their names; .json the same; .csv the estimates alone.

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="the private rows")
    parser.add_argument("--public", required=True, metavar="FILE", help="public rows like them")
    parser.add_argument("--out", required=True, metavar="FILE", help=" or ".join(_SUFFIXES))
    gaussian = "with --noise gaussian"
    budget = add_budget(parser, "budget of one record", epsilon="", delta=gaussian, mu=gaussian)
    budget.add_argument(
        "--noise",
        choices=("privunit", "gaussian"),
        default="privunit",
        help="privunit (default): delta is 0, and a tenth of the noise variance",
    )
    shape = parser.add_argument_group("shape")
    shape.add_argument(
        "--shape",
        choices=("mse", "information", "isotropic", "rate-distortion"),
        default="mse",
        help="what is made best; mse (default): the squared error of each record",
    )
    shape.add_argument("--radius", type=float, metavar="R", help="clip radius (default: the best)")
    add_data(parser)
    add_json(parser)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)  # for tests: not private


def run(arguments: argparse.Namespace) -> int:
    """Fit on the public rows, release the private ones, write both forms, print what was done."""
    _check_out(arguments.out)
    columns = split_names(arguments.columns)
    public = opened(arguments, [arguments.public], columns)
    rows = opened(arguments, arguments.files, columns)
    refuse_over(arguments.out, {"--public": public.paths, "a file of rows": rows.paths})
    release = _fitted(arguments, public)
    d = release.n_features_in_
    if not rows.accepts(d):
        raise Problem(Exit.PARAMETER, f"--public has {d} coordinates, the data {rows.d}")
    named = Columns(coordinate_names(public.columns, d), "--public")
    try:
        rows = rows.arranged(named, d)
        # At once: a record's place in a batch must not follow from how long others' lines are.
        whole = np.concatenate([np.empty((0, d), np.float32), *rows.batches(d)])
        if not len(whole):
            raise Problem(Exit.DATA, "the data has no rows")
        released = release.transform(whole)
    except (OSError, TypeError, ValueError) as error:
        raise Problem(Exit.DATA, own_text(error)) from None
    read = release.inverse_transform(released)
    summary = _summary(release, len(released))
    names = list(named.names or (f"[{j}]" for j in range(d)))
    write_whole(
        arguments.out, lambda file: _dump(arguments.out, file, released, read, summary, names)
    )
    print(json.dumps(summary) if arguments.json else _text(summary))
    return Exit.OK


def _check_out(path: str) -> None:
    if not path.endswith(_SUFFIXES):
        raise Problem(Exit.USAGE, f"--out must end in {' or '.join(_SUFFIXES)}")
    if not os.access(os.path.dirname(path) or ".", os.W_OK):
        raise Problem(Exit.OUTPUT, "--out is in a folder that is not there or not writable")


def _fitted(arguments: argparse.Namespace, public: Rows) -> RecordRelease:
    from ..records import RecordRelease  # late: other commands start without it

    try:
        d = public.d
        if d is None:
            raise ValueError("--public does not say how many coordinates a row has")
        known = np.concatenate([np.asarray(b, dtype=np.float64) for b in public.batches(d)])
        release = RecordRelease(
            arguments.shape,
            arguments.noise,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            mu=arguments.mu,
            radius="best" if arguments.radius is None else arguments.radius,
            seed=arguments.seed,
            threads=thread_count(arguments.threads),
        )
        return release.fit(known)
    except (TypeError, ValueError) as error:
        raise Problem(Exit.PARAMETER, own_text(error)) from None


def _summary(release: RecordRelease, n: int) -> dict[str, Any]:
    guarantee = release.guarantee
    return {
        "ellipsum": __version__,
        "kind": "records",
        "n": n,
        "d": release.n_features_in_,
        "parameters": {k: v for k, v in release.get_params().items() if k != "seed"},
        "guarantee": {"text": str(guarantee), **guarantee.to_dict()},
        "explained": release.explained(),
        "private": release.private,
        "caveats": list(release.caveats),
    }


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _text(summary: dict[str, Any]) -> str:
    lines = [
        f"{_counted(summary['n'], 'record')} of {_counted(summary['d'], 'coordinate')}, "
        "each released by itself",
        f"guarantee of each: {summary['guarantee']['text']}",
        f"share of variance that a reader explains, by the public rows: {summary['explained']:.3f}",
        *(f"CAVEAT: {caveat}" for caveat in summary["caveats"]),
    ]
    return "\n".join(lines)


def _dump(
    path: str, file: Any, released: Array, read: Array, summary: dict[str, Any], names: Any
) -> None:
    if path.endswith(".npz"):
        np.savez(file, released=released, read=read, columns=names, json=json.dumps(summary))
    elif path.endswith(".json"):
        whole = {**summary, "columns": names, "released": released.tolist(), "read": read.tolist()}
        file.write(json.dumps(whole).encode())
    else:
        header = ",".join(json.dumps(name) if "," in name else name for name in names)
        np.savetxt(file, read, delimiter=",", header=header, comments="", fmt="%.10g")
