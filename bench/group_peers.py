"""The same user-level grouped mean in several libraries: lines of code, error, time.

    python bench/group_peers.py ellipsum opendp diffprivlib pipeline_dp tmlt

One person is there or not, in any number of rows; (1, 1e-6)-DP for all of them; 20 public groups,
at most four of a person. Each library is asked as its documentation does, in the environment that
has it: it needs one of its own, and those that are missing are named and left out. The error is the
root of the mean squared difference from the plain mean of each group's rows, over groups and runs.
diffprivlib has no person and no group: both are made by hand, for the other relation (replace).
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import os
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

PEOPLE, ROWS, GROUPS, RUNS = 5_000, 100_000, 20, 5
#: Of a library that has zCDP, the rho that is (1, 1e-6)-DP by the usual conversion:
#: sqrt(rho) = sqrt(ln 1/delta + 1) - sqrt(ln 1/delta).
RHO = (np.sqrt(np.log(1e6) + 1) - np.sqrt(np.log(1e6))) ** 2


def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users, groups and values within 0 and 100: a person is in up to six groups."""
    rng = np.random.default_rng(0)
    home = rng.integers(0, GROUPS, (PEOPLE, 6))
    users = rng.integers(0, PEOPLE, ROWS)
    groups = home[users, rng.integers(0, rng.integers(1, 7, PEOPLE)[users])]
    level = rng.normal(0, 8, PEOPLE)[users] + rng.normal(50, 5, GROUPS)[groups]
    return users, groups, np.clip(level + rng.normal(0, 12, ROWS), 0, 100)


def ellipsum(users, groups, values):
    from ellipsum import Ellipsoid, PrivateGroupMean

    region = Ellipsoid.ball(50.0, center=[50])
    mean = PrivateGroupMean(region, keys=range(20), max_keys=4, epsilon=1, delta=1e-6)
    return mean(values[:, None], key=groups, user=users).value[:, 0]


def opendp(users, groups, values):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.LazyFrame({"user": users, "group": groups, "value": values}),
        privacy_unit=dp.unit_of(contributions=1, identifier="user"),
        privacy_loss=dp.loss_of(rho=RHO),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=[], max_length=200_000)],
    )
    found = (
        context.query()
        .truncate_per_group(10, by=["group"])
        .truncate_num_groups(4, by=["group"], keep="first")
        .group_by("group")
        .agg(dp.len(), pl.col("value").fill_nan(50.0).fill_null(50.0).dp.sum((0.0, 100.0)))
        .with_keys(pl.LazyFrame({"group": np.arange(20)}))
        .release()
        .collect()
        .sort("group")
    )
    return (found["value"] / found["len"]).to_numpy()


def diffprivlib(users, groups, values):
    import pandas as pd
    from diffprivlib.tools import mean

    frame = pd.DataFrame({"user": users, "group": groups, "value": values})
    one = frame.groupby(["user", "group"], as_index=False)["value"].mean()
    one = one.sample(frac=1).groupby("user").head(4)  # by hand: nothing checks it
    return np.array(
        [mean(one["value"][one["group"] == g], epsilon=1 / 4, bounds=(0, 100)) for g in range(20)]
    )


def pipeline_dp(users, groups, values):
    import pipeline_dp as pdp

    accountant = pdp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    params = pdp.AggregateParams(
        metrics=[pdp.Metrics.MEAN],
        noise_kind=pdp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=4,
        max_contributions_per_partition=10,
        min_value=0,
        max_value=100,
    )
    extractors = pdp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    rows = list(zip(users.tolist(), groups.tolist(), values.tolist(), strict=True))
    found = engine.aggregate(rows, params, extractors, public_partitions=list(range(20)))
    accountant.compute_budgets()
    means = {group: metrics.mean for group, metrics in found}
    return np.array([means[group] for group in range(20)])


def tmlt(users, groups, values):
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        QueryBuilder,
        RhoZCDPBudget,
        Session,
    )  # fmt: skip

    frame = pd.DataFrame({"user": users, "group": groups, "value": values})
    settings = {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": tempfile.mkdtemp()}
    spark = SparkSession.builder.config(map=settings).getOrCreate()
    session = Session.from_dataframe(
        privacy_budget=RhoZCDPBudget(RHO),
        source_id="rows",
        dataframe=spark.createDataFrame(frame),
        protected_change=AddRowsWithID("user"),
    )
    query = (
        QueryBuilder("rows")
        .enforce(MaxGroupsPerID("group", 4))
        .enforce(MaxRowsPerGroupPerID("group", 10))
        .groupby(KeySet.from_dict({"group": list(range(20))}))
        .average("value", 0.0, 100.0, name="mean")
    )
    found = session.evaluate(query, RhoZCDPBudget(RHO)).toPandas().sort_values("group")
    return found["mean"].to_numpy()


PEERS: dict[str, Callable[..., np.ndarray]] = {
    "ellipsum": ellipsum, "opendp": opendp, "diffprivlib": diffprivlib,
    "pipeline_dp": pipeline_dp, "tmlt": tmlt,
}  # fmt: skip
DISTRIBUTION = {"pipeline_dp": "pipeline-dp", "tmlt": "tmlt.analytics"}


def lines_of(function: Callable[..., object]) -> int:
    """Statements' lines as they are written, without the imports."""
    body = ast.parse(inspect.getsource(function)).body[0].body
    plain = [part for part in body if not isinstance(part, (ast.Import, ast.ImportFrom))]
    return sum(part.end_lineno - part.lineno + 1 for part in plain)


def row(name: str) -> str:
    """A row of the table."""
    importlib.import_module(name)
    users, groups, values = table()
    truth = np.bincount(groups, values, GROUPS) / np.bincount(groups, minlength=GROUPS)
    errors, seconds = [], []
    for _ in range(RUNS):
        start = time.perf_counter()
        found = PEERS[name](users, groups, values)
        seconds.append(time.perf_counter() - start)
        errors.append(found - truth)
    error = float(np.sqrt(np.mean(np.square(errors))))
    version = importlib.metadata.version(DISTRIBUTION.get(name, name))
    label = f"{DISTRIBUTION.get(name, name)} {version}"
    return f"| {label} | {lines_of(PEERS[name])} | {error:.2f} | {min(seconds[1:]):.2f} s |"


def main(names: list[str]) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    print("| library | lines | error | time |\n|---|---|---|---|")
    for name in names or list(PEERS):
        try:
            print(row(name), flush=True)
        except ImportError as error:
            print(f"{name} cannot be imported here: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
