"""Jobs over rows in an engine: whole passes are kept, and other data never get the same noise."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from ellipsum import (
    Budget,
    Checkpoint,
    CheckpointError,
    GaussianShape,
    PrivateCounts,
    PrivateGroupMean,
    PrivateMean,
    PrivateSum,
    noise,
)
from ellipsum.engines.engine_rows import EngineError, withheld
from ellipsum.jobs import resumable
from engine_cases import BOX, REGION, D, Tables, labelled_table
from killed_jobs import bits, check, make_files, release, run_all

pytestmark = pytest.mark.usefixtures("without_rest")

COLUMNS, TABLE = ["a", "b", "c"], labelled_table("text")
GROUPS = {"epsilon": 5.0, "delta": 1e-4}
#: Mechanism, columns, labels, and what the call names.
JOBS = {
    "mean": (PrivateMean(REGION, mu=0.9), COLUMNS, {}),
    "present": (PrivateMean(REGION, mu=0.9, missing="ignore"), COLUMNS, {}),
    "sum": (PrivateSum(REGION, mu=0.9, neighbors="add-remove"), COLUMNS, {}),
    "shape": (PrivateMean(GaussianShape([1.0] * D), mu=0.9), COLUMNS, {}),
    "plan": (PrivateMean(**BOX, mu=0.9), COLUMNS, {}),
    "counted plan": (PrivateSum(**BOX, mu=0.9, neighbors="add-remove"), COLUMNS, {}),
    "users": (PrivateMean(REGION, mu=0.9, by="user"), COLUMNS, {}),
    "users' plan": (PrivateMean(**BOX, mu=0.9, by="user"), COLUMNS, {}),
    "groups": (PrivateGroupMean(REGION, **GROUPS), COLUMNS, {"key": "store"}),
    "users' groups": (
        PrivateGroupMean(REGION, **GROUPS, max_keys=2, missing="ignore"),
        COLUMNS,
        {"key": "store", "user": "user"},
    ),
    "replaced users": (
        PrivateGroupMean(REGION, mu=0.9, keys=["s1", "s3"], neighbors="replace"),
        COLUMNS,
        {"key": "store", "user": "user"},
    ),
    "counts": (PrivateCounts(**GROUPS), [], {"key": "store"}),
    "users' counts": (PrivateCounts(**GROUPS, max_keys=2), [], {"key": "store", "user": "user"}),
    "bins": (PrivateCounts(edges=[-1.0, 0.0, 3.0], mu=0.9), ["b"], {}),
}
#: Of another number of rows, from which a shape has another region.
REFUSED = r"rows of Tables .* changed|other inputs, region"
#: Passes that say how many rows there are.
COUNTING = {"count_rows", "LabelCount"}


def far(kind, table=TABLE, seed=0):
    """The rows of a job in an engine."""
    _, columns, named = JOBS[kind]
    by = list(named.values()) or ["user"] * ("users" in kind)
    return Tables(table, columns, by, seed)


def run(kind, rows, **more):
    """All integers of a release, step by step."""
    mechanism, _, named = JOBS[kind]
    found = mechanism(rows, **named, **more)
    return getattr(found, "transcript", None) or [bits(found)]


def same(one, other):
    return [list(map(int, step)) for step in one] == [list(map(int, step)) for step in other]


def root_of(path):
    checkpoint = Checkpoint(path)
    return checkpoint._parsed(checkpoint._read()).root


def budget_of(kind):
    mechanism, _, named = JOBS[kind]
    if named or kind in ("counts", "bins"):
        promise = mechanism.guarantee_for(named.get("user"))
        total = {"epsilon": 50, "delta": 1e-2}
    else:
        promise, total = mechanism.guarantee, {"mu": 1}
    return Budget(**total, neighbors=promise.neighbors.value, unit=promise.unit)


@pytest.mark.parametrize("kind", JOBS)
def test_every_kind_repeats_its_release_and_reads_no_pass_again(tmp_path, kind):
    budget, path = budget_of(kind), tmp_path / "job.ck"
    first = run(kind, far(kind), resume=path, budget=budget)
    rows = far(kind, seed=1)  # in other parts
    assert same(run(kind, rows, resume=path, budget=budget), first)
    assert len(budget.entries) == 1
    assert set(rows.passes) <= COUNTING and len(rows.passes) <= 1 + (kind == "shape")
    assert same(run(kind, far(kind), seed=root_of(path)), first)
    assert not same(run(kind, far(kind), resume=tmp_path / "other.ck"), first)


@pytest.mark.parametrize("kind", ["mean", "plan", "counted plan", "users' plan", "users' groups"])
def test_a_driver_that_dies_at_any_pass_goes_on_from_it(tmp_path, kind):
    whole = far(kind)
    run(kind, whole, resume=tmp_path / "whole.ck")
    for died in range(len(whole.passes)):
        rows, path, budget = far(kind), tmp_path / f"{died}.ck", budget_of(kind)

        def dies(rows=rows, died=died):
            if len(rows.passes) == died:
                raise KeyboardInterrupt

        rows.dies = dies
        with pytest.raises(KeyboardInterrupt):
            run(kind, rows, resume=path, budget=budget)
        again = far(kind, seed=2)
        found = run(kind, again, resume=path, budget=budget)
        assert len(rows.passes) == died and len(budget.entries) == 1
        kept = died - 1 if died else 0  # all but the count that each run begins with
        assert len(again.passes) == len(whole.passes) - kept
        assert same(found, run(kind, far(kind), seed=root_of(path)))


@pytest.mark.parametrize("kind", ["far sum", "far plan", "far users", "far users' groups"])
def test_a_killed_process_goes_on(memory_path, kind):
    """At some of the steps; every one of every kind by ``killed_jobs.py steps 13``."""
    tasks = []
    for at in (3, 7, 16):
        folder = memory_path / str(at)
        folder.mkdir()
        rows = make_files(folder, kind)
        tasks += [(folder, kind, 1, at, at % 5 / 4), (folder, kind, 1, 0, 0.0)]
    ends = run_all(tasks)
    assert ends[::2] == [signal.SIGKILL] * 3 and set(ends[1::2]) == {0}
    for folder, *_ in tasks[::2]:
        release(folder, kind, 1)
        check(folder, kind, rows)


@pytest.mark.parametrize("kind", JOBS)
def test_other_numbers_of_rows_are_refused_and_not_quoted(tmp_path, kind):
    run(kind, far(kind), resume=tmp_path / "job.ck")
    for table in (TABLE.slice(1), TABLE.slice(0, 0)):
        with pytest.raises(CheckpointError, match=REFUSED) as caught:
            run(kind, far(kind, table), resume=tmp_path / "job.ck")
        assert not {"1500", "1499"} & set(str(caught.value).split())


def test_what_is_known_of_the_rows_is_the_job_s(tmp_path):
    path = tmp_path / "job.ck"
    run("mean", far("mean"), resume=path)
    other = far("mean")
    other.known = lambda: ["float", "double", "double"]
    with pytest.raises(CheckpointError, match="changed"):
        run("mean", other, resume=path)
    turned = far("mean")
    turned.columns = ["b", "a", "c"]
    with pytest.raises(CheckpointError, match="other columns"):
        run("mean", turned, resume=path)
    with pytest.raises(CheckpointError, match=r"other .*users"):
        run("users", far("users"), resume=path)
    with pytest.raises(CheckpointError, match="other budget"):
        PrivateMean(REGION, mu=0.8)(far("mean"), resume=path)

    class Lakes(Tables):
        pass

    lakes = Lakes(TABLE, COLUMNS)
    with pytest.raises(CheckpointError, match="other engine, inputs"):
        run("mean", lakes, resume=path)
    run("users' counts", far("users' counts"), resume=tmp_path / "counts.ck")
    who = Tables(TABLE, [], ["user", "store"])
    with pytest.raises(CheckpointError, match="changed"):
        run("users' counts", who, resume=tmp_path / "counts.ck")


def drawn_by(monkeypatch, job):
    """The keys of all draws of a job, and what it releases."""
    with monkeypatch.context() as patch:
        keys, drawn = [], noise.rounded_gaussian

        def seen(*known, key, **more):
            keys.append(key)
            return drawn(*known, key=key, **more)

        patch.setattr(noise, "rounded_gaussian", seen)
        return keys, job()


@pytest.mark.parametrize("kind", JOBS)
def test_one_key_over_other_rows_of_the_same_number_has_other_noise(tmp_path, kind, monkeypatch):
    """A checkpoint that is put back as it was before it had a result, and run on other rows: a step
    has the key of the first release only where its result, and all before it, are the same."""
    path, states, write = tmp_path / "job.ck", [], Checkpoint.write

    def keep(self, body):
        write(self, body)
        states.append(path.read_bytes())

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", keep)
        keys, steps = drawn_by(monkeypatch, lambda: run(kind, far(kind), resume=path))
    other, turned = TABLE, np.roll(np.arange(len(TABLE)), 3)
    for k, name in enumerate(TABLE.column_names):
        other = other.set_column(k, name, TABLE[name].take(turned // 3))
    path.write_bytes(states[0])
    more, found = drawn_by(monkeypatch, lambda: run(kind, far(kind, other), resume=path))
    assert root_of(path) == Checkpoint(path)._parsed(states[0]).root
    assert keys and len(set(keys)) == len(keys) and len(set(more)) == len(more)
    shared = set(keys) & set(more)
    alike = [same([a], [b]) for a, b in zip(steps, found, strict=False)].index(False)
    assert shared == (set(keys[:alike]) if "plan" in kind else set()) and alike < 3


def test_rows_that_change_while_they_are_read_are_refused_and_nothing_is_drawn(tmp_path):
    for kind in ("mean", "groups", "counts", "plan"):
        rows, budget = far(kind), budget_of(kind)

        def dies(rows=rows, after=1):
            if len(rows.passes) == after:
                rows.parts = rows.parts[:-1]

        rows.dies = dies
        with pytest.raises(ValueError, match="changed"):
            run(kind, rows, resume=tmp_path / f"{kind}.ck", budget=budget)
        assert not budget.entries


def test_a_job_that_the_engine_did_not_finish_is_run_again(tmp_path):
    rows = far("plan")

    def dies():
        if len(rows.passes) == 3:
            withheld("Tables", lambda: int("4711.5"))

    rows.dies = dies
    with pytest.raises(EngineError) as caught:
        run("plan", rows, resume=tmp_path / "job.ck")
    assert "4711" not in str(caught.value)
    found = run("plan", far("plan"), resume=tmp_path / "job.ck")
    assert same(found, run("plan", far("plan"), seed=root_of(tmp_path / "job.ck")))


def test_the_checkpoint_holds_no_row_and_its_length_does_not_tell_their_number(tmp_path):
    lengths = set()
    for number in (1500, 9):
        path = tmp_path / f"{number}.ck"
        run("mean", far("mean", TABLE.slice(0, number)), resume=path)
        raw = path.read_bytes()
        assert not any(x.tobytes() in raw for x in TABLE["a"].to_numpy()[:number])
        lengths.add(len(raw))
    assert len(lengths) == 1
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_kept_pass_for_another_frame_is_refused(tmp_path, monkeypatch):
    run("plan", far("plan"), resume=tmp_path / "job.ck")
    monkeypatch.setattr(resumable, "_numbers", lambda known: [b"another"])
    with pytest.raises(CheckpointError, match="steps are not those of this run"):
        run("plan", far("plan"), resume=tmp_path / "job.ck")


def test_what_does_not_go_with_an_engine_is_refused(tmp_path):
    for kind in ("mean", "groups"):
        with pytest.raises(TypeError, match="jobs is for files"):
            run(kind, far(kind), jobs=2)
        with pytest.raises(ValueError, match="resume or seed"):
            run(kind, far(kind), resume=tmp_path / "job.ck", seed=1)
    with pytest.raises(TypeError, match="SparkRows"):
        PrivateMean(REGION, mu=1)(np.zeros((5, D)), resume=tmp_path / "job.ck")
    grouped = PrivateMean(REGION, mu=1, by="user", grouped=True)
    with pytest.raises(ValueError, match="two of its parts, and would count twice"):
        grouped(far("users"))
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_beside_the_files_that_an_engine_reads_is_refused(tmp_path):
    rows = far("mean")
    rows.known = lambda: ["double", (tmp_path / "rows in a folder" / "part 1.parquet").as_uri()]
    folder = tmp_path / "rows in a folder"
    folder.mkdir()
    with pytest.raises(CheckpointError, match="lies beside the files that the engine reads"):
        run("mean", rows, resume=folder / "job.ck")
    assert not list(folder.iterdir())
    assert same(
        run("mean", rows, resume=folder / ".job.ck"), run("mean", rows, resume=folder / ".job.ck")
    )
