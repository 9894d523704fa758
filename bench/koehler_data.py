"""Data for section 6.3 of Koehler (2018): loaders of the two UCI files, and four stand-ins.

The thesis' two data sets are in no package. Given the path of ``breast-cancer-wisconsin.data`` or
``drug_consumption.data`` they are read as section 6.3 describes, with two differences: the thesis
takes "the first 13" of the drug file's 32 attributes, and the first of these is the row number
(it would be the top component by far), so here it is the 12 after it; and Semer, which does not
exist (it finds out who exaggerates), is no hard drug. Stand-ins: ``breast_cancer`` and ``wine``
for the first file, ``diabetes`` and ``digits`` for the second, which needs auxiliary columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

DRUGS = (
    "alcohol amphet amyl benzos caffeine cannabis chocolate coke crack ecstasy heroin ketamine "
    "legalh lsd meth mushrooms nicotine semer vsa"
).split()
LEGAL = ("alcohol", "caffeine", "chocolate", "nicotine")


class Records(NamedTuple):
    """Rows to be released, two classes to be told apart, auxiliary columns (for the bottleneck).

    ``standardize``: whether columns have units of their own, and are divided by their deviations.
    """

    name: str
    rows: np.ndarray
    labels: np.ndarray
    classes: tuple[str, str]
    standardize: bool
    auxiliary: np.ndarray | None = None


def wisconsin(path: Path) -> Records:
    """``breast-cancer-wisconsin.data``: 699 lines: a number, 9 grades, 2 or 4; 683 are whole."""
    lines = [line.split(",") for line in path.read_text().split()]
    table = np.array([line for line in lines if "?" not in line], dtype=float)
    labels = (table[:, 10] == 4).astype(int)
    return Records("Wisconsin", table[:, 1:10], labels, ("benign", "malignant"), False)


def drugs(path: Path) -> Records:
    """``drug_consumption.data``: 1885 lines of a number, 12 scores and 19 grades CL0 to CL6."""
    lines = [line.split(",") for line in path.read_text().split()]
    rows = np.array([line[1:13] for line in lines], dtype=float)
    grades = np.array([[int(cell.strip('"')[2:]) for cell in line[13:]] for line in lines])
    hard = [i for i, name in enumerate(DRUGS) if name not in (*LEGAL, "semer")]
    legal = [DRUGS.index(name) for name in LEGAL]
    mean = grades[:, hard].mean(axis=1)
    labels = (mean > np.median(mean)).astype(int)
    return Records("drugs", rows, labels, ("weak", "strong"), False, grades[:, legal].astype(float))


def breast_cancer() -> Records:
    """569 biopsies, 30 columns: the diagnostic set, not the thesis' (683 of 9 grades)."""
    from sklearn.datasets import load_breast_cancer

    rows, benign = load_breast_cancer(return_X_y=True)
    return Records("breast_cancer", rows, 1 - benign, ("benign", "malignant"), True)


def wine() -> Records:
    """178 wines, 13 columns: the second cultivar or another."""
    from sklearn.datasets import load_wine

    rows, cultivar = load_wine(return_X_y=True)
    return Records("wine", rows, (cultivar == 1).astype(int), ("other", "cultivar 2"), True)


def diabetes() -> Records:
    """442 people: age, sex, bmi and blood pressure; auxiliary six blood values; progression."""
    from sklearn.datasets import load_diabetes

    table, progression = load_diabetes(return_X_y=True)
    labels = (progression > np.median(progression)).astype(int)
    return Records("diabetes", table[:, :4], labels, ("slower", "faster"), True, table[:, 4:])


def digits() -> Records:
    """1797 digits: pixels of the upper half; auxiliary those of the lower half; 5 or more."""
    from sklearn.datasets import load_digits

    pixels, digit = load_digits(return_X_y=True)
    upper, lower = (half[:, half.std(axis=0) > 0.5] for half in (pixels[:, :32], pixels[:, 32:]))
    return Records("digits", upper, (digit >= 5).astype(int), ("0 to 4", "5 to 9"), False, lower)


def biopsies(path: Path | None) -> list[Records]:
    """What figures 6.4, 6.5 and 6.9 are of."""
    return [wisconsin(path)] if path else [breast_cancer(), wine()]


def surveys(path: Path | None) -> list[Records]:
    """What figures 6.6, 6.7, 6.8, 6.10 and 6.11 are of."""
    return [drugs(path)] if path else [diabetes(), digits()]
