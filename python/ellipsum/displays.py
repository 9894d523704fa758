"""What notebooks show of some types beside their text: tables of what is public in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .accounting.cost import Cost, Left, Limit
from .budget.budget import Budget, Entry, Share
from .column_names import printable
from .ellipsoid import Ellipsoid
from .engines.engine_rows import EngineRows
from .guarantee import GaussianGuarantee
from .notebook import Content, content, shown_in_notebooks
from .quadratic_form import FormArray, FormFit, Gradient, QuadraticFormResult
from .shapes.best import ErrorPrediction

__all__ = ["shown_in_notebooks"]

#: What public methods return, and no module exports.
_RETURNED = {kind.__name__: kind for kind in (Cost, EngineRows, Entry, Left, Limit, Share)}
shown_in_notebooks(_RETURNED, list(_RETURNED))


def _coordinates(names: Any, d: int) -> list[str]:
    return [printable(name) for name in names] if names else [f"[{j}]" for j in range(d)]


@content.register
def _(region: Ellipsoid) -> Content:
    columns: dict[str, Any] = {"coordinate": _coordinates(region.columns, region.d)}
    columns["center"] = region.center.tolist()
    if region.kind == "box":
        columns["half-width"] = (region._limit * region.grid / region.scale).tolist()
    elif region.kind in ("ball", "ellipsoid"):  # an axis of a matrix is no coordinate's
        columns["half-axis"] = (region.clip_norm / region.scale).tolist()
    return Content([repr(region)], columns)


@content.register
def _(error: ErrorPrediction) -> Content:
    parts = {"noise": error.noise, "clipping": error.clipping, "bias": error.bias}
    columns: dict[str, Any] = {"coordinate": _coordinates(None, len(error.noise))}
    columns |= {name: np.asarray(part).tolist() for name, part in parts.items()}
    return Content(
        [f"predicted {error}", "terms of the squared error, data units squared:"], columns
    )


@content.register
def _(guarantee: GaussianGuarantee) -> Content:
    forms = {name: [value] for name, value in guarantee.budget().items()}
    return Content([type(guarantee).__name__, str(guarantee)], forms)


@content.register
def _(budget: Budget) -> Content:
    first, *_ = str(budget).splitlines()
    entries = budget.entries
    spent = sum((entry.cost for entry in entries), Cost())
    where = [] if budget.path is None else [f"ledger: {budget.path}"]
    columns: dict[str, Any] = {
        "entry": [entry.number for entry in entries],
        "time": [entry.time for entry in entries],
        "what": [entry.what for entry in entries],
        "cost": [str(entry.cost) for entry in entries],
    }
    head = [first, *where, f"spent: {spent}", f"left: {budget.limit.left(spent)}"]
    return Content(head, columns if entries else {})


@content.register
def _(result: QuadraticFormResult) -> Content:
    points = {name: np.ravel(part).tolist() for name, part in result._asdict().items()}
    return Content(["QuadraticFormResult"], points)


@content.register
def _(forms: FormArray) -> Content:
    places = [str(i if len(i) > 1 else i[0]) for i in np.ndindex(forms.shape) if i]
    known = {"mean": forms.mean(), "sd": forms.std()}
    columns: dict[str, Any] = {"form": places or ["()"]}
    return Content([repr(forms)], columns | {n: np.ravel(x).tolist() for n, x in known.items()})


@content.register
def _(slopes: Gradient) -> Content:
    plain = {"normal_sd": slopes.normal_sd, "offset": slopes.offset, "q": slopes.q}
    if np.ndim(slopes.q):
        return Content(["Gradient of many forms", f"shape {np.shape(slopes.q)}"])
    parts = {"weight": slopes.weights, "dof": slopes.dof, "noncentrality": slopes.noncentrality}
    columns = {f"in {name}": np.asarray(part).tolist() for name, part in parts.items()}
    return Content(["Gradient", *(f"in {n}: {x:.6g}" for n, x in plain.items())], columns)


@content.register
def _(fit: FormFit) -> Content:
    form = fit.form
    columns: dict[str, Any] = {"weight": form.weights.tolist(), "sd": fit.weights_error.tolist()}
    columns["dof"] = form.dof.tolist()
    plain = (("normal_sd", form.normal_sd, fit.normal_sd_error),
             ("offset", form.offset, fit.offset_error))  # fmt: skip
    lines = [f"{name} {value:.6g}, sd {error:.3g}" for name, value, error in plain if error]
    return Content(["FormFit", f"log likelihood {fit.log_likelihood:.6g}", *lines], columns)
