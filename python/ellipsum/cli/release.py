"""``ellipsum sum`` and ``ellipsum mean``: arguments, rows, release, output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from .. import __version__
from ..adaptive.plan import Plan
from ..adaptive.release import AdaptiveRelease
from ..budget.budget import Budget
from ..column_names import captions, coordinate_names
from ..guarantee import ROW
from ..jobs.checkpoint import Checkpoint
from ..kernels.backend import thread_count
from ..private_sum import PrivateMean, PrivateSum
from ..release import rows_text, titled
from ..rows.files import Rows
from ..sum_release import SumRelease
from . import groups
from .exit import Exit, Problem, own_text
from .job import check_job, made, publish
from .options import opened, split_names, split_units, units_in_order, wants_bar
from .shape import known_of_rows, shape_name

__all__ = ["run", "table"]

_ROWS_PRINTED = 30  # coordinates on a screen; --json and --out have all


def run(arguments: argparse.Namespace) -> int:
    """Make the release that the arguments ask for, print it, and write it."""
    if arguments.neighbors is None:
        arguments.neighbors = "replace" if arguments.group is None else "add-remove"
    _check_usage(arguments)
    labels = [name for name in (arguments.group, arguments.user) if name]
    columns, bar = split_names(arguments.columns), wants_bar(arguments)
    said = split_units(arguments.units)
    by_name = {name: unit for name, unit in said.items() if not name.startswith("[")}
    rows = opened(arguments, arguments.files, columns, by=labels, progress=bar, units=by_name)
    known, d = known_of_rows(arguments, rows)
    names = _names(rows, d)
    units = units_in_order(said, names, rows.columns)
    if arguments.group is not None:
        return _run_groups(arguments, rows, known["ellipsoid"], d, units)
    try:
        threads = thread_count(arguments.threads)
        mechanism = (PrivateSum if arguments.kind == "sum" else PrivateMean)(
            **known,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            rho=arguments.rho,
            mu=arguments.mu,
            neighbors=arguments.neighbors,
            by=arguments.user,
            grouped=arguments.grouped,
            max_rows=arguments.max_rows,
            missing=arguments.missing,
            units=units,
        )
    except (TypeError, ValueError) as error:
        raise Problem(Exit.PARAMETER, own_text(error)) from None

    def make(budget: Budget | None, checkpoint: Checkpoint | None) -> Any:
        drawn: dict[str, Any] = {"budget": budget, "threads": threads, "seed": arguments.seed}
        # Of a public number of rows alone: --plan is refused for others.
        counted = arguments.neighbors == "replace" and arguments.user is None
        if counted and (arguments.plan or not arguments.json):
            drawn["on_plan"] = partial(_announce, whole=arguments.plan)
        return mechanism(rows, resume=checkpoint, jobs=arguments.jobs or 1, **drawn)

    release, checkpoint = made(arguments, rows, make)
    result = {"ellipsum": __version__, **release.to_dict(), "columns": names}
    publish(arguments, result, _text(release, names), checkpoint)
    return Exit.OK


def _run_groups(
    arguments: argparse.Namespace,
    rows: Rows,
    region: Any,
    d: int,
    units: Sequence[str | None] | None,
) -> int:
    make = partial(groups.release_of, arguments, rows, region, d, units)
    release, checkpoint = made(arguments, rows, make)
    names = _names(rows, d)
    result = {"columns": names, **groups.result_of(release)}
    publish(arguments, result, groups.text_of(release, names), checkpoint)
    return Exit.OK


def _announce(plan: Plan, *, whole: bool) -> None:
    """Say the plan before it runs."""
    passes = f"{plan.passes} passes over the data (--plan says what each is for)"
    brief = plan.summary() if plan.infeasible else passes
    print(plan if whole else f"ellipsum: {brief}", file=sys.stderr)


def _check_usage(arguments: argparse.Namespace) -> None:
    check_job(arguments)
    if arguments.max_rows is not None and arguments.max_rows < 1:
        raise Problem(Exit.PARAMETER, f"--max-rows must be at least 1, got {arguments.max_rows}")
    several = shape_name(arguments) == "bounds" and not arguments.one_pass
    groups.check_usage(arguments)
    _check_users(arguments, several)
    counted = arguments.user is None and arguments.neighbors == "replace"
    if arguments.plan and not (several and counted):
        raise Problem(
            Exit.USAGE,
            "--plan goes with --bounds in several passes and --neighbors replace, without --user: "
            "a plan is made from the public number of rows",
        )


def _check_users(arguments: argparse.Namespace, several: bool) -> None:
    """Refuse what does not go with the unit of privacy; ``several`` passes have no one region."""
    if arguments.user is None:
        for name in ("grouped", "max_rows"):
            if getattr(arguments, name):
                raise Problem(Exit.USAGE, f"--{name.replace('_', '-')} goes with --user")
    elif arguments.grouped and (arguments.jobs or 1) > 1:
        raise Problem(
            Exit.USAGE,
            "--jobs does not go with --grouped: a user's rows may go on in the next file",
        )
    if arguments.max_rows is not None and (several or arguments.neighbors == "replace"):
        raise Problem(
            Exit.USAGE,
            "--max-rows goes with --neighbors add-remove and a region of one pass: --ball, "
            "--sigma, --public, or --bounds with --one-pass",
        )
    if arguments.missing == "ignore" and arguments.kind != "mean":
        raise Problem(Exit.USAGE, "--missing ignore goes with mean")


def _names(rows: Rows, d: int) -> list[str]:
    """A name for each coordinate: its column's, or the list's with its place."""
    names = coordinate_names(rows.columns, d)
    return [f"[{j}]" for j in range(d)] if names is None else list(names)


def _spent(release: SumRelease | AdaptiveRelease) -> list[str]:
    if not isinstance(release, AdaptiveRelease):
        return []
    return [f"{'' if release.plan.infeasible else 'spent '}{release.plan.summary()}"]


def _text(release: SumRelease | AdaptiveRelease, names: Sequence[str]) -> str:
    unit = release.guarantee.unit if release.guarantee.rows_per_unit == 1 else ROW
    count = rows_text(release.n, noisy=release.neighbors == "add-remove", unit=unit)
    places = f"{len(names)} coordinate{'s' * (len(names) != 1)}"
    lines = [
        titled(f"{release.kind}{count}, {places}", private=release.private),
        f"guarantee: {release.guarantee}",
        *_spent(release),
        *([] if release.entry is None else [f"entry {release.entry.number} of the ledger"]),
        *(f"CAVEAT: {caveat}" for caveat in release.caveats),
        "",
        *table(release, names),
    ]
    return "\n".join(lines)


def table(release: SumRelease | AdaptiveRelease, names: Sequence[str]) -> list[str]:
    """Lines of name, value, noise standard deviation and interval, for a person."""
    lower, upper = release.confidence_interval()
    sd = release.sd
    shown = min(len(names), _ROWS_PRINTED)
    names = captions(names, release.units)
    width = max(len("column"), *(len(name) for name in names[:shown]))
    of = "of the rows" if isinstance(release, AdaptiveRelease) else "(noise alone)"
    lines = [f"{'column':{width}}  {'value':>13}  {'noise sd':>10}  95 % interval {of}"]
    lines += [
        f"{names[j]:{width}}  {release.value[j]:>13.6g}  {sd[j]:>10.3g}  "
        f"[{lower[j]:.6g}, {upper[j]:.6g}]"
        for j in range(shown)
    ]
    if shown < len(names):
        lines.append(f"... and {len(names) - shown} more: all of them by --json or --out")
    return lines
