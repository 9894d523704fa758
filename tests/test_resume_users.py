"""Jobs of users: what a checkpoint keeps of them, and several files at a time."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum import (
    Budget,
    Checkpoint,
    CheckpointError,
    ExactSum,
    GaussianShape,
    PrivateMean,
    PrivateSum,
    open_rows,
)
from ellipsum.cli import main
from ellipsum.rows import divided
from ellipsum.rows.files import Rows
from killed_jobs import PEOPLE, REGION, make_files

pytestmark = pytest.mark.usefixtures("without_rest")
NAMES = ["0.parquet", "1.arrow", "2.csv"]
USERS = PrivateMean(REGION, mu=0.9, by="u")


@pytest.fixture
def folder(memory_path, monkeypatch):
    """The files of a job, whose rows do not fit the memory that they may take."""
    monkeypatch.setattr(divided, "MEMORY_BYTES", 1 << 13)
    make_files(memory_path, "users")
    return memory_path


def files_in(folder):
    return open_rows([folder / name for name in NAMES], by="u")


def test_a_run_that_goes_on_leaves_out_the_users_that_are_in_the_sum(folder, monkeypatch):
    checkpoint, added, add = Checkpoint(folder / "job.ck"), [], ExactSum.add

    def broken(self, batch):
        if len(added) == 20:
            raise KeyboardInterrupt
        added.append(len(batch))
        return add(self, batch)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ExactSum, "add", broken)
        USERS(files_in(folder), resume=checkpoint)
    kept = checkpoint._parsed(checkpoint._read())
    first, parts = sum(added), kept.facts["parts"]
    assert 0 < first < PEOPLE and 0 < len(parts) < 64 and not kept.facts.get("whole")
    rest = []
    monkeypatch.setattr(
        ExactSum, "add", lambda self, batch: (rest.append(len(batch)), add(self, batch))[1]
    )
    release = USERS(files_in(folder), resume=checkpoint)
    assert first + sum(rest) in (PEOPLE, PEOPLE + added[-1])  # the last part was perhaps not kept
    assert sum(rest) < PEOPLE and release.n == PEOPLE
    root = checkpoint._parsed(checkpoint._read()).root
    whole = USERS(files_in(folder), seed=root)
    assert (release.integers == whole.integers).all()
    monkeypatch.setattr(Rows, "labelled", None)  # nothing is read any more
    assert (USERS(files_in(folder), resume=checkpoint).integers == whole.integers).all()


def test_the_checkpoint_holds_no_row(folder):
    USERS(files_in(folder), resume=folder / "job.ck")
    raw = (folder / "job.ck").read_bytes()
    assert len(raw) < 2000
    for block in files_in(folder).batches(2):
        assert not any(x.tobytes() in raw for x in np.asarray(block, np.float64).ravel())


MECHANISMS = {
    "mean": USERS,
    "sum": PrivateSum(REGION, mu=0.9, by="u", neighbors="add-remove"),
    "statistic": PrivateMean(REGION, mu=0.9, by="u", statistic="sum"),
    "rows": PrivateSum(REGION, mu=0.9, by="u", neighbors="add-remove", max_rows=3),
    "grouped": PrivateMean(REGION, mu=0.9, by="u", grouped=True),
    "shape": PrivateMean(GaussianShape([1.0, 1.0]), mu=0.9, by="u"),
    "plan": PrivateMean(lower=[-9, -9], upper=[9, 9], mu=0.9, by="u"),
}


def bits(release):
    return np.concatenate(getattr(release, "transcript", None) or [release.integers])


@pytest.mark.parametrize("kind", MECHANISMS)
def test_every_kind_repeats_its_release_and_reads_several_files_at_a_time(folder, kind):
    mechanism, budget = MECHANISMS[kind], None
    jobs = 1 if kind == "grouped" else 3
    promise = mechanism.guarantee
    budget = Budget(mu=1, neighbors=promise.neighbors.value, unit=promise.unit)
    first = mechanism(files_in(folder), resume=folder / "job.ck", jobs=jobs, budget=budget)
    again = mechanism(files_in(folder), resume=folder / "job.ck", budget=budget)
    assert (bits(first) == bits(again)).all() and first.private
    assert budget.spent.mu_squared < 0.9  # one entry
    one = mechanism(files_in(folder), seed=5)
    assert (bits(one) == bits(mechanism(files_in(folder), jobs=jobs, seed=5))).all()
    assert (bits(one) != bits(first)).any()


def test_a_job_of_other_users_or_of_rows_is_refused(folder):
    USERS(files_in(folder), resume=folder / "job.ck")
    for kind, what in {"statistic": "users", "grouped": "budget, users", "plan": "region"}.items():
        with pytest.raises(CheckpointError, match=f"of another job .*{what}"):
            MECHANISMS[kind](files_in(folder), resume=folder / "job.ck")
    rows = open_rows([folder / name for name in NAMES], ["a", "b"])
    with pytest.raises(CheckpointError, match="of another job"):
        PrivateMean(REGION, mu=0.9)(rows, resume=folder / "job.ck")


def test_a_job_goes_on_in_the_way_that_it_was_begun(folder):
    """By other users, over a shape that has the same region, or with a line more: refused."""
    with pytest.raises(ValueError, match="users must be a column itself"):
        USERS(open_rows([folder / name for name in NAMES], by=["u"]), users="store")
    shape = MECHANISMS["shape"]
    USERS(files_in(folder), resume=folder / "job.ck")
    region = PrivateMean(shape.region_for(PEOPLE), mu=0.9, by="u")
    region(files_in(folder), resume=folder / "other.ck")
    with pytest.raises(CheckpointError, match=r"of another job .*users"):
        shape(files_in(folder), resume=folder / "other.ck")
    assert region(files_in(folder), resume=folder / "other.ck").n == PEOPLE
    (folder / "x.csv").write_text("f0,f1\n1,2\n3,4\n")
    run, names = PrivateMean(REGION, mu=0.9), ["f0", "f1"]
    run(open_rows(folder / "x.csv", names), resume=folder / "line.ck")
    with pytest.raises(CheckpointError, match=r"of another job .*header"):
        run(open_rows(folder / "x.csv", names, header=False), resume=folder / "line.ck")


def test_a_file_that_changes_before_users_are_counted_is_seen(folder, monkeypatch):
    shape, region_for = MECHANISMS["shape"], PrivateMean._region_for

    def touched(self, data):
        found = region_for(self, data)
        with open(folder / "2.csv", "a") as file:
            file.write("1,2,u0\n")
        return found

    monkeypatch.setattr(PrivateMean, "_region_for", touched)
    with pytest.raises(CheckpointError, match=r"2\.csv changed while it was read"):
        shape(files_in(folder), resume=folder / "job.ck")


def test_a_file_that_changes_while_users_are_matched_is_refused(folder, monkeypatch):
    monkeypatch.setattr("ellipsum.rows.sources.Source._check_facts", lambda source: None)
    add = divided.Divided.add

    def touched(self, *batch):
        with open(folder / "2.csv", "a") as file:
            file.write("1,2,u0\n")
        return add(self, *batch)

    monkeypatch.setattr(divided.Divided, "add", touched)
    budget = Budget(mu=1, unit=USERS.guarantee.unit)
    with pytest.raises(CheckpointError, match=r"2\.csv changed while it was read"):
        USERS(files_in(folder), resume=folder / "job.ck", budget=budget)
    assert budget.spent.mu_squared == 0


def test_users_of_two_types_are_refused_in_files_read_at_a_time_too(tmp_path):
    for k, users in enumerate((np.arange(9), [f"{k}" for k in range(9)])):
        np.savez(tmp_path / f"{k}.npz", a=np.zeros(9), b=np.zeros(9), u=users)
    for jobs in (1, 2):
        with pytest.raises(TypeError, match="another type in a later batch"):
            USERS(open_rows(tmp_path, ["a", "b"], by="u"), jobs=jobs)


def test_what_does_not_go_with_users_is_refused_and_no_label_is_quoted(folder):
    with pytest.raises(ValueError, match="jobs does not go with grouped"):
        MECHANISMS["grouped"](files_in(folder), jobs=2)
    with pytest.raises(TypeError, match="resume and jobs need files"):
        USERS(np.zeros((5, 2)), users=[987654] * 5, resume=folder / "job.ck")
    with pytest.raises(TypeError, match="labels by name") as caught:
        USERS(files_in(folder), users=[987654] * 5)
    assert "987654" not in str(caught.value)


def test_the_command_line_goes_on_with_users(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    argv = ["mean", *NAMES, "--mu", "0.5", "--json", "--user", "u"]
    for shape in (["--ball", "3"], ["--bounds", "-9,9"]):
        told = []
        for more in (["--jobs", "2"], [], ["--discard"]):
            assert main([*argv, *shape, "--resume", "a.ck", *more]) == 0
            told.append(capsys.readouterr().out)
        assert told[0] == told[1] == told[2] and not (folder / "a.ck").exists()
    assert main([*argv, "--ball", "3", "--grouped", "--jobs", "2"]) == 2
    assert "--jobs does not go with --grouped" in capsys.readouterr().err
