"""Jobs of groups: what a checkpoint keeps of them, and several files at a time."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum import (
    Budget,
    Checkpoint,
    CheckpointError,
    Ellipsoid,
    ExactGroupSum,
    PrivateCounts,
    PrivateGroupMean,
    PrivateGroupSum,
    PrivateSum,
    open_rows,
)
from ellipsum.cli.main import main
from ellipsum.groups.count_table import ExactCounts
from ellipsum.rows import divided, parquet_file
from ellipsum.rows.files import Rows
from killed_jobs import EVERY, PEOPLE, REGION, bits, make_files, named

pytestmark = pytest.mark.usefixtures("without_rest")
NAMES = ["0.parquet", "1.arrow", "2.csv"]
KEYS = ["g0", "g3", "none"]
EDGES = [-1.5, -0.25, 0.0, 0.5, 3.0]
OWN = {"g1": REGION, "g2": Ellipsoid.ball(2.0, [1, 0])}
MECHANISMS = {
    "mean": PrivateGroupMean(REGION, keys=KEYS, mu=0.9),
    "sum": PrivateGroupSum(REGION, keys=KEYS, mu=0.9, neighbors="replace"),
    "ignore": PrivateGroupMean(REGION, keys=KEYS, mu=0.9, missing="ignore"),
    "own regions": PrivateGroupSum(OWN, mu=0.9),
    "private": PrivateGroupMean(REGION, epsilon=20, delta=1e-6),
    "users": PrivateGroupMean(REGION, keys=KEYS, mu=0.9, max_keys=2),
    "users, replace": PrivateGroupMean(REGION, keys=KEYS, mu=0.9, max_keys=2, neighbors="replace"),
    "users, private": PrivateGroupMean(REGION, max_keys=2, epsilon=20, delta=1e-6),
    "users, sum": PrivateGroupSum(REGION, keys=KEYS, mu=0.9, max_keys=2, statistic="mean"),
    "counts": PrivateCounts(keys=KEYS, mu=0.9, neighbors="replace"),
    "counts, private": PrivateCounts(epsilon=20, delta=1e-6),
    "counts of users, private": PrivateCounts(max_keys=2, epsilon=20, delta=1e-6),
    "counts of users, replace": PrivateCounts(keys=KEYS, mu=0.9, max_keys=2, neighbors="replace"),
    "histogram": PrivateCounts(edges=EDGES, mu=0.9),
    "histogram of users": PrivateCounts(edges=EDGES, mu=0.9, max_keys=3, neighbors="replace"),
}


@pytest.fixture
def folder(memory_path, monkeypatch):
    """The files of a job, in blocks of a few rows, which do not fit the memory they may take."""
    monkeypatch.setattr(divided, "MEMORY_BYTES", 1 << 13)
    monkeypatch.setattr(parquet_file, "PART_BYTES", 1 << 11)
    make_files(memory_path, "users' groups")
    return memory_path


def told(kind):
    key = {} if "histogram" in kind else {"key": "g"}
    return {**key, "user": "u"} if "users" in kind else key


def files_in(folder, kind, names=NAMES):
    columns = ["a"] if "histogram" in kind else ["a", "b"]
    return open_rows([folder / name for name in names], columns, by=list(told(kind).values()))


def run(folder, kind, **known):
    return MECHANISMS[kind](files_in(folder, kind), **told(kind), **known)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_every_kind_repeats_its_release_and_reads_several_files_at_a_time(folder, kind):
    promise = MECHANISMS[kind].guarantee_for("u" if "users" in kind else None)
    most = {"epsilon": 21, "delta": 1e-5} if "private" in kind else {"mu": 1}
    budget = Budget(**most, neighbors=promise.neighbors.value, unit=promise.unit)
    kept = Checkpoint(folder / "job.ck", every=EVERY)
    first = run(folder, kind, resume=kept, jobs=3, budget=budget)
    again = run(folder, kind, resume=folder / "job.ck", budget=budget)
    assert bits(first) == bits(again) and first.keys == again.keys
    assert first.private and first.n == again.n and len(budget.entries) == 1
    assert first.columns == again.columns and first.to_dict() == again.to_dict()
    public = promise.neighbors.value == "replace"
    assert first.n == ((PEOPLE if "users" in kind else 3000) if public else None)
    one = run(folder, kind, seed=kept._parsed(kept._read()).root)
    assert bits(one) == bits(first) and one.keys == first.keys
    assert np.array_equal(one.value, first.value) and first.columns == one.columns
    assert bits(run(folder, kind, seed=5)) == bits(run(folder, kind, jobs=2, seed=5))
    if first.integers is None:
        return
    assert first.columns == ("a", "b")
    parts = [
        MECHANISMS[kind].exact_sum(files_in(folder, kind), **told(kind), jobs=j) for j in (1, 3)
    ]
    assert parts[0].to_bytes() == parts[1].to_bytes()


@pytest.mark.parametrize("kind", ["private", "users, private"])
def test_a_run_that_goes_on_adds_only_what_is_left(folder, monkeypatch, kind):
    checkpoint, added, add = (
        Checkpoint(folder / "job.ck", every=EVERY),
        [],
        ExactGroupSum.add_indexed,
    )
    wanted = bytes(MECHANISMS[kind].exact_sum(files_in(folder, kind), **told(kind)).to_bytes())
    stop = 12 if kind == "private" else 40

    def broken(self, rows, index):
        if len(added) == stop:
            raise KeyboardInterrupt
        added.append(len(rows))
        return add(self, rows, index)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ExactGroupSum, "add_indexed", broken)
        run(folder, kind, resume=checkpoint)
    first, rest = sum(added), []
    kept = checkpoint._parsed(checkpoint._read())
    assert kept.blobs and not kept.facts.get("whole")
    monkeypatch.setattr(
        ExactGroupSum, "add_indexed", lambda s, *a: (rest.append(len(a[0])), add(s, *a))[1]
    )
    run(folder, kind, resume=checkpoint)
    whole = checkpoint._parsed(checkpoint._read()).blobs["sum"]
    assert whole[-len(wanted) :] == wanted
    total = 3000 if kind == "private" else sum(ExactGroupSum.from_bytes(wanted, REGION).counts())
    assert first + sum(rest) >= total > sum(rest) > 0
    rest.clear()
    monkeypatch.setattr(Rows, "labelled", None)  # nothing is read any more
    assert run(folder, kind, resume=checkpoint).keys and not rest


@pytest.mark.parametrize("kind", ["counts, private", "counts of users, private", "histogram"])
def test_counts_that_go_on_add_only_what_is_left(folder, monkeypatch, kind):
    # Labels alone are read, which are fewer bytes than rows.
    checkpoint, added = Checkpoint(folder / "job.ck", every=EVERY // 4), []
    add = ExactCounts.add_indexed
    stop = None

    def counted(self, rows, index):
        if len(added) == stop:
            raise KeyboardInterrupt
        added.append(len(rows))
        add(self, rows, index)

    monkeypatch.setattr(ExactCounts, "add_indexed", counted)
    run(folder, kind, seed=5)
    total, stop = sum(added), 12 if kind == "histogram" else 40 if "users" in kind else 20
    added.clear()
    with pytest.raises(KeyboardInterrupt):
        run(folder, kind, resume=checkpoint)
    first, stop = sum(added), None
    kept = checkpoint._parsed(checkpoint._read())
    assert kept.blobs and not kept.facts.get("whole")
    added.clear()
    release = run(folder, kind, resume=checkpoint)
    assert first + sum(added) >= total > sum(added) > 0
    assert release.keys and bits(release) == bits(run(folder, kind, seed=kept.root))
    monkeypatch.setattr(Rows, "labelled", None)  # nothing is read any more
    assert bits(run(folder, kind, resume=checkpoint)) == bits(release)


def test_the_checkpoint_holds_no_row_and_no_user(folder):
    run(folder, "users, private", resume=folder / "job.ck")
    raw = (folder / "job.ck").read_bytes()
    for block in files_in(folder, "users", NAMES).batches(2):
        assert not any(x.tobytes() in raw for x in np.asarray(block, np.float64).ravel())
    kept = Checkpoint(folder / "job.ck")
    table = kept._parsed(kept._read()).blobs["sum"]  # which no key is in: the same in every run
    assert not any(user.encode() in table for user in named("users")["u"][10:])
    assert len(raw) < 4000


def test_the_same_budget_asked_for_in_other_words_is_another_job(folder):
    """The noise is bound to the words: two releases of one checkpoint would be two draws."""
    rows = files_in(folder, "public")
    PrivateGroupSum(REGION, keys=KEYS, mu=1.0)(rows, key="g", resume=folder / "job.ck")
    with pytest.raises(CheckpointError, match="other budget"):
        PrivateGroupSum(REGION, keys=KEYS, rho=0.5)(rows, key="g", resume=folder / "job.ck")
    whole = open_rows([folder / name for name in NAMES], ["a", "b"])
    PrivateSum(REGION, mu=1.0)(whole, resume=folder / "sum.ck")
    with pytest.raises(CheckpointError, match="other budget"):
        PrivateSum(REGION, rho=0.5)(whole, resume=folder / "sum.ck")


def test_another_job_is_refused(folder):
    def asked(mechanism, data="users", **call):
        call = {**told("users"), **call}
        return mechanism(files_in(folder, data), **call, resume=folder / "job.ck")

    asked(MECHANISMS["users"])
    known = {"mu": 0.9, "max_keys": 2}
    for other, what in [
        (PrivateGroupMean(REGION, keys=KEYS[:2], **known), "groups"),
        (PrivateGroupMean(REGION, keys=KEYS[::-1], **known), "groups"),
        (PrivateGroupMean(REGION, keys=KEYS, statistic="sum", **known), "groups"),
        (PrivateGroupMean(REGION, keys=KEYS, missing="ignore", **known), "missing"),
        (PrivateGroupMean(Ellipsoid.ball(3.5, d=2), keys=KEYS, **known), "region"),
        (PrivateGroupMean(REGION, keys=KEYS, mu=0.9, max_keys=3), "budget, groups"),
        (PrivateGroupMean(REGION, max_keys=2, epsilon=1, delta=1e-6), "budget, groups"),
        (PrivateGroupSum(REGION, keys=KEYS, **known), "groups, kind"),
    ]:
        with pytest.raises(CheckpointError, match=f"of another job .*{what}"):
            asked(other)
    with pytest.raises(CheckpointError, match=r"of another job .*budget, groups"):
        asked(MECHANISMS["users"], key="u", user="g")
    with pytest.raises(CheckpointError, match="of another job"):
        run(folder, "mean", resume=folder / "job.ck")
    assert asked(MECHANISMS["users"]).keys == KEYS


def test_another_job_of_counts_is_refused(folder):
    def asked(mechanism, kind="counts of users, replace"):
        return mechanism(files_in(folder, kind), **told(kind), resume=folder / "job.ck")

    known = {"mu": 0.9, "max_keys": 2, "neighbors": "replace"}
    first = asked(MECHANISMS["counts of users, replace"])
    for other, what in [
        (PrivateCounts(keys=KEYS[::-1], **known), "groups"),
        (PrivateCounts(keys=KEYS, **{**known, "neighbors": "add-remove"}), "budget"),
        (PrivateCounts(keys=KEYS, **{**known, "max_keys": 3}), "budget, groups"),
        (PrivateGroupSum(REGION, keys=KEYS, **known), "groups, kind, region"),
    ]:
        with pytest.raises(CheckpointError, match=f"of another job .*{what}"):
            asked(other)
    again = asked(MECHANISMS["counts of users, replace"])
    assert bits(first) == bits(again)
    run(folder, "histogram", resume=folder / "h.ck")
    for edges in (EDGES[:-1], [*EDGES[:-1], 4.0]):
        with pytest.raises(CheckpointError, match=r"of another job .*region"):
            PrivateCounts(edges=edges, mu=0.9)(
                files_in(folder, "histogram"), resume=folder / "h.ck"
            )


def test_files_are_binned_by_their_one_column(folder):
    def binned(columns, by=(), **known):
        files = open_rows([folder / name for name in NAMES], columns, by=by)
        return PrivateCounts(edges=EDGES, mu=1e5)(files, **known)

    x = np.concatenate(list(open_rows([folder / name for name in NAMES], ["b"])))
    wanted = np.histogram(x, EDGES)[0]
    for known in ({}, {"jobs": 2}, {"key": "b"}):
        assert np.allclose(binned(["b"], **known).sizes, wanted, atol=1e-3)
    for wrong in (
        lambda: binned(["a", "b"], resume=folder / "job.ck"),
        lambda: binned(["a"], key="b", resume=folder / "job.ck"),
        lambda: binned(["a"], key=x, resume=folder / "job.ck"),
    ):
        with pytest.raises(ValueError, match="binned by their one column"):
            wrong()
    with pytest.raises(ValueError, match="which is not used"):
        binned(["a"], by=["u"], resume=folder / "job.ck")
    with pytest.raises(TypeError, match="by name"):
        binned(["a"], by=["u"], user=["u0"] * 3000, resume=folder / "job.ck")
    assert not (folder / "job.ck").exists()


@pytest.mark.parametrize("kind", ["mean", "users", "counts", "counts of users, private"])
def test_a_file_that_changes_while_it_is_read_is_refused(folder, monkeypatch, kind):
    monkeypatch.setattr("ellipsum.rows.sources.Source._check_facts", lambda source: None)
    table = ExactCounts if "counts" in kind else ExactGroupSum
    add = table.add_indexed

    def touched(self, *block):
        with open(folder / "2.csv", "a") as file:
            file.write("1,2,g0,u0\n")
        return add(self, *block)

    monkeypatch.setattr(table, "add_indexed", touched)
    promise = MECHANISMS[kind].guarantee_for("u" if "users" in kind else None)
    most = {"epsilon": 21, "delta": 1e-5} if "private" in kind else {"mu": 1}
    budget = Budget(**most, neighbors=promise.neighbors.value, unit=promise.unit)
    with pytest.raises(CheckpointError, match=r"2\.csv changed while it was read"):
        run(folder, kind, resume=folder / "job.ck", budget=budget)
    assert not budget.entries


@pytest.mark.parametrize("kind", ["private", "users, private", "counts, private"])
def test_keys_of_two_types_are_refused_however_they_are_read(tmp_path, kind):
    for k, keys in enumerate((np.arange(9), [f"{k}" for k in range(9)])):
        users = [f"{k}" for k in range(9)]
        np.savez(tmp_path / f"{k}.npz", a=np.zeros(9), b=np.zeros(9), u=users, g=keys)
    for known in ({}, {"jobs": 2}, {"resume": tmp_path / ".job.ck"}):
        with pytest.raises(TypeError, match="another type in a later batch"):
            rows = files_in(tmp_path, kind, ["0.npz", "1.npz"])
            MECHANISMS[kind](rows, **told(kind), **known)


def test_what_does_not_go_together_is_refused_and_nothing_is_written(folder):
    table = {"v": np.zeros((5, 2)), "g": ["a"] * 5}
    for known in ({"resume": folder / "job.ck"}, {"jobs": 2}):
        with pytest.raises(TypeError, match="resume and jobs need files"):
            MECHANISMS["mean"](table, key="g", **known)
    with pytest.raises(TypeError, match="resume and jobs need files"):
        MECHANISMS["mean"].exact_sum(table, key="g", jobs=2)
    with pytest.raises(ValueError, match="resume or seed"):
        run(folder, "mean", resume=folder / "job.ck", seed=1)
    with pytest.raises(ValueError, match="opened without the column"):
        MECHANISMS["mean"](files_in(folder, "mean"), key="h", resume=folder / "job.ck")
    with pytest.raises(CheckpointError, match="would be read as rows"):
        MECHANISMS["mean"](
            open_rows(folder, ["a", "b"], by=["g"]), key="g", resume=folder / "job.ck"
        )
    counts = MECHANISMS["counts"]
    for known in ({"resume": folder / "job.ck"}, {"jobs": 2}):
        with pytest.raises(TypeError, match="resume and jobs need files"):
            counts(["g0"], **known)
        with pytest.raises(TypeError, match="by name"):
            counts(files_in(folder, "counts"), **known)
    with pytest.raises(ValueError, match="resume or seed"):
        run(folder, "counts", resume=folder / "job.ck", seed=1)
    assert not (folder / "job.ck").exists()


def test_the_command_line_goes_on_with_groups(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    argv = ["mean", *NAMES, "--columns", "a,b", "--ball", "3", "--json", "--group", "g"]
    for own in (["--mu", "0.9", "--keys", "g0,g1"], ["--epsilon", "20", "--delta", "1e-6"]):
        for user in ([], ["--user", "u", "--max-keys", "2"]):
            told = []
            for more in (["--jobs", "2"], [], ["--discard"]):
                assert main([*argv, *own, *user, "--resume", "a.ck", *more]) == 0
                told.append(capsys.readouterr().out)
            assert told[0] == told[1] == told[2] and '"private": true' in told[0]
            assert not (folder / "a.ck").exists()
    assert main(["mean", ".", *argv[4:], "--mu", "0.9", "--keys", "g0", "--resume", "a.ck"]) == 6
    assert "would be read as rows" in capsys.readouterr().err
