"""Run the code of docs/guides/other_libraries.md with the libraries it names, and compare errors.

    pip install opendp diffprivlib "scikit-learn<1.7"      (diffprivlib 0.6.6 reads old names)
    python bench/guide_peers.py [TRIALS]

The page's first block makes the rows; a ``python peer`` block ends with ``value``, as does the
block that imports ellipsum. A library that cannot be imported is named and left out.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import re
import sys
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parent.parent / "docs/guides/other_libraries.md"
NAMES = ("opendp", "diffprivlib", "ellipsum")


def code_of(page: str) -> dict[str, str]:
    """The code that makes the rows, and that of each library, by name."""
    blocks = re.findall(r"^```python[^\n]*\n(.*?)^```$", page, re.M | re.S)
    found = {"rows": blocks[0]}
    for name in NAMES:
        found[name] = next(b for b in blocks if re.search(rf"^(import|from) {name}\b", b, re.M))
    return found


def errors(code: str, rows_code: str, trials: int) -> np.ndarray:
    """The value minus the mean of the rows, for each trial and column."""
    names: dict[str, object] = {}
    exec(rows_code, names)
    compiled, found = compile(code, str(PAGE), "exec"), []
    for _ in range(trials):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compiled, names)
        found.append(names["value"] - names["rows"].mean(axis=0))
    return np.array(found)


def main(trials: int) -> None:
    code = code_of(PAGE.read_text(encoding="utf-8"))
    print("| library | root of the total squared error | narrowest column, error / sigma |")
    print("|---|---|---|")
    for name in NAMES:
        try:
            found = errors(code[name], code["rows"], trials)
        except ImportError as error:
            print(f"{name} cannot be imported here: {error}", file=sys.stderr)
            continue
        total = np.sqrt(np.mean(np.sum(found**2, axis=1)))
        narrowest = np.sqrt(np.mean(found[:, 0] ** 2))
        version = "" if name == "ellipsum" else f" {importlib.metadata.version(name)}"
        print(f"| {name}{version} | {total:.2f} | {narrowest:.3f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
