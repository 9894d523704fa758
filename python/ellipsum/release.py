"""What leaves the machine, of whatever kind: a value, its noise, its guarantee, its caveats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .column_names import captions
from .column_units import product_unit
from .guarantee import ROW, Guarantee
from .plot import plot_release
from .tabular import as_arrow, as_html, as_pandas

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Release", "finite_or_none", "rows_text", "titled"]

Array = NDArray[np.float64]

_ROWS_PRINTED = 12  # coordinates of a printed release; `value` has all


def rows_text(n: float | None, *, noisy: bool, unit: str = ROW) -> str:
    """``" of 1 row"``, ``" of 315.4 rows (noisy count)"``, ``" of 3 users"``; nothing where no
    count was released."""
    if n is None:
        return ""
    what = "row" if unit == ROW else "user"
    return f" of {n:.1f} {what}s (noisy count)" if noisy else f" of {n:.12g} {what}{'s' * (n != 1)}"


def titled(what: str, *, private: bool) -> str:
    """``"private mean of 3 users, d = 2"``, or the same without the word and with what it is."""
    return f"private {what}" if private else f"{what}, not private"


def finite_or_none(values: NDArray[np.float64]) -> Any:
    """Numbers as JSON holds them, in nested lists: None stands for an infinite one."""
    plain = np.asarray(values, dtype=object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


class Release:
    """What all releases share: a kind, a value, a guarantee, and caveats.

    **Guarantees.** Everything in it is a function of what the mechanism released and of public
    parameters: it may be published whole. ``private`` is False, and ``caveats`` says why, where
    the guarantee was given up (a seed, ``nonfinite="raise"``).

    Parameters
    ----------
    kind : str
    value : array, data units
    guarantee : Guarantee
    caveats : tuple of str
    sd : array like ``value``, data units, or None where no noise level is known
    n : float or None, rows: public, noisy, or not released
    """

    def __init__(
        self,
        kind: str,
        value: Array,
        guarantee: Guarantee,
        caveats: tuple[str, ...] = (),
        *,
        sd: Array | None = None,
        n: float | None = None,
    ) -> None:
        self._kind, self._value, self._guarantee = kind, np.asarray(value), guarantee
        self._caveats, self._sd, self._n = tuple(caveats), sd, n
        self._entry: Any = None
        self._columns: tuple[str, ...] | None = None
        self._units: tuple[str | None, ...] | None = None

    @property
    def kind(self) -> str:
        """What was released: ``"sum"``, ``"mean"``, ..."""
        return self._kind

    @property
    def value(self) -> Array:
        """The released value, data units."""
        return self._value

    @property
    def sd(self) -> Array | None:
        """Noise standard deviation of each entry of ``value``, where it is known, data units."""
        return self._sd

    @property
    def n(self) -> float | None:
        """Rows: public for ``replace``, noisy for ``add-remove``, None where not released."""
        return self._n

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee as an object that converts between its forms."""
        return self._guarantee

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why it is not private, if so."""
        return self._caveats

    @property
    def private(self) -> bool:
        """Whether a proved guarantee holds: False for a seeded release."""
        return self._guarantee.is_private and not self._caveats

    @property
    def epsilon(self) -> float | None:
        """epsilon as asked; None where the budget was given as rho or mu."""
        return self._budget("epsilon")

    @property
    def delta(self) -> float | None:
        """delta as asked; None where the budget was given as rho or mu."""
        return self._budget("delta")

    @property
    def rho(self) -> float:
        """rho-zCDP."""
        return self._guarantee.rho

    @property
    def mu(self) -> float:
        """mu-GDP."""
        return self._guarantee.mu

    @property
    def neighbors(self) -> str:
        """The neighbouring relation: ``"replace"`` or ``"add-remove"``."""
        return self._guarantee.neighbors

    @property
    def entry(self) -> Any:
        """What it took from which budget (an ``Entry``), or None."""
        return self._entry

    @property
    def covers(self) -> str:
        """What the intervals of a printed release count: ``"the noise"`` or ``"the rows"``."""
        return "the noise"

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the coordinates, where the rows or the bounds had some: schema, public."""
        return self._columns

    @property
    def units(self) -> tuple[str | None, ...] | None:
        """Units of the coordinates, None where nobody said one: schema, public. Of a matrix of
        products an entry has that of its row times that of its column."""
        return self._units

    @property
    def _products(self) -> bool:
        """Whether it is a matrix of products of coordinates."""
        return False

    @property
    def _lists_units(self) -> bool:
        """Whether its table has a column of units, where there are some."""
        return self._value.ndim < 2 or self._products

    def named(
        self, columns: Sequence[str] | None, units: Sequence[str | None] | None = None
    ) -> Self:
        """Name the coordinates and their units; return itself.

        Raises
        ------
        ValueError
            For units that are not as many as coordinates.
        """
        if units is not None and len(units) != self._value.shape[-1]:
            raise ValueError(f"units must have {self._value.shape[-1]} entries, got {len(units)}")
        self._columns = None if columns is None else tuple(columns)
        self._units = tuple(units) if units is not None and any(units) else None
        return self

    def coordinates(self) -> list[str]:
        """Return what each coordinate is called: its column's name, else its place ``[j]``."""
        if self._columns is not None:
            return list(self._columns)
        return [f"[{j}]" for j in range(self._value.shape[-1])] if self._value.ndim else ["[0]"]

    def drawn_from(self, entry: Any) -> Self:
        """Name the budget's entry that it was drawn under; return itself."""
        self._entry = entry
        return self

    def _budget(self, name: str) -> float | None:
        budget = self._guarantee.budget()
        if name not in budget:
            return getattr(self._guarantee, name)  # an AttributeError that says why
        return budget[name]

    def dp_event(self) -> Any:
        """Return the release as a ``dp_accounting`` event, for composition.

        Set the accountant to :meth:`dp_relation`: under ``REPLACE_ONE`` some accountants double
        a sensitivity that already is the one of ``replace`` neighbours.

        Raises
        ------
        ImportError
            Where dp-accounting is not installed (extra ``accounting``).
        AttributeError
            Where the guarantee is not differential privacy.
        """
        return self._guarantee.dp_event()

    def dp_relation(self) -> Any:
        """Return the ``dp_accounting`` relation to compose :meth:`dp_event` under.

        ``REPLACE_SPECIAL`` for ``replace``, ``ADD_OR_REMOVE_ONE`` for ``add-remove``.
        """
        return self._guarantee.dp_relation()

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters of the release, as plain numbers and strings."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values that JSON can hold."""
        return {
            "kind": self._kind,
            "value": self._value.tolist(),
            "sd": None if self.sd is None else finite_or_none(self.sd),
            "n": self.n,
            "columns": None if self._columns is None else list(self._columns),
            "units": None if self._units is None else list(self._units),
            **self._guarantee.budget(),
            "private": self.private,
            "caveats": list(self.caveats),
            "guarantee": self._guarantee.to_dict(),
            "parameters": self.parameters,
            **({} if self._entry is None else {"entry": self._entry.to_dict()}),
        }

    def table(self, level: float = 0.95) -> dict[str, Any]:
        """Return names, values, noise and intervals as columns, one coordinate a row.

        Of a matrix, a row and a column for each coordinate; ``unit`` is the row's own.

        Parameters
        ----------
        level : float in (0, 1), of the intervals

        Returns
        -------
        dict of lists of the same length: ``column``, ``value``, and where known ``unit``, ``sd``,
        ``lower`` and ``upper``, None where they are infinite (in pandas NaN, in Arrow null)
        """
        names = self.coordinates()
        if self._value.ndim == 2:
            square: dict[str, Any] = {"column": names} if len(self._value) == len(names) else {}
            if self._products and self._units is not None:
                square["unit"] = list(self._units)
            own = {"column", *square}
            taken = [f"[{name}]" if name in own else name for name in names]
            return square | dict(zip(taken, self._value.T.tolist(), strict=True))
        units = {} if self._units is None else {"unit": list(self._units)}
        columns: dict[str, Any] = {"column": names, **units, "value": self._value.tolist()}
        if self.sd is not None:
            columns["sd"] = finite_or_none(self.sd)
        if hasattr(self, "confidence_interval"):
            lower, upper = self.confidence_interval(level)
            columns |= {"lower": finite_or_none(lower), "upper": finite_or_none(upper)}
        return columns

    def to_pandas(self, level: float = 0.95) -> Any:
        """Return :meth:`table` as a pandas DataFrame, indexed by the columns' names if it has them.

        ``frame.attrs["ellipsum"]`` has the guarantee, the caveats and the parameters;
        ``frame.attrs["units"]`` the units by coordinate, where there are some.

        Raises
        ------
        ImportError
            Where pandas is not installed.
        """
        columns = self.table(level)
        units = dict(zip(self.coordinates(), self._units or (), strict=False))
        if units and self._lists_units:  # else that is a coordinate
            del columns["unit"]
        first = next(iter(columns))
        places = self._value.ndim == 2 and first == self.coordinates()[0] != "column"
        return as_pandas(columns, self._about(), None if places else first, units)

    def to_arrow(self, level: float = 0.95) -> Any:
        """Return :meth:`table` as a pyarrow Table, its schema's metadata as of :meth:`to_pandas`.

        Raises
        ------
        ImportError
            Where pyarrow is not installed.
        """
        return as_arrow(self.table(level), self._about())

    def _about(self) -> dict[str, Any]:
        """What a table of values does not say."""
        plain = self.to_dict()
        names = ("kind", "n", "private", "caveats", "guarantee", "parameters")
        return {name: plain[name] for name in names}

    def _repr_html_(self) -> str:
        return as_html(self._head(), self.table())

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the values with their intervals; return the matplotlib axes (extra ``plot``).

        Parameters
        ----------
        ax : matplotlib axes, optional
        **options : ``names``, ``level``, ``sort`` of :func:`ellipsum.plot.plot_release`

        Raises
        ------
        ImportError
            Where matplotlib is not installed.
        TypeError
            Where the release has no intervals to draw.
        """
        if not hasattr(self, "confidence_interval"):
            raise TypeError(f"a release of kind {self._kind!r} has no intervals to draw")
        return plot_release(self, ax=ax, **options)

    def __repr__(self) -> str:
        size = "x".join(str(n) for n in self._value.shape)
        but = "" if self.private else "not private, "
        return f"{type(self).__name__}(kind={self._kind!r}, d={size}, {but}{self._guarantee})"

    def __str__(self) -> str:
        lines = [*self._head(), *self._rows()]
        return "\n".join(lines)

    def _title(self) -> str:
        size = "x".join(str(n) for n in self._value.shape)
        return f"{self._kind}, d = {size}"

    def _head(self) -> list[str]:
        """What it is, what it promises, and why not, if so."""
        lines = [titled(self._title(), private=self.private), f"  {self._guarantee}"]
        if self._entry is not None:
            where = "" if self._entry.ledger is None else f" of {self._entry.ledger}"
            lines.append(f"  entry {self._entry.number}{where}")
        return lines + [f"  {caveat.upper()}" for caveat in self._caveats]

    def _rows(self) -> list[str]:
        """Values and noise, one coordinate a line; of a matrix, its diagonal."""
        matrix = self._value.ndim == 2
        value, sd = self._value, self.sd
        if matrix:
            value, sd = np.diag(value), None if sd is None else np.diag(sd)
        shown = min(value.size, _ROWS_PRINTED)
        called, units = self.coordinates(), self._units
        if matrix and self._columns is None:
            called = [f"[{j},{j}]" for j in range(len(called))]
        if self._products and units is not None:
            units = tuple(product_unit(unit, unit) for unit in units)
        names = captions(called, units)[:shown]
        width = max(len(name) for name in [*names, "[000]", " "])
        noise = ["" if sd is None else f" {sd[j]:>11.3g}" for j in range(shown)]
        heading, ends = self._more_columns(shown)
        lines = [f"  {'':>{width}} {'value':>13}{'' if sd is None else '    noise sd'}{heading}"]
        for j in range(shown):
            lines.append(f"  {names[j]:>{width}} {value[j]:>13.6g}{noise[j]}{ends[j]}")
        if value.size > shown:
            lines.append(f"  ... and {value.size - shown} more coordinates")
        return lines

    def _more_columns(self, shown: int) -> tuple[str, list[str]]:
        """What a subclass adds to the heading, and to each of the lines shown."""
        return "", [""] * shown
