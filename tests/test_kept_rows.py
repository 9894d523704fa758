"""Files that a plan reads several times are decoded once, if there is room for their rows."""

from __future__ import annotations

from traceback import walk_tb

import numpy as np
import pytest

from ellipsum import Budget, Ellipsoid, PrivateMean, PrivateSum, open_rows
from ellipsum.adaptive.passes import Passes
from ellipsum.cli.main import main
from ellipsum.rows import divided
from ellipsum.rows.files import Rows
from ellipsum.rows.kept import KeptRows

D = 3
BOX = {"lower": [-4.0] * D, "upper": [4.0] * D, "mu": 1.0}
FILES = ["x.parquet", "lists.parquet", "x.arrow", "x.csv", "c.npy", "f.npy", "x.npz"]


@pytest.fixture(scope="module")
def rows():
    rows = np.random.default_rng(0).normal(size=(4000, D))
    rows[::17, 1] = np.nan
    return rows


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    pa = pytest.importorskip("pyarrow")
    feather, parquet = (
        pytest.importorskip("pyarrow.feather"),
        pytest.importorskip("pyarrow.parquet"),
    )
    folder = tmp_path_factory.mktemp("kept")
    names = [f"x{j}" for j in range(D)]
    table = pa.table([*rows.T, np.arange(len(rows))], names=[*names, "other"])
    parquet.write_table(table, folder / "x.parquet", row_group_size=1100)
    lists = pa.FixedSizeListArray.from_arrays(rows.ravel(), D)
    parquet.write_table(pa.table({"v": lists}), folder / "lists.parquet", row_group_size=900)
    feather.write_feather(table, folder / "x.arrow", chunksize=700, compression="uncompressed")
    np.savetxt(folder / "x.csv", rows, delimiter=",", header=",".join(names), comments="")
    np.save(folder / "c.npy", rows)
    np.save(folder / "f.npy", np.asfortranarray(rows))
    np.savez(folder / "x.npz", **dict(zip(names, rows.T, strict=True)))
    return folder


def opened(folder, name, **options):
    named = "v" not in name and not name.endswith(".npy") and not name.startswith("lists")
    return open_rows(folder / name, [f"x{j}" for j in range(D)] if named else None, **options)


@pytest.fixture
def reads(monkeypatch):
    """How often the files were read."""
    seen, real = [], Rows.kernel_batches

    def counted(self, d):
        seen.append(self)
        return real(self, d)

    monkeypatch.setattr(Rows, "kernel_batches", counted)
    return seen


@pytest.mark.parametrize("name", FILES)
def test_a_plan_reads_its_files_once_and_has_the_bits_of_the_array(folder, rows, reads, name):
    wanted = PrivateMean(**BOX)(rows, seed=3)
    found = PrivateMean(**BOX)(opened(folder, name), seed=3)
    np.testing.assert_array_equal(found.value, wanted.value)
    assert len(reads) == 1
    counted = PrivateSum(**BOX, neighbors="add-remove")(opened(folder, name), seed=3)
    other = PrivateSum(**BOX, neighbors="add-remove")(rows, seed=3)
    np.testing.assert_array_equal(counted.value, other.value)
    assert len(reads) == 2


@pytest.mark.parametrize("name", FILES)
def test_where_there_is_no_room_each_pass_reads_them(folder, rows, reads, monkeypatch, name):
    monkeypatch.setattr(divided, "MEMORY_BYTES", 4000 * D * 8 - 1)
    found = PrivateMean(**BOX)(opened(folder, name), seed=3)
    assert (found.value == PrivateMean(**BOX)(rows, seed=3).value).all()
    assert len(reads) >= 6


def test_columns_that_are_not_read_count_where_they_may_lie_beside_the_others(folder):
    assert opened(folder, "x.arrow").held_beside == (folder / "x.arrow").stat().st_size
    assert opened(folder, "x.parquet").held_beside == 0
    assert open_rows(folder / "x.arrow").held_beside == 0


def test_a_pass_that_ends_early_keeps_nothing(folder, reads):
    passes = Passes(opened(folder, "x.parquet"), D)
    next(passes.batches())
    assert sum(map(len, passes.batches())) == 4000 and len(reads) == 2
    assert sum(map(len, passes.batches())) == 4000 and len(reads) == 2


@pytest.mark.parametrize("name", FILES)
def test_what_is_kept_cannot_be_written_to(folder, name):
    rows = opened(folder, name)
    kept = KeptRows(rows)
    first = list(kept.over(lambda: rows.kernel_batches(D)))
    assert sum(map(len, first)) == 4000
    for block in kept.over(lambda: pytest.fail("they are read again")):
        for array in [block] if isinstance(block, np.ndarray) else block.columns:
            with pytest.raises(ValueError, match="read-only"):
                array[:1] = 0


def test_arrays_that_a_pass_makes_of_arrow_data_are_not_kept(folder):
    rows = opened(folder, "x.arrow")
    kept = KeptRows(rows)
    for _ in range(3):
        for block in kept.over(lambda: rows.kernel_batches(D)):
            assert "columns" not in vars(block)
            assert np.asarray(block).shape[1] == D and "columns" in vars(block)


def test_what_holds_the_numbers_of_small_blocks_counts_too(
    folder, rows, reads, monkeypatch, tmp_path
):
    pa = pytest.importorskip("pyarrow")
    table = pa.table([*rows[:600].T], names=["a", "b", "c"])
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=1)
    monkeypatch.setattr(divided, "MEMORY_BYTES", 40 * 600 * D)
    PrivateMean(**BOX)(open_rows(tmp_path / "x.arrow"), seed=3)
    assert len(reads) >= 6


def test_after_an_error_nothing_is_held(folder):
    """The error's frames live as long as it does."""

    def broken():
        yield from first
        raise OSError("x.parquet is truncated or damaged: write it again")

    rows = opened(folder, "c.npy")
    first = list(rows.kernel_batches(D))
    kept = KeptRows(rows)
    with pytest.raises(OSError, match="damaged") as caught:
        list(kept.over(broken))
    frames = [frame for frame, _ in walk_tb(caught.tb) if frame.f_code.co_name == "_first"]
    assert [frame.f_locals["kept"] for frame in frames] == [[]]


def test_a_count_alone_keeps_nothing(folder, reads):
    passes = Passes(opened(folder, "x.csv"), D)
    assert passes.count_rows(alone=True) == 4000
    assert sum(map(len, passes.batches())) == 4000 and len(reads) == 2


def test_the_bar_goes_on_over_passes_that_read_no_file(folder, capfd):
    PrivateMean(**BOX)(opened(folder, "x.parquet", progress=True), seed=3)
    said = capfd.readouterr().err
    for number in (1, 2, 6):
        assert f"pass {number} of 6" in said


@pytest.mark.parametrize("options", [[], ["--plan"], ["--json"]])
def test_the_command_reads_its_files_once_and_says_the_plan(folder, reads, capsys, options):
    data = [str(folder / "x.csv"), "--mu", "1", "--bounds=-4,4", "--seed", "3", "--no-progress"]
    assert main(["mean", *data, *options]) == 0
    assert len(reads) == 1
    said = capsys.readouterr().err
    plan = PrivateMean(**BOX).plan(4000)
    if options == ["--plan"]:
        assert said == f"{plan}\n"
    elif options == ["--json"]:
        assert said == ""
    else:
        assert f"ellipsum: {plan.passes} passes over the data" in said


def test_a_plan_is_told_once_the_rows_are_counted(folder, rows, reads):
    told = []

    def tell(plan):
        told.append((plan, len(reads)))

    for neighbors in ("replace", "add-remove"):
        mean = PrivateMean(**BOX, neighbors=neighbors)
        release = mean(opened(folder, "x.csv"), on_plan=tell, seed=3)
        assert str(told[-1][0]) == str(release.plan) and len(told) == len(reads) == told[-1][1]
    region = Ellipsoid.ball(4.0, d=D)
    PrivateMean(region, mu=1.0)(rows, on_plan=tell, seed=3)  # of one pass there is no plan
    assert len(told) == 2


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_what_cannot_be_told_a_plan_is_refused_before_anything_is_spent(rows, neighbors):
    budget = Budget(mu=5.0, neighbors=neighbors)
    for mechanism in (PrivateMean(**BOX, neighbors=neighbors), PrivateMean(
        Ellipsoid.ball(4.0, d=D), mu=1.0, neighbors=neighbors
    )):  # fmt: skip
        with pytest.raises(TypeError, match="on_plan must be a function, got str"):
            mechanism(rows, budget=budget, on_plan="print")
    assert len(budget.entries) == 0
