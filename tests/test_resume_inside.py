"""A checkpoint among the files that are read: refused before anything is read or written."""

from __future__ import annotations

import glob
import os

import numpy as np
import pytest

from ellipsum import Checkpoint, CheckpointError, Ellipsoid, GaussianShape, PrivateMean, open_rows
from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main
from ellipsum.rows.files import Rows
from ellipsum.rows.paths import files_named, named_by

REGION = Ellipsoid.ball(3.0, d=2)
MEANS = {
    "region": PrivateMean(REGION, mu=0.9),
    "shape": PrivateMean(GaussianShape([1.0, 1.0]), mu=0.9),
    "plan": PrivateMean(lower=[-9, -9], upper=[9, 9], mu=0.9),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/2024").mkdir(parents=True)
    rows = np.random.default_rng(0).normal(size=(200, 2))
    np.save("data/a.npy", rows[:80])
    np.save("data/2024/b.npy", rows[80:])
    os.symlink("data", "link")
    return tmp_path


@pytest.mark.parametrize("kind", MEANS)
@pytest.mark.parametrize(
    ("named", "checkpoint"),
    [
        ("data", "data/job.ck"),
        ("data", "data/2024/x/../job.npy"),
        ("link", "data/job.ck"),
        ("data/**/*.npy", "link/job.npy"),
        ("data/**", "data/job.ck"),
        ("data/*", "data/2024/job.ck"),
        ("data/*.npy", "data/a.npy"),
        ("data/a.npy", "data/a.npy"),
        ("dat?/*.n*", "data/c.npy"),
    ],
)
def test_a_checkpoint_among_the_rows_is_refused_before_they_are_read(
    here, monkeypatch, kind, named, checkpoint
):
    rows = open_rows(named)
    before = sorted(here.rglob("*"))
    monkeypatch.setattr(Rows, "kernel_batches", None)
    with pytest.raises(CheckpointError, match="would be read as rows"):
        MEANS[kind](rows, resume=checkpoint)
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize(
    ("named", "checkpoint"),
    [
        ("data", "data/.job.ck"),
        ("data", "data/_kept/job.npy"),
        ("data", "job.ck"),
        ("data", "data2.ck"),
        ("data/*.npy", "data/job.ck"),
        ("data/**/*.npy", "data/_job.npy"),
        (["data/a.npy", "data/2024"], "data/job.ck"),
    ],
)
def test_one_that_is_not_read_lets_the_job_go_on(here, named, checkpoint):
    (here / "data/_kept").mkdir()
    mean = MEANS["region"]
    first, again = (mean(open_rows(named), resume=checkpoint) for _ in range(2))
    assert (first.integers == again.integers).all() and first.n in (80, 200)


def test_names_stand_for_just_the_files_that_would_be_found(here):
    """Whatever is found once it is there, and, of what is not, no more than folders on the way."""
    os.unlink("link")
    names = ["data", "data/*", "data/**", "**/*.npy", "data/*/*", "[d]ata/2024", "data/_k/*", "?"]
    own = ["a", ".a.npy", "_b.npy", "c.npy", "2024/c.npy", "2024/.x/d.npy", "_k/e.npy", "l"]
    for path in [os.path.join(folder, name) for name in own for folder in ("data", ".")]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        new = not os.path.exists(path)
        open(path, "ab").close()
        for name in names:
            try:
                found = any(os.path.samefile(path, f) for f in files_named([name]))
            except OSError:
                found = False
            assert (named_by([name], path) is not None) == found, (name, path)
        if new:
            os.unlink(path)


def test_a_checkpoint_that_the_shell_names_is_no_rows(here, capsys):
    """The shell's list has it in the second run alone: said, and it goes on from elsewhere."""
    argv = ["mean", "--ball", "3", "--mu", "0.9", "--json"]
    names = sorted(glob.glob("data/*.*"))
    assert main([*argv, *names, "--resume", "data/job.npy"]) == Exit.OK
    first = capsys.readouterr().out
    assert main([*argv, *sorted(glob.glob("data/*.*")), "--resume", "data/job.npy"]) == Exit.DATA
    assert "job.npy is a checkpoint, no rows: move it" in capsys.readouterr().err
    with pytest.raises(OSError, match="is a checkpoint, no rows"):
        open_rows("data/job.npy")
    os.rename("data/job.npy", "job.ck")
    os.unlink("data/job.npy.lock")
    assert main([*argv, *names, "--resume", "job.ck"]) == Exit.OK
    assert capsys.readouterr().out == first
    for shape in (["--ball", "3"], ["--bounds", "-9,9"]):
        code = main(["mean", "data", *shape, "--mu", "0.9", "--resume", "data/job.ck"])
        assert code == Exit.OUTPUT and "would be read as rows" in capsys.readouterr().err
    assert not os.path.exists("data/job.ck")
    assert Checkpoint("job.ck").inputs(open_rows("data"))


def test_a_file_that_is_no_checkpoint_is_never_removed(tmp_path):
    """Neither by discard() nor in the place that a half-written one takes; a torn one is."""
    rows, path = tmp_path / "rows.npy", tmp_path / "job.ck"
    np.save(rows, np.ones((5, 2)))
    whole = rows.read_bytes()
    with pytest.raises(CheckpointError, match="is no checkpoint, and stays as it is"):
        Checkpoint(rows).discard()
    rows.rename(tmp_path / "job.ck.part")
    with pytest.raises(CheckpointError, match=r"job\.ck\.part is no checkpoint"):
        Checkpoint(path).write(b"body")
    assert (tmp_path / "job.ck.part").read_bytes() == whole and not path.exists()
    (tmp_path / "job.ck.part").write_bytes(b"ELLI")
    Checkpoint(path).write(b"body")
    Checkpoint(path).discard()
    assert not [file for file in tmp_path.iterdir() if "job.ck" in file.name]


def test_what_is_no_regular_file_is_refused_and_nothing_waits(tmp_path, capsys):
    np.save(tmp_path / "rows.npy", np.ones((5, 2)))
    argv = ["mean", str(tmp_path / "rows.npy"), "--ball", "3", "--mu", "1", "--resume"]
    (tmp_path / "folder").mkdir()
    os.symlink("none", tmp_path / "link")
    made = {"folder": "not a regular file", "link": "is a link"}
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        made["pipe"] = "not a regular file"
    for name, what in made.items():
        assert main([*argv, str(tmp_path / name)]) == Exit.OUTPUT
        assert what in capsys.readouterr().err
        with pytest.raises(CheckpointError, match=what):
            Checkpoint(tmp_path / name).discard()


def test_nobody_is_told_to_delete_a_file_that_is_no_checkpoint(tmp_path, capsys):
    """As a ledger, or rows, named by mistake: whoever may read it."""
    np.save(tmp_path / "rows.npy", np.ones((5, 2)))
    (tmp_path / "a.ledger").write_text("{}")
    os.chmod(tmp_path / "a.ledger", 0o644)
    files = [str(tmp_path / name) for name in ("rows.npy", "a.ledger")]
    assert main(["mean", files[0], "--ball", "3", "--mu", "1", "--resume", files[1]]) == Exit.OUTPUT
    told = capsys.readouterr().err
    assert "is no checkpoint: name another file" in told and "delete it" not in told
