"""Spark in local mode: the same bytes for any partitions, after retries and killed workers."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys

import numpy as np
import pytest

from doc_pages import ROOT, run_page

pytest.importorskip("pyspark", reason="PySpark is not installed")
if shutil.which("java") is None:
    pytest.skip("Java is not installed", allow_module_level=True)

import pyarrow as pa

from ellipsum import CheckpointError, ExactSum, PrivateCounts, PrivateGroupMean, PrivateMean
from ellipsum.engines import spark as spark_module
from ellipsum.engines.engine_rows import EngineError
from ellipsum.engines.spark import SparkRows, exact_sum
from engine_cases import (
    REGION,
    D,
    assert_resumes,
    assert_same_groups,
    assert_same_groups_of_users,
    assert_same_passes,
    assert_same_releases,
    assert_same_users,
    labelled_table,
    odd_rows,
    want,
    withheld,
)

# PySpark 4.3 says so of pandas 3, which it needs for nothing here.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support")

COLUMNS = ["a", "b.c", "`d"]


@pytest.fixture(scope="module")
def spark():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "300",
    }
    builder = SparkSession.builder.master("local[2,4]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def dying_first(marks):
    """What ends a worker at the first attempt of its partition; sent by value."""

    def die(when):
        from pyspark import TaskContext

        context = TaskContext.get()
        if context.attemptNumber() == 0:
            open(f"{marks}/{when} {context.partitionId()}", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)

    return die


@pytest.fixture(scope="module")
def frame(spark):
    """Odd rows as three columns."""
    rows = odd_rows()
    table = pa.table(dict(zip(COLUMNS, rows.T, strict=True)))
    return spark.createDataFrame(table).repartition(3).cache()


def test_every_pass_gives_the_same_integers_as_one_array(frame):
    assert_same_passes(SparkRows(frame), odd_rows())


def test_a_plan_and_estimates_give_the_same_releases(frame):
    assert_same_releases(SparkRows(frame), odd_rows())


def test_partitions_and_trees_change_no_byte(frame):
    rows = odd_rows()
    assert exact_sum(frame.repartition(7), REGION).to_bytes() == want(rows)
    assert exact_sum(frame.coalesce(1), REGION, merge_tasks=2).to_bytes() == want(rows)
    assert exact_sum(frame.repartition(9), REGION, merge_tasks=2).to_bytes() == want(rows)
    chosen = exact_sum(frame, REGION, columns=COLUMNS[::-1])
    assert chosen.to_bytes() == want(rows[:, ::-1])


def test_arrays_nulls_and_text(spark):
    records = [([1.0, 2.0, 3.0],), ([4.0, None, 6.0],), (None,), ([1.0],), ([7.0, 8.0, 9.0],)]
    lists = spark.createDataFrame(records, "v array<double>")
    nan = np.nan
    rows = np.array([[1, 2, 3], [4, nan, 6], [nan] * 3, [nan] * 3, [7, 8, 9]])
    assert exact_sum(lists, REGION).to_bytes() == want(rows)
    assert SparkRows(lists).count_rows() == 5
    text = spark.createDataFrame(
        [("1", 2, True), ("x4711", None, False)], "a string, b int, c boolean"
    )
    assert exact_sum(text, REGION).to_bytes() == want(np.array([[1.0, 2, 1], [nan, nan, 0]]))


def test_no_row_and_no_partition(spark):
    none = spark.createDataFrame([], "a double, b double, c double")
    assert exact_sum(none, REGION).to_bytes() == want(np.empty((0, D)))
    with pytest.raises(ValueError, match="no rows"):
        PrivateMean(REGION, mu=1)(SparkRows(none))


def test_a_killed_worker_changes_no_byte(frame, tmp_path):
    """Every partition's first attempt dies when its rows are through, and is run again."""
    marks = str(tmp_path)
    die = dying_first(marks)

    def die_once(batches):
        yield from batches
        die("part")

    plain = frame.toDF("a", "b", "c")
    dying = plain.mapInArrow(die_once, plain.schema)
    assert exact_sum(dying, REGION).to_bytes() == want(odd_rows())
    assert len(os.listdir(marks)) == 3


def labelled(spark, users):
    """The labelled table as a DataFrame of three partitions, and as it is here."""
    table = labelled_table(users)
    frame = spark.createDataFrame(table).repartition(3).cache()
    return frame, table, lambda columns, by: SparkRows(frame, columns, by=by)


def test_groups_have_the_bytes_of_one_table(spark):
    _, table, make = labelled(spark, "text")
    assert_same_groups(make, table)


@pytest.mark.parametrize("users", ["integer", "uuid"])
def test_groups_of_users_have_the_bytes_of_one_table(spark, users):
    _, table, make = labelled(spark, users)
    assert_same_groups_of_users(make, table)


def test_users_have_the_bits_of_one_table(spark):
    _, table, make = labelled(spark, "text")
    assert_same_users(make, table)


@pytest.mark.parametrize("users", ["bytes", "double"])
def test_users_of_any_type_are_those_of_one_table(spark, users):
    """Zeros of either sign are one user here: Spark's own hash is not asked."""
    frame, table, _ = labelled(spark, users)
    mean = PrivateMean(REGION, mu=1.0, by="user")
    here = mean(table.drop_columns("store"), seed=1)
    for rows in (frame, frame.repartition(7), frame.coalesce(1)):
        for merge_tasks in (None, 2):
            far = mean(SparkRows(rows, list("abc"), by="user", merge_tasks=merge_tasks), seed=1)
            assert (far.integers == here.integers).all() and far.n == here.n


def test_a_killed_worker_changes_no_users_row(spark, tmp_path, monkeypatch):
    """First attempts die before the shuffle and behind it, and are run again."""
    frame, table, _ = labelled(spark, "integer")
    marks, columns = str(tmp_path), ["a", "b", "c"]
    die = dying_first(marks)

    def die_once(batches):
        yield from batches
        die("before")

    split = spark_module._on_pieces

    def on_pieces(task):
        run = split(task)

        def dying(batches):
            yield from run(batches)
            die("behind")

        return dying

    monkeypatch.setattr(spark_module, "_on_pieces", on_pieces)
    rows = SparkRows(frame.mapInArrow(die_once, frame.schema), columns, by=["store", "user"])
    sums = PrivateGroupMean(REGION, epsilon=1.0, delta=1e-4, max_keys=2)
    total = sums.exact_sum(rows, key="store", user="user")
    assert total.to_bytes() == sums.exact_sum(table, key="store", user="user").to_bytes()
    seen = sorted(os.listdir(marks))
    assert sum("before" in name for name in seen) == 3 and any("behind" in n for n in seen)


def test_labels_of_other_types_and_columns_that_come_twice_are_named(spark):
    odd = spark.createDataFrame([(1.0, True)], "a double, gone boolean")
    with pytest.raises(TypeError, match=r"'gone'.*integers, text or bytes"):
        SparkRows(odd, ["a"], by="gone")
    with pytest.raises(ValueError, match="'a' comes twice"):
        SparkRows(odd, ["a"], by="a")
    with pytest.raises(ValueError, match="no column 'x'"):
        SparkRows(odd, ["a"], by=["x"])
    keys = spark.createDataFrame([(1.0, "secret4711")], "a double, key string")
    with pytest.raises(EngineError, match="another type than the column of keys") as caught:
        PrivateCounts(keys=[1], mu=1)(SparkRows(keys, [], by="key"), key="key")
    assert withheld(caught.value, "4711")


def test_jobs_go_on_and_other_files_of_as_many_rows_are_refused(spark, tmp_path):
    def make(table, columns, by):
        return SparkRows(spark.createDataFrame(table).repartition(3), columns, by=by)

    assert_resumes(make, labelled_table("text"), tmp_path)
    mean, folder = PrivateMean(REGION, mu=1.0), str(tmp_path / "rows")
    table = labelled_table("text").select(["a", "b", "c"])
    spark.createDataFrame(table).write.parquet(folder)
    first = mean(SparkRows(spark.read.parquet(folder)), resume=tmp_path / "job.ck")
    again = mean(SparkRows(spark.read.parquet(folder)), resume=tmp_path / "job.ck")
    assert (first.integers == again.integers).all()
    spark.createDataFrame(table).write.mode("overwrite").parquet(folder)
    with pytest.raises(CheckpointError, match=r"rows of SparkRows .* changed"):
        mean(SparkRows(spark.read.parquet(folder)), resume=tmp_path / "job.ck")
    floats = spark.read.parquet(folder).selectExpr("float(a) a", "b", "c")
    mean(SparkRows(floats), resume=tmp_path / "floats.ck")
    with pytest.raises(CheckpointError, match=r"rows of SparkRows .* changed"):
        mean(SparkRows(spark.read.parquet(folder)), resume=tmp_path / "floats.ck")


def test_a_cast_that_fails_is_not_quoted(spark, caplog):
    text = spark.createDataFrame([("1",), ("secret4711",)], "a string")
    failing = text.selectExpr("cast(a as double) a", "1.0D b", "1.0D c")
    logged = []
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        handler = logging.Handler()
        handler.emit = logged.append
        logging.getLogger(name).addHandler(handler)
    for job in (lambda: exact_sum(failing, REGION), lambda: SparkRows(failing).exact_sum(REGION)):
        with pytest.raises(EngineError, match="CAST_INVALID_INPUT") as caught:
            job()
        assert withheld(caught.value, "4711")
    assert not logged and "4711" not in caplog.text


def test_a_frame_handed_straight_on_is_refused_before_a_row_moves(frame):
    for use in (PrivateMean(REGION, mu=1), ExactSum(REGION).add):
        with pytest.raises(TypeError, match="SparkRows"):
            use(frame)


def test_columns_that_are_no_numbers_are_named(spark):
    odd = spark.createDataFrame([(b"4711", [1.0], 1.0)], "a binary, b array<double>, c double")
    with pytest.raises(TypeError, match=r"'a'.*binary"):
        SparkRows(odd)
    with pytest.raises(TypeError, match=r"'b'.*alone"):
        SparkRows(odd, ["b", "c"])
    with pytest.raises(ValueError, match="no column 'x'"):
        SparkRows(odd, ["x"])
    with pytest.raises(ValueError, match="3"):
        exact_sum(odd, REGION, ["c"])
    with pytest.raises(TypeError, match="Spark DataFrame"):
        SparkRows(odd_rows())


def test_the_guide_prints_what_it_shows(spark):
    for wrong in run_page(ROOT / "docs/guides/engines/spark.md"):
        pytest.fail(f"line {wrong.block.line} shows\n{wrong.shown}\nbut prints\n{wrong.printed}")
