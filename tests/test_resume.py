"""Jobs that survive: kills at every step, full disks, changed files, two runs at a time."""

from __future__ import annotations

import errno
import os
import signal
import stat
import threading

import numpy as np
import pytest

from ellipsum import (
    Budget,
    Checkpoint,
    CheckpointError,
    ExactSum,
    GaussianShape,
    PrivateMean,
    open_rows,
)
from ellipsum.cli import main
from killed_jobs import REGION, check, make_files, mechanism, release, run_all

pytestmark = pytest.mark.usefixtures("without_rest")

#: Calls of a run, and which of them are the step at which a run is killed: every one of a sum;
#: of the others some up to the last, and every one by ``killed_jobs.py steps``.
STEPS = {
    **{("sum", 1): range(1, 42), ("sum", 2): range(1, 77, 5), ("plan", 1): range(1, 62, 4)},
    **{("users", 1): range(1, 300, 17), ("users", 2): range(5, 300, 43)},
    ("users' plan", 1): range(1, 62, 7),
    **{("groups", 1): range(1, 51, 4), ("groups", 2): range(3, 84, 9)},
    **{("users' groups", 1): range(1, 51, 6), ("users' groups", 2): range(4, 50, 11)},
    **{("counted groups", 1): range(2, 38, 7), ("users' counted groups", 2): range(2, 50, 9)},
}


@pytest.fixture
def job(memory_path):
    """A folder with the files of a job, and the rows in them."""
    return memory_path, make_files(memory_path)


def rows_of(folder):
    return open_rows([folder / name for name in ("0.parquet", "1.arrow", "2.csv")])


# ---- killed ------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "jobs"), STEPS)
def test_a_kill_at_any_step_loses_nothing_and_counts_nothing_twice(memory_path, kind, jobs):
    """Killed at its k-th write, sync, rename, removal or creation, and then run again."""
    tasks = []
    for step in STEPS[kind, jobs]:
        folder = memory_path / str(step)
        folder.mkdir()
        rows = make_files(folder, kind)
        tasks += [(folder, kind, jobs, step, step % 5 / 4), (folder, kind, 1, 0, 0.0)]
    tasks += [tasks[-1]]  # one more run of the last, and of all others below
    ends = run_all(tasks)
    assert ends[:-1:2].count(signal.SIGKILL) >= len(STEPS[kind, jobs]) * 3 // 4
    assert set(ends[:-1:2]) <= {0, signal.SIGKILL} and set(ends[1::2]) == {0}
    for folder, *_ in tasks[::2]:
        release(folder, kind, 1)
        check(folder, kind, rows)


def test_a_run_that_goes_on_reads_only_what_is_left(job, monkeypatch):
    folder, rows = job
    added = []
    add = ExactSum.add

    def counted(self, batch):
        added.append(len(batch))
        if len(added) == 12 and kill:
            raise KeyboardInterrupt
        return add(self, batch)

    monkeypatch.setattr(ExactSum, "add", counted)
    monkeypatch.setattr("ellipsum.rows.parquet_file.PART_BYTES", 1 << 11)
    kill = True
    with pytest.raises(KeyboardInterrupt):
        release(folder, "sum", 1)
    first, kill = sum(added[:-1]), False
    added.clear()
    release(folder, "sum", 1)
    assert first + sum(added) < len(rows) + 700  # what was done since the last checkpoint
    assert first > 1000
    added.clear()
    release(folder, "sum", 1)
    assert added == []
    check(folder, "sum", rows)


def test_a_slow_disk_keeps_the_newest_state_in_the_end(tmp_path, monkeypatch):
    """What was asked for while a write took its time is written after it: the last of it."""
    ready, states = threading.Event(), []
    write = Checkpoint.write

    def slow(self, body):
        ready.wait()
        states.append(body)
        write(self, body)

    monkeypatch.setattr(Checkpoint, "write", slow)
    binding = {"inputs": []}
    with pytest.raises(KeyboardInterrupt), Checkpoint(tmp_path / "job.ck").opened(binding) as job:
        for k in range(5):
            job.blobs["sum"] = bytes([k])
            job.save_soon()
        ready.set()
        raise KeyboardInterrupt
    assert len(states) == 2  # the first, and the newest
    with Checkpoint(tmp_path / "job.ck").opened(binding) as job:
        assert job.blobs["sum"] == bytes([4])


@pytest.mark.parametrize("name", ["0.parquet", "1.arrow", "2.csv", "3.npy", "4.arrows"])
def test_every_format_is_read_on_from_every_place(job, name):
    import pyarrow as pa

    folder, rows = job
    np.save(folder / "3.npy", rows)
    with pa.ipc.new_stream(folder / "4.arrows", pa.schema([("a", "f8"), ("b", "f8")])) as file:
        for part in np.array_split(rows, 5):
            file.write_table(pa.table({"a": part[:, 0], "b": part[:, 1]}))
    with pytest.MonkeyPatch.context() as patch:
        for module in (
            "rows.parquet_file.PART_BYTES",
            "rows.numpy_file.BLOCK_BYTES",
            "rows.csv_chunks.CHUNK_BYTES",
        ):
            patch.setattr(f"ellipsum.{module}", 1 << 12)
        (source,) = open_rows(folder / name).splits(1, 2)
        whole = [(np.asarray(block), place) for (block, _), place in source.labelled_from(2)]
        assert len(whole) > 2
        all_rows = np.concatenate([block for block, _ in whole])
        np.testing.assert_array_equal(all_rows, np.concatenate(list(open_rows(folder / name))))
        done = 0
        for block, place in whole:
            done += len(block)
            rest = [np.asarray(block) for (block, _), _ in source.labelled_from(2, place)]
            left = np.concatenate([np.empty((0, 2)), *rest])
            np.testing.assert_array_equal(left, all_rows[done:])


# ---- refused -----------------------------------------------------------------------------


def test_a_full_disk_at_any_write_is_a_clear_error_and_loses_nothing(job, monkeypatch):
    folder, rows = job
    monkeypatch.setattr("ellipsum.rows.parquet_file.PART_BYTES", 1 << 11)
    real = os.write
    step = 0
    while True:
        left = [step]

        def full(fd, data, left=left):
            left[0] -= 1
            if left[0] == -1:
                return real(fd, data[: len(data) // 2])
            if left[0] < -1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(fd, data)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            try:
                release(folder, "sum", 1)
                break
            except ValueError as error:
                assert "No space left on device" in str(error)
        assert not (folder / "job.ck.part").exists()
        step += 1
    assert step > 2
    release(folder, "sum", 1)
    check(folder, "sum", rows)


def test_changed_files_and_other_jobs_are_refused(job):
    folder, _ = job
    release(folder, "sum", 1)
    before = (folder / "job.ck").read_bytes()
    data = rows_of(folder)
    for other, what in [
        (PrivateMean(REGION, mu=0.8), "budget"),
        (mechanism("plan"), "region"),
        (PrivateMean(REGION, mu=0.9, neighbors="add-remove"), "budget"),
    ]:
        with pytest.raises(CheckpointError, match=f"of another job .*{what}"):
            other(data, resume=folder / "job.ck")
    with pytest.raises(CheckpointError, match="the list of files changed"):
        mechanism("sum")(open_rows(folder / "0.parquet"), resume=folder / "job.ck")
    facts = os.stat(folder / "2.csv")
    os.utime(folder / "2.csv", ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    with pytest.raises(CheckpointError, match=r"2\.csv changed: discard it"):
        release(folder, "sum", 1)
    assert (folder / "job.ck").read_bytes() == before


@pytest.mark.parametrize("kind", ["sum", "plan"])
def test_a_file_that_changes_while_it_is_read_is_refused(job, monkeypatch, kind):
    """By the job itself: also one that an earlier run has read, which this one does not open."""
    folder, _ = job
    monkeypatch.setattr("ellipsum.rows.sources.Source._check_facts", lambda source: None)
    total, add = [0], ExactSum.add
    from ellipsum.adaptive.passes import Passes

    def touched(*_):
        os.utime(folder / "2.csv", ns=(1, total[0]))
        total[0] += 1

    if kind == "sum":
        monkeypatch.setattr(ExactSum, "add", lambda s, b: (touched(), add(s, b))[1])
    else:
        halves = Passes.halves
        monkeypatch.setattr(Passes, "halves", lambda *a: (touched(), halves(*a))[1])
    with pytest.raises(CheckpointError, match=r"2\.csv changed while it was read"):
        release(folder, kind, 1)
    assert kind == "plan" or Budget(path=folder / "job.ledger").entries == ()


def test_two_runs_on_one_checkpoint_are_refused(job):
    folder, rows = job
    checkpoint = Checkpoint(folder / "job.ck")
    errors: list[str] = []

    def other() -> None:
        for use in (lambda: release(folder, "sum", 1), checkpoint.discard):
            try:
                use()
            except CheckpointError as error:
                errors.append(str(error))

    with checkpoint.opened({"inputs": []}):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(errors) == 2 and all("in use by another run" in text for text in errors)
    checkpoint.discard()
    release(folder, "sum", 1)
    release(folder, "sum", 1)
    check(folder, "sum", rows)


def test_what_is_not_files_is_refused(job, tmp_path):
    _, rows = job
    for data in (rows, iter([rows]), ExactSum(REGION).add(rows)):
        with pytest.raises(TypeError, match="resume and jobs need files"):
            mechanism("sum")(data, resume=tmp_path / "job.ck")
    with pytest.raises(TypeError, match="resume and jobs need files"):
        mechanism("sum")(rows, jobs=2)
    with pytest.raises(ValueError, match="resume or seed"):
        mechanism("sum")(rows_of(job[0]), resume=tmp_path / "job.ck", seed=1)
    assert not (tmp_path / "job.ck").exists()


# ---- secret ------------------------------------------------------------------------------


def test_the_file_is_its_owners_alone_and_gone_when_discarded(job):
    folder, _ = job
    release(folder, "sum", 1)
    path = folder / "job.ck"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    os.chmod(path, 0o640)
    with pytest.raises(CheckpointError, match="may be read by others"):
        release(folder, "sum", 1)
    os.chmod(path, 0o600)
    Checkpoint(path).discard()
    assert not [name for name in os.listdir(folder) if name.startswith("job.ck")]
    Checkpoint(path).discard()
    path.symlink_to(folder / "0.parquet")
    with pytest.raises(CheckpointError, match="cannot be read"):
        release(folder, "sum", 1)


def test_nothing_that_is_printed_holds_the_key_or_a_sum(job, monkeypatch):
    folder, _ = job
    seen = []
    import ellipsum.jobs.resumable as resumable

    made = resumable.sum_of_files
    monkeypatch.setattr(
        "ellipsum.jobs.resumable.sum_of_files", lambda *a, **k: (seen.append(a), made(*a, **k))[1]
    )
    release(folder, "sum", 1)
    job_held = seen[0][2]
    texts = [repr(job_held), repr(Checkpoint(folder / "job.ck")), repr(seen[0])]
    kept = Checkpoint(folder / "job.ck")._read()
    for text in texts:
        assert job_held.root.hex() not in text and repr(job_held.root)[2:-1] not in text
    assert "secret" in texts[0] and b"job.ck" not in kept
    bad = bytearray(kept)
    bad[-40] ^= 1
    (folder / "job.ck").write_bytes(bad)
    with pytest.raises(CheckpointError, match=r"^\S*job\.ck is damaged: discard it \(del[\w ]*\)$"):
        release(folder, "sum", 1)


def test_an_encrypted_checkpoint_shows_nothing_and_needs_its_key(job):
    pytest.importorskip("cryptography")
    folder, _ = job
    key = bytes(range(32))
    first = release(folder, "sum", 1, key)
    kept = (folder / "job.ck").read_bytes()
    assert b"parquet" not in kept and b"mean" not in kept
    assert (release(folder, "sum", 1, key).integers == first.integers).all()
    with pytest.raises(CheckpointError, match="is encrypted: give its key"):
        release(folder, "sum", 1)
    with pytest.raises(CheckpointError, match="of another key"):
        release(folder, "sum", 1, bytes(32))
    for at in range(0, len(kept), 7):
        bad = bytearray(kept)
        bad[at] ^= 1
        (folder / "job.ck").write_bytes(bad)
        with pytest.raises(CheckpointError):
            release(folder, "sum", 1, key)


# ---- the rest ------------------------------------------------------------------------------


def test_a_shape_and_both_neighbours_go_on_too(job):
    folder, rows = job
    shape = PrivateMean(GaussianShape([1.0, 1.0]), mu=0.5)
    counted = PrivateMean(REGION, mu=0.5, neighbors="add-remove")
    for name, mean in {"a": shape, "b": counted}.items():
        first, second = (mean(rows_of(folder), resume=folder / name, jobs=2) for _ in range(2))
        assert (first.integers == second.integers).all() and first.n == second.n
        assert first.private and abs(first.n - len(rows)) < 20
    assert shape(rows_of(folder), resume=folder / "a").integers.tolist() != (
        shape(rows_of(folder)).integers.tolist()
    )


def test_jobs_alone_give_the_release_of_one(job):
    folder, _ = job
    one, two = (mechanism("sum")(rows_of(folder), jobs=jobs, seed=3) for jobs in (1, 3))
    assert (one.integers == two.integers).all()
    with pytest.raises(ValueError, match="jobs must be at least 1"):
        mechanism("sum")(rows_of(folder), jobs=0)


def test_an_error_in_one_file_ends_the_others(job):
    folder, _ = job
    data = rows_of(folder)
    whole = (folder / "1.arrow").read_bytes()
    (folder / "1.arrow").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(OSError, match=r"1\.arrow has changed since"):
        mechanism("sum")(data, jobs=3)


def test_the_command_line_goes_on_and_repeats_the_release(job, capsys, monkeypatch):
    folder, _ = job
    monkeypatch.chdir(folder)
    (folder / "key").write_bytes(bytes(32))
    files = ["mean", "0.parquet", "1.arrow", "2.csv", "--mu", "0.5", "--json"]
    for shape in (["--ball", "3", "--jobs", "2"], ["--bounds", "-9,9"]):
        assert main(["ledger", "create", f"{len(shape)}.ledger", "--mu", "1"]) == 0
        argv = [*files, *shape, "--resume", "a.ck", "--ledger", f"{len(shape)}.ledger"]
        capsys.readouterr()
        told = []
        for more in ([], [], ["--discard"]):
            assert main([*argv, *more]) == 0
            told.append(capsys.readouterr().out)
        assert told[0] == told[1] == told[2]
        assert not (folder / "a.ck").exists()
        assert main([*argv, "--resume-key", "key"]) == 0
        assert capsys.readouterr().out != told[0]
        assert len(Budget(path=f"{len(shape)}.ledger").entries) == 2
        assert main(argv) == 6
        assert "is encrypted: give its key" in capsys.readouterr().err
        Checkpoint("a.ck").discard()
    for more, code, message in [
        (["--discard"], 2, "goes with --resume"),
        (["--resume-key", "key"], 2, "goes with --resume"),
        (["--resume", "a.ck", "--resume-key", "none"], 3, "cannot be read"),
        (["--resume", "a.ck", "--resume-key", "2.csv"], 3, "32 bytes"),
        (["--resume", "none/a.ck"], 6, "cannot be made"),
        (["--jobs", "0"], 3, "at least 1"),
        (["--resume", "a.ck", "--seed", "1"], 2, "a key of its own"),
    ]:
        assert main([*files, "--ball", "3", *more]) == code
        assert message in capsys.readouterr().err


def test_a_pass_that_was_made_for_another_frame_is_refused(job):
    """As on a machine whose logarithms differ: the plan would then make a second release."""
    folder, _ = job
    release(folder, "plan", 1)
    checkpoint = Checkpoint(folder / "job.ck")
    held = checkpoint._parsed(checkpoint._read())
    held.blobs["pass 2"] = bytes(32) + held.blobs["pass 2"][32:]
    held.save()
    with pytest.raises(CheckpointError, match="steps are not those of this run"):
        release(folder, "plan", 1)
