"""Runs of a resumable job in processes of their own, killed where and when a test says."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ellipsum import (
    Budget,
    Ellipsoid,
    ExactSum,
    PrivateCounts,
    PrivateGroupMean,
    PrivateMean,
    open_rows,
)
from ellipsum.jobs.checkpoint import Checkpoint, Job
from engine_cases import Tables

#: What is killed before it is done, and whether a write may be cut.
CALLS = ("write", "fsync", "replace", "unlink", "open")
REGION = Ellipsoid.ball(3.0, d=2)
EVERY = 1 << 13  # bytes between checkpoints: many of them in a small job
PEOPLE = 300
GROUP_BUDGET = {"epsilon": 20.0, "delta": 1e-6}  # so that every group is named
#: Kinds of jobs, and files at a time, that are killed at random.
KINDS = [("sum", 1), ("sum", 2), ("plan", 1), ("users", 1), ("users", 2), ("users' plan", 1)]
KINDS += [("groups", 1), ("groups", 2), ("users' groups", 1), ("users' groups", 2)]
KINDS += [("counted groups", 1), ("counted groups", 2), ("users' counted groups", 2)]
#: Rows in an engine, of which a checkpoint keeps whole passes.
KINDS += [("far sum", 1), ("far plan", 1), ("far users", 1), ("far users' plan", 1)]
KINDS += [("far groups", 1), ("far users' groups", 1), ("far users' counted groups", 1)]
GROUPS = 7


def labels(kind: str) -> list[str]:
    """The columns that label the rows of a kind of job."""
    return ["g"] * ("groups" in kind) + ["u"] * ("users" in kind)


def mechanism(kind: str) -> Any:
    """One pass, or a plan of several; of rows, or of users; of groups, whose keys are private."""
    if "groups" in kind:
        known: dict[str, Any] = {"max_keys": 2 if "users" in kind else 1, **GROUP_BUDGET}
        return PrivateCounts(**known) if "counted" in kind else PrivateGroupMean(REGION, **known)
    by = "u" if "users" in kind else None
    if "plan" in kind:
        return PrivateMean(lower=[-9, -9], upper=[9, 9], mu=0.9, by=by)
    return PrivateMean(REGION, mu=0.9, by=by)


def make_files(folder: Path, kind: str = "sum") -> np.ndarray:
    """Files of all kinds, in many blocks; returns the rows (of users: one each)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = np.random.default_rng(0).normal(size=(3000, 2))
    users = np.arange(3000) % PEOPLE  # each has rows in every file
    for k, part in enumerate(np.array_split(rows, 3)):
        table = pa.table({"a": part[:, 0], "b": part[:, 1]})
        own = {name: column[1000 * k : 1000 * k + 1000] for name, column in named(kind).items()}
        for name, column in own.items():
            table = table.append_column(name, pa.array(column))
        if k == 0:
            pq.write_table(table, folder / "0.parquet", row_group_size=200)
        elif k == 1:
            with pa.ipc.new_file(folder / "1.arrow", table.schema) as file:
                file.write_table(table, max_chunksize=150)
        else:
            lines = [",".join(table.column_names)]
            for j, row in enumerate(part):
                cells = [f"{x:.17g}" for x in row] + [column[j] for column in own.values()]
                lines.append(",".join(cells))
            (folder / "2.csv").write_text("\n".join(lines) + "\n")
            known = {"delimiter": ",", "skiprows": 1, "usecols": (0, 1)}
            rows[2000:] = np.loadtxt(folder / "2.csv", **known)
    return means(rows, users) if "users" in kind and "groups" not in kind else rows


def named(kind: str) -> dict[str, list[str]]:
    """The labels of the rows; a user is in two groups, or three."""
    users = [f"u{k % PEOPLE}" for k in range(3000)]
    groups = [f"g{(k + k // 700) % GROUPS}" for k in range(3000)]
    return {name: {"u": users, "g": groups}[name] for name in labels(kind)}


def means(rows: np.ndarray, users: np.ndarray) -> np.ndarray:
    """The correctly rounded mean of each user's rows."""
    found = []
    for user in range(PEOPLE):
        own = rows[users == user].T
        found.append([float(sum(map(Fraction, x)) / len(x)) for x in own])
    return np.array(found)


def keywords(kind: str) -> dict[str, str]:
    """Which labels are key and user, where a call is told."""
    groups = "groups" in kind
    return dict(zip(("key", "user"), labels(kind), strict=False)) if groups else {}


def budget_of(folder: Path, kind: str) -> Budget:
    """The ledger that a job draws from."""
    if "groups" in kind:
        unit = mechanism(kind).guarantee_for("u" if "users" in kind else None).unit
        total = {"epsilon": 30, "delta": 1e-5, "neighbors": "add-remove"}
        return Budget(**total, path=folder / "job.ledger", unit=unit)
    return Budget(mu=1, path=folder / "job.ledger", unit=mechanism(kind).guarantee.unit)


def bits(release: Any) -> list[int]:
    """All integers that a release without steps was drawn as."""
    if release.integers is None:  # sizes alone, in steps of 2^-20 users
        return [int(size * (1 << 20)) for size in release.sizes]
    return [int(x) for x in release.integers.ravel()]


def release(folder: Path, kind: str, jobs: int, key: bytes | None = None) -> Any:
    """One run of the job, and what it would publish, in a log that only grows."""
    files = [folder / name for name in ("0.parquet", "1.arrow", "2.csv")]
    rows = far_rows(files, kind) if "far" in kind else open_rows(files, by=labels(kind))
    checkpoint = Checkpoint(folder / "job.ck", every=EVERY, key=key)
    known = {"resume": checkpoint, "jobs": jobs, "budget": budget_of(folder, kind)}
    found = mechanism(kind)(rows, **known, **keywords(kind))
    steps = found.transcript if "plan" in kind else [bits(found)]
    line = json.dumps([[int(x) for x in step] for step in steps]) + "\n"
    with open(folder / "published", "a") as log:
        log.write(line)
    return found


def far_rows(files: list[Path], kind: str) -> Tables:
    """The same rows in an engine."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    first, last = pyarrow.parquet.read_table(files[0]), pyarrow.csv.read_csv(files[2])
    table = pa.concat_tables([first, pa.ipc.open_file(files[1]).read_all(), last])
    return Tables(table, [] if "counted" in kind else ["a", "b"], labels(kind))


def die_at(step: int, share: float) -> None:
    """Kill this process at the step-th call; a write is done in part, and then it is killed."""
    Job.save_soon = Job.save  # so that the steps have one order
    real = {name: getattr(os, name) for name in CALLS}
    left = [step]

    def dying(name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if name == "open" and not (len(args) > 1 and args[1] & (os.O_CREAT | os.O_APPEND)):
                return real[name](*args, **options)  # that of a reader
            left[0] -= 1
            if left[0] == 0:
                if name == "write":
                    real[name](args[0], bytes(args[1])[: int(share * len(args[1]))])
                os.kill(os.getpid(), signal.SIGKILL)
            return real[name](*args, **options)

        return call

    for name in CALLS:
        setattr(os, name, dying(name))


def small_blocks() -> None:
    """Blocks of a few rows, so that a small file has many; a checkpoint for each that asks."""
    from ellipsum.jobs import checkpoint
    from ellipsum.rows import csv_chunks, divided, parquet_file, sources

    checkpoint.REST = 0
    divided.MEMORY_BYTES = 1 << 13  # of users' rows, so that they go to files
    csv_chunks.CHUNK_BYTES = 1 << 11
    parquet_file.PART_BYTES = 1 << 11
    sources.SPLIT_BYTES = 1 << 12  # so that files are read in several parts


def few_parts() -> None:
    """Users' rows in 8 parts, where a run has 64, which are all written alike."""
    from ellipsum.rows import divided

    divided._PARTS = 8


def forked(task: Any) -> int:
    """Run the task in a child, and return the child's id."""
    child = os.fork()
    if child == 0:
        try:
            task()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    return child


def check(folder: Path, kind: str, rows: np.ndarray) -> None:
    """One release, however often it was run; drawn once; of every row, once."""
    found = [json.loads(line) for line in (folder / "published").read_text().splitlines()]
    assert len(found) >= 2 and all(one == found[0] for one in found)
    budget = Budget(path=folder / "job.ledger")
    assert len(budget.entries) == 1
    job = Checkpoint(folder / "job.ck")
    root = job._parsed(job._read()).root
    if "groups" in kind:  # of one table in memory, under the same key
        table = {"a": rows[:, 0], "b": rows[:, 1], **named(kind)}
        again = mechanism(kind)(table, seed=root, **keywords(kind))
        assert len(again.keys) == GROUPS and [bits(again)] == found[0]
        return
    assert budget.spent.mu_squared == Fraction(0.9) ** 2
    of_rows = mechanism("plan" if "plan" in kind else "sum")
    if "plan" in kind:  # without a checkpoint, under the same key
        steps = of_rows(rows, seed=root).transcript
        assert [[int(x) for x in step] for step in steps] == found[0]
    else:
        total = ExactSum(REGION).add(rows)
        noise = of_rows.noise_of(total, root)
        assert [x - n for x, n in zip(found[0][0], noise, strict=True)] == list(total.integers())


def one_after_the_other(tasks: list[Any]) -> list[int]:
    """Each task in a child: how they ended."""
    ends = []
    for folder, kind, jobs, step, share in tasks:

        def task(folder=folder, kind=kind, jobs=jobs, step=step, share=share) -> None:
            if step:
                die_at(step, share)
            release(Path(folder), kind, jobs)

        ends.append(os.waitpid(forked(task), 0)[1])
    return ends


def random_kills(number: int, seed: int) -> None:
    """Jobs that are killed at random times until so many kills are counted; each is checked."""
    draws, kills, done = random.Random(seed), 0, 0
    while kills < number:
        kind, jobs = draws.choice(KINDS)
        with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
            folder = Path(name)
            rows = make_files(folder, kind)
            most = draws.choice([0.05, 0.1, 0.2, 0.4])
            while True:
                child = forked(partial(release, folder, kind, jobs))
                time.sleep(draws.uniform(0, most))
                os.kill(child, signal.SIGKILL)
                end = os.waitpid(child, 0)[1]
                if end == 0:
                    break
                assert end == signal.SIGKILL, end
                kills += 1
                most *= 1.05  # so that it comes to an end on a busy machine
            assert one_after_the_other([(folder, kind, 1, 0, 0.0)]) == [0]
            check(folder, kind, rows)
        done += 1
        print(f"{kills} kills, {done} jobs, each one release of every row once", flush=True)


def every_step(kind: str, jobs: int) -> None:
    """A job of this kind for each step, killed there, until one comes to its end; each is checked.

    Several files at a time come to a step in any order, and some runs end before it: three such
    ends in a row are the end.
    """
    step, kills, ends = 0, 0, 0
    while ends < (1 if jobs == 1 else 3):
        step += 1
        with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
            folder = Path(name)
            rows = make_files(folder, kind)
            tasks = [(folder, kind, jobs, step, step % 5 / 4), *[(folder, kind, 1, 0, 0.0)] * 2]
            killed, *others = one_after_the_other(tasks)
            assert killed in (0, signal.SIGKILL) and others == [0, 0]
            check(folder, kind, rows)
        kills, ends = kills + (killed != 0), 0 if killed else ends + 1
    what = f"{kind}, {jobs} file{'s' * (jobs > 1)} at a time"
    print(f"{what}: killed at each of {kills} steps, one release of every row once", flush=True)


def main() -> None:
    """``[[folder, kind, jobs, step, share], ...]``, ``random KILLS SEED``, or ``steps [FIRST
    [END]]``, of all kinds, or of those numbers of ``KINDS``."""
    import pyarrow.csv  # once, before the children
    import pyarrow.parquet  # noqa: F401

    small_blocks()
    if sys.argv[1] == "random":
        random_kills(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "steps":
        few_parts()
        first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
        end = int(sys.argv[3]) if len(sys.argv) > 3 else None
        for kind, jobs in KINDS[first:end]:
            every_step(kind, jobs)
    else:
        print(json.dumps(one_after_the_other(json.loads(sys.argv[1]))))


def run_all(tasks: list[tuple[Path, str, int, int, float]]) -> list[int]:
    """The exit statuses of runs, in order."""
    text = json.dumps([[str(folder), *rest] for folder, *rest in tasks])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, __file__, text], stdout=subprocess.PIPE, check=True, env=environment
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
