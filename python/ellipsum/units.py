"""How errors are weighed where coordinates have units of their own: one argument, ``error``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate

__all__ = ["ERRORS", "error_unit"]

Array = NDArray[np.float64]

#: The words that ``error`` may be, beside weights.
ERRORS = ("box", "relative", "absolute")


def error_unit(
    error: str | ArrayLike, d: int, *, box: Array | None = None, sigma: Array | None = None
) -> Array:
    """The unit of each coordinate in which its error is weighed, the largest one being 1.

    The mean squared error that a shape makes small is sum_j (e_j / unit_j)^2, which is the plain
    one of the coordinates divided by their units: a shape is made there, and scaled back. Equal
    units are 1 exactly, and change no bit.

    Parameters
    ----------
    error : ``"box"`` (the box's widths), ``"relative"`` (the rows' own standard deviations),
        ``"absolute"`` (the data's own unit), or weights (d,), 1/data unit: sum_j (w_j e_j)^2
    d : int
    box : array (d,), half widths, data units, where there is a box
    sigma : array (d,), data units, where the standard deviations are known

    Raises
    ------
    ValueError
        For another word, for weights that are not positive, or for a word without what it needs.
    """
    if not isinstance(error, str):
        unit = 1 / _validate.vector("error", error, d=d, above=0)
    else:
        _validate.one_of("error", error, ERRORS)
        known = {"box": box, "relative": sigma, "absolute": np.ones(d)}[error]
        if known is None:
            what = {"box": "lower and upper", "relative": "sigma"}[error]
            raise ValueError(f'error="{error}" needs {what}')
        unit = known
    return np.asarray(unit / unit.max())
