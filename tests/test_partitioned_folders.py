"""Folders named ``column=value``, as Hive and Spark write them: no column, or a dataset's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from ellipsum import Ellipsoid, PrivateGroupMean, PrivateMean, open_rows

REGION = Ellipsoid.ball(3.0, d=2)


@pytest.fixture
def folder(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 2))
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1], "year": np.arange(300) % 3 + 2020})
    parts = ds.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
    ds.write_dataset(table, tmp_path / "t", format="parquet", partitioning=parts)
    return tmp_path / "t", table


def test_a_column_of_the_folders_names_is_refused_with_what_reads_it(folder):
    path, _ = folder
    assert open_rows(path).columns == ["a", "b"] and open_rows(path).n == 300
    for known in ({"by": "year"}, {"columns": ["a", "year"]}):
        with pytest.raises(ValueError, match=r"'year' in a folder's name.*partitioning=\"hive\""):
            open_rows(path, **known)
    with pytest.raises(ValueError, match="must have the column 'month'"):
        open_rows(path, by="month")
    lines = "a,b,year\n1,2,2024\n3,4,2024\n"  # one that the files have too is read from them
    (path / "year=2024").mkdir()
    (path / "year=2024/more.csv").write_text(lines)
    assert open_rows(path / "year=2024", by="year").by == ("year",)


def test_a_dataset_has_it_as_key_user_and_coordinate(folder):
    path, table = folder
    dataset = ds.dataset(path, partitioning="hive")
    groups = PrivateGroupMean(REGION, keys=[2020, 2021, 2022], mu=1)
    found = groups.exact_sum(dataset, key="year")
    assert found.to_bytes() == groups.exact_sum(table, key="year").to_bytes()
    assert found.counts().tolist() == [100, 100, 100]
    users = PrivateMean(REGION, mu=1, by="year")
    assert (users(dataset, seed=1).integers == users(table, seed=1).integers).all()
    wide = PrivateMean(Ellipsoid.ball(3000.0, d=3), mu=1)
    assert (wide(dataset, seed=1).integers == wide(table, seed=1).integers).all()
