"""``ellipsum audit``: what fresh attackers learn of a column from the others."""

from __future__ import annotations

import argparse
import json

from .. import __version__
from ..tradeoff import audit
from .exit import Exit, Problem, own_text
from .options import split_names
from .read_columns import NOT_PRIVATE, read_labelled

__all__ = ["run"]

_MOST_LABELS = 100  # classes: more are mostly a number's values, which no classifier learns


def run(arguments: argparse.Namespace) -> int:
    """Train the attackers and print what they reached on rows held out."""
    columns = split_names(arguments.columns)
    attackers = split_names(arguments.attackers)
    assert columns is not None and attackers is not None
    released, labels, incomplete, unlabelled = read_labelled(
        arguments.files, columns, arguments.label
    )
    if len(set(labels.tolist())) > _MOST_LABELS:
        raise Problem(
            Exit.DATA, f"--label must be a column of at most {_MOST_LABELS} different values"
        )
    try:
        found = audit(released, labels, attackers=attackers, seed=arguments.seed)
    except ValueError as error:
        raise Problem(Exit.PARAMETER, own_text(error)) from None
    if arguments.json:
        about = {
            "ellipsum": __version__,
            "rows": len(released),
            "incomplete": incomplete,
            "unlabelled": unlabelled,
            "caveat": NOT_PRIVATE,
        }
        print(json.dumps(about | found.to_dict()))
    else:
        why = f", {unlabelled} of them for want of a label" if unlabelled else ""
        left = f"{len(released)} rows ({incomplete} incomplete left out{why})"
        print(f"{arguments.label} from {', '.join(columns)}: {left}")
        print(f"CAVEAT: {NOT_PRIVATE}\n\n{found}")
    return Exit.OK
