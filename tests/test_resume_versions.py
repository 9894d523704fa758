"""What decodes the files of a job is a part of it: a place is a number of its blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ellipsum import Budget, CheckpointError, PrivateGroupMean, open_rows
from ellipsum.jobs import resumable
from killed_jobs import REGION, make_files, mechanism

pytestmark = pytest.mark.usefixtures("without_rest")

FILES = ("0.parquet", "1.arrow", "2.csv")


@pytest.mark.parametrize("kind", ["sum", "plan"])
@pytest.mark.parametrize("name", FILES)
def test_another_pyarrow_does_not_go_on(memory_path, monkeypatch, name, kind):
    make_files(memory_path)
    path, budget = memory_path / "job.ck", Budget(mu=1)

    def run():
        rows = open_rows(memory_path / name)
        return mechanism(kind)(rows, resume=path, budget=budget)

    first, kept, known = run(), path.read_bytes(), pa.__version__
    with monkeypatch.context() as patch:
        patch.setattr(pa, "__version__", "99.9")
        with pytest.raises(CheckpointError, match=f"with pyarrow {known}, and 99.9 .*: go on with"):
            run()
    assert path.read_bytes() == kept
    assert (run().value == first.value).all() and len(budget.entries) == 1


def test_groups_are_bound_to_it_and_files_that_numpy_wrote_are_not(memory_path, monkeypatch):
    rows, groups = np.arange(40.0).reshape(20, 2) % 3, np.arange(20) % 2
    table = {"a": rows[:, 0], "b": rows[:, 1], "g": groups}
    np.savez(memory_path / "rows.npz", **table)
    pq.write_table(pa.table(table), memory_path / "rows.parquet")

    def run(name):
        data, path = open_rows(memory_path / name, ["a", "b"], by=["g"]), memory_path / f"{name}.ck"
        return PrivateGroupMean(REGION, keys=[0, 1], mu=0.5)(data, key="g", resume=path)

    first = run("rows.npz")
    run("rows.parquet")
    monkeypatch.setattr(pa, "__version__", "99.9")
    assert (run("rows.npz").integers == first.integers).all()
    with pytest.raises(CheckpointError, match="begun with pyarrow"):
        run("rows.parquet")


def test_a_job_begun_before_it_was_bound_is_refused_as_one_of_another_version(
    memory_path, monkeypatch
):
    make_files(memory_path)
    rows, path = open_rows(memory_path / FILES[0]), memory_path / "job.ck"
    with monkeypatch.context() as patch:
        patch.setattr(resumable, "decoder_of", lambda rows: {})
        mechanism("sum")(rows, resume=path)
    with pytest.raises(CheckpointError, match="begun by another version of the package"):
        mechanism("sum")(rows, resume=path)
