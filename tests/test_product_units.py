"""Units of what products of columns are released as: second moments, regressions, axes, records."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ellipsum import Budget, estimate_covariance
from ellipsum.column_units import product_unit, ratio_unit
from ellipsum.records import (
    PrivatePCA,
    PrivateProjection,
    PrivateRegression,
    RecordRelease,
    synthetic_rows,
)

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
NAMES, UNITS = ("height", "dose", "weight"), ("cm", "mg/kg", "kg")
ROWS = np.random.default_rng(3).normal(size=(400, 3))
PLAIN = pd.DataFrame(ROWS, columns=list(NAMES))
KNOWN = dict(zip(NAMES, UNITS, strict=True))


def told(units=KNOWN):
    frame = PLAIN.copy()
    frame.attrs["units"] = units
    return frame


def covariance(data, **more):
    return estimate_covariance(data, center=[0.0] * 3, radius=3.0, seed=1, **more, **BUDGET)


def test_texts_of_products_and_ratios_can_be_read_back():
    assert product_unit("cm", "cm") == "cm^2" and product_unit("cm", "kg") == "cm*kg"
    assert product_unit("mg/kg", "mg/kg") == "(mg/kg)^2" and product_unit("%", "m^2") == "%*(m^2)"
    assert ratio_unit("kg", "cm") == "kg/cm" and ratio_unit("kg", "mg/kg") == "kg/(mg/kg)"
    assert ratio_unit("cm", "cm") == "1"
    assert product_unit(None, "cm") is product_unit("cm", "") is ratio_unit("", "cm") is None


def test_second_moments_have_the_units_of_rows_and_columns():
    plain, found = covariance(PLAIN), covariance(told())
    assert found.units == UNITS and plain.units is None
    assert (found.value == plain.value).all()
    assert found.to_dict() == plain.to_dict() | {"units": list(UNITS)}
    json.dumps(found.to_dict())
    assert [line.split()[1] for line in str(found).splitlines()[-3:]] == [
        "[cm^2]",
        "[(mg/kg)^2]",
        "[kg^2]",
    ]
    assert list(found.table()) == ["column", "unit", *NAMES]
    assert found.table()["unit"] == found.to_arrow()["unit"].to_pylist() == list(UNITS)
    shown = found.to_pandas()
    assert shown.attrs["units"] == KNOWN and list(shown.columns) == list(NAMES)
    assert list(plain.table()) == ["column", *NAMES] and "units" not in plain.to_pandas().attrs
    assert covariance(PLAIN, units={"weight": "g"}).units == (None, None, "g")
    assert covariance(told(), units=["", None, "g"]).units == (None, "mg/kg", "g")
    by_place = covariance(ROWS, units=UNITS)
    assert by_place.columns is None and "[0,0] [cm^2]" in str(by_place)


def test_columns_that_are_called_as_those_of_the_table_stay():
    names = ["column", "unit", "value"]
    frame = PLAIN.set_axis(names, axis=1)
    assert list(covariance(frame).table()) == ["column", "[column]", "unit", "value"]
    assert list(covariance(frame).to_pandas().columns) == ["[column]", "unit", "value"]
    frame.attrs["units"] = {"unit": "cm"}
    found = covariance(frame)
    assert list(found.table()) == ["column", "unit", "[column]", "[unit]", "value"]
    assert list(found.to_pandas().columns) == ["[column]", "[unit]", "value"]


def test_units_of_no_column_are_refused_before_the_budget_is_drawn():
    budget = Budget(**BUDGET)
    with pytest.raises(ValueError, match="units has the column 'age'"):
        covariance(PLAIN, units={"age": "years"}, budget=budget)
    with pytest.raises(ValueError, match="units has the column 'age'"):
        PrivatePCA(1, 3.0, units={"age": "years"}, **BUDGET).fit(PLAIN, budget=budget)
    with pytest.raises(ValueError, match="units must have 3 entries"):
        covariance(PLAIN, units=["cm"], budget=budget)
    assert not budget.entries


@pytest.mark.parametrize("center", [None, dict.fromkeys(NAMES, 0.0)])
def test_coefficients_have_the_target_s_unit_per_that_of_the_column(center):
    known = {"center": center, "scale": None if center else [1.0] * 3, "seed": 2, **BUDGET}
    plain = PrivateRegression(2.0, **known).fit(PLAIN)
    found = PrivateRegression(2.0, **known).fit(told())
    assert (found.coef_ == plain.coef_).all() and plain.units_ is plain.coef_units_ is None
    assert found.units_ == UNITS and found.coef_units_ == ("kg/cm", "kg/(mg/kg)")
    x, y = told().iloc[:, :2], ROWS[:, 2]
    beside = PrivateRegression(2.0, **known).fit(x, y)
    assert beside.units_ == ("cm", "mg/kg", None) and beside.coef_units_ is None
    assert (beside.coef_ == plain.coef_).all() and beside.columns_ == NAMES[:2]
    said = PrivateRegression(2.0, units=[None, "", "g"], **known).fit(x, y)
    assert said.units_ == ("cm", None, "g") and said.coef_units_ == ("g/cm", None)
    named = PrivateRegression(2.0, units={"height": "m"}, **known).fit(x, y)
    assert named.units_ == ("m", "mg/kg", None)
    assert PrivateRegression(2.0, units=UNITS).get_params()["units"] == UNITS


def test_axes_projections_synthetic_rows_and_records_have_the_columns_units():
    assert PrivatePCA(1, 3.0, seed=1, **BUDGET).fit(told()).units_ == UNITS
    assert synthetic_rows(covariance(told()), 5, seed=1).units == UNITS
    assert synthetic_rows(covariance(told()), 5, seed=1).to_pandas().attrs["units"] == KNOWN
    assert synthetic_rows(covariance(PLAIN), 5, seed=1).units is None
    projection = PrivateProjection(rows=60, d=3, radius=3.0, seed=4, **BUDGET)
    released = projection.add(told()).release()
    assert released.units == released.second_moments().units == UNITS
    assert released.regression("weight").units == ("kg/cm", "kg/(mg/kg)")
    assert released.regression("weight", lasso=0.1).units == ("kg/cm", "kg/(mg/kg)")
    records = RecordRelease(noise="gaussian", epsilon=4.0, delta=1e-6)
    assert records.fit(told()).units_ == UNITS and records.fit(PLAIN).units_ is None
    mean = covariance(told())
    assert records.fit(covariance=mean, center=[0.0] * 3).units_ == UNITS
