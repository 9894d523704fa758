"""The stored reference tables of ``tests/reference``, case by case."""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "reference"


def reference_cases(name):
    """(weights, dof, noncentrality, normal_sd) and what is known of each case of a table."""
    with np.load(FOLDER / name) as stored:
        table = dict(stored)
    ends = np.cumsum(table["size"])
    for i, end in enumerate(ends):
        part = slice(end - table["size"][i], end)
        vectors = (table[k][part] for k in ("weights", "dof", "noncentrality"))
        known = {k: table[k][i] for k in ("index", "q", "upper", "tail", "pdf")}
        yield (*vectors, float(table["normal_sd"][i])), known
