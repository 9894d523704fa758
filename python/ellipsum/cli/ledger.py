"""``ellipsum ledger create`` and ``ellipsum ledger show``."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from ..budget.budget import Budget
from .exit import Exit, Problem, own_text

__all__ = ["add_arguments", "open_ledger"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The two actions and what they take."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="make a ledger with a budget", allow_abbrev=False)
    create.add_argument("file", metavar="FILE")
    create.add_argument("--epsilon", type=float, metavar="E", help="of (epsilon, delta)-DP")
    create.add_argument("--delta", type=float, metavar="D", help="of (epsilon, delta)-DP")
    create.add_argument("--rho", type=float, metavar="R", help="of rho-zCDP")
    create.add_argument("--mu", type=float, metavar="M", help="of mu-GDP; --delta for selections")
    create.add_argument("--neighbors", choices=("replace", "add-remove"), default="replace")
    create.add_argument("--unit", default="one row", metavar="TEXT", help="default: %(default)s")
    create.set_defaults(run=_create)
    show = actions.add_parser("show", help="print what was spent", allow_abbrev=False)
    show.add_argument("file", metavar="FILE")
    show.add_argument("--json", action="store_true", help="print JSON instead of text")
    show.set_defaults(run=_show)


def open_ledger(path: str) -> Budget:
    """The budget of a ledger that is there."""
    try:
        return Budget(path=path)
    except ValueError as error:
        raise Problem(Exit.BUDGET, own_text(error)) from None


def _create(arguments: argparse.Namespace) -> int:
    names = ("mu", "rho", "epsilon", "delta", "neighbors", "unit")
    if os.path.exists(arguments.file):
        raise Problem(Exit.BUDGET, f"{arguments.file} is there already: ledgers are only added to")
    if arguments.mu is arguments.rho is arguments.epsilon is None:
        raise Problem(Exit.USAGE, "give one budget: --mu, or --rho, or --epsilon and --delta")
    try:
        given = {name: getattr(arguments, name) for name in names}
        budget = Budget(**given, path=arguments.file)
    except (TypeError, ValueError) as error:
        raise Problem(Exit.PARAMETER, own_text(error)) from None
    print(_title(arguments.file, budget))
    return Exit.OK


def _show(arguments: argparse.Namespace) -> int:
    budget = open_ledger(arguments.file)
    print(json.dumps(_plain(budget)) if arguments.json else _text(arguments.file, budget))
    return Exit.OK


def _title(path: str, budget: Budget) -> str:
    return f"{path}: {budget.limit}, neighbours: {budget.neighbors}, unit: {budget.unit}"


def _text(path: str, budget: Budget) -> str:
    """The budget's own lines under the path as it was given."""
    return "\n".join([_title(path, budget), *str(budget).splitlines()[1:]])


def _plain(budget: Budget) -> dict[str, Any]:
    limit, left = budget.limit, budget.left
    terms = {"mu_squared": limit.mu_squared, "epsilon": limit.epsilon, "delta": limit.delta}
    return {
        "budget": {name: None if x is None else float(x) for name, x in terms.items()},
        "neighbors": budget.neighbors.value,
        "unit": budget.unit,
        "spent": budget.guarantee.budget(),
        "left": left._asdict(),
        "entries": [entry.to_dict() for entry in budget.entries],
    }
