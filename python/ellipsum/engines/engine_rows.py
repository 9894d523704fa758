"""What the engines share: the passes as methods, and errors that quote nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..adaptive.domain import Frame
from ..adaptive.part_pass import LabelCount, PartitionedPasses
from ..ellipsoid import Ellipsoid
from ..exact_sum import ExactSum
from ..rows.partitioned import Partitioned, once_each

__all__ = ["EngineError", "EngineRows", "engine", "label_names", "missing", "withheld"]


#: In what an engine says where a worker cannot unpack a task, or read what it is sent.
_ABSENT = {
    "No module named 'ellipsum'": "ellipsum",
    "No module named 'pyarrow'": "pyarrow",
}
#: In what a task says where public keys are text and the column integers, or so: a matter of types.
_OTHER_KEYS = "the keys given are not: give them as the data have them"


class EngineError(RuntimeError):
    """A job that an engine did not finish. What the engine said is withheld: it may quote rows."""


class EngineRows(Partitioned):
    """Rows in an engine, as data for the mechanisms: :class:`ellipsum.PrivateSum`,
    :class:`ellipsum.PrivateMean` over a region or a box, also of users (``by=``), the estimates,
    and sums, means, counts and histograms of groups.

    **Guarantees.** Each pass gives the same integers as the same rows in one array (claim
    engines-1), and what comes back of each part counts once (claim engines-2). What the methods
    return is **private**: it is for mechanisms, which add the noise.
    """

    def count_rows(self, d: int | None = None) -> int:
        """Number of rows. Public for ``replace`` neighbours, **private** for ``add-remove``.

        Parameters
        ----------
        d : int, optional; coordinates of a row, where the data do not say
        """
        if self.by:
            task = LabelCount(self.by)
            return task.total(once_each(self.gather(task)))
        known = d if self.d is None else self.d
        if known is None:
            raise ValueError("data does not say how many coordinates a row has: give d=")
        return PartitionedPasses(self, known).count_rows()

    def exact_sum(self, region: Ellipsoid, *, missing: str = "center") -> ExactSum:
        """Return the exact sum over a region, one pass. **Private.**

        Parameters
        ----------
        region : Ellipsoid
        missing : ``"center"`` or ``"ignore"``, as of :class:`ellipsum.ExactSum`

        Returns
        -------
        ExactSum
        """
        return PartitionedPasses(self, region.d).exact_sum(region, missing=missing)

    def histogram(self, frame: Frame, edges: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the rows whose distance from a frame's centre lies between edges. **Private.**

        Parameters
        ----------
        frame : Frame
        edges : array, ascending

        Returns
        -------
        array of int
        """
        return PartitionedPasses(self, frame.center.size).histogram(frame, edges)

    def halves(self, frame: Frame, radius: float) -> NDArray[np.object_]:
        """Sum positive and negative parts of clipped rows apart, exactly. **Private.**

        Parameters
        ----------
        frame : Frame, grid units
        radius : float, grid units

        Returns
        -------
        array (2 d,) of Python ints
        """
        return PartitionedPasses(self, frame.center.size).halves(frame, radius)


def label_names(by: str | Sequence[str]) -> tuple[str, ...]:
    """The names of ``by=``, each once."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise TypeError("by must be names of columns, each once")
    return names


def engine(name: str, extra: str) -> Any:
    """The module of an engine, or an ImportError that names what installs it."""
    try:
        return import_module(name)
    except ImportError:
        raise missing(name, extra) from None


def missing(name: str, extra: str) -> ImportError:
    """The error where an engine is not installed."""
    return ImportError(
        f'ellipsum.engines.{extra} needs {name.split(".")[0]}: pip install "ellipsum[{extra}]"'
    )


def withheld(name: str, job: Callable[[], Any]) -> Any:
    """What an engine's job returns; whatever it raises becomes an EngineError without its text.

    An engine's text can quote a record, and so can the exception itself: it is let go before
    the new one is raised, so that it is neither that one's cause nor its context.
    """
    try:
        return job()
    except Exception as error:
        kind, said = _public_name(error), str(error)
        absent = next((name for text, name in _ABSENT.items() if text in said), None)
        of_another_type = _OTHER_KEYS in said
        del said
    if absent:
        raise EngineError(
            f"{name}'s workers have no {absent}: install it there, and see that they run that "
            "Python (PYSPARK_PYTHON in Spark)"
        )
    if of_another_type:
        raise EngineError(
            "the keys given are of another type than the column of keys: give them as it has them"
        )
    raise EngineError(
        f"{name} did not finish the job ({kind}); what it said is withheld, since it may quote "
        "records. Casts that can fail must be try_cast, and workers need this version of "
        "ellipsum; see the guide on engines"
    )


def _public_name(error: Exception) -> str:
    """The error's class, and its condition in Spark: neither comes from a record."""
    get = getattr(error, "getCondition", None)
    condition = get() if callable(get) else None
    kind = type(error).__name__
    if isinstance(condition, str) and condition.replace("_", "").replace(".", "").isalnum():
        return f"{kind}, {condition}"
    return kind
