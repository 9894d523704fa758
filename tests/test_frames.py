"""pandas frames of floats: views of their own memory, with the rows that Arrow would give."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum
from ellipsum.rows import frames as frame_reader
from ellipsum.rows.batches import as_batches
from ellipsum.rows.frames import number_columns

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def frames(dtype):
    rows = np.random.default_rng(3).normal(size=(500, 6)).astype(dtype)
    rows[7, 2], rows[8, 1] = np.nan, np.inf
    names = list("abcdef")
    whole = pd.DataFrame(rows, columns=names)
    replaced = whole.copy()  # its other columns still lie as evenly as they did
    replaced["c"] = whole["c"].copy()
    return rows, {
        "of rows": whole,
        "with a column replaced": replaced,
        "of columns": pd.DataFrame(np.asfortranarray(rows), columns=names),
        "of a dictionary": pd.DataFrame({name: rows[:, j] for j, name in enumerate(names)}),
        "every third row": pd.DataFrame(np.repeat(rows, 3, axis=0), columns=names)[::3],
        "indexed": whole.set_index(np.arange(500)[::-1] + 0.5),
        "backwards": pd.DataFrame(rows[::-1], columns=names)[::-1],
        "in another order": pd.DataFrame(rows[:, ::-1], columns=names[::-1])[names],
        "in pieces": pd.concat(
            [whole[["a", "b"]].copy(), whole[["c", "d", "e", "f"]].copy()], axis=1
        ),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_kind_of_frame_gives_the_bytes_of_its_rows(dtype):
    rows, kinds = frames(dtype)
    region = Ellipsoid.ball(1.5, d=6)
    wanted = ExactSum(region).add(rows)
    for name, frame in kinds.items():
        assert number_columns(frame, 6) is not None, name
        got = ExactSum(region).add(frame)
        assert (got.integers() == wanted.integers()).all(), name
        assert (got.count, got.clipped) == (wanted.count, wanted.clipped), name


def test_frames_of_one_array_are_not_copied():
    _, kinds = frames(np.float64)
    for name in ("of rows", "of columns", "every third row", "indexed"):
        frame = kinds[name]
        (batch,) = as_batches(frame, 6)
        assert np.shares_memory(batch, frame.iloc[:, 3].to_numpy()), name
        assert not batch.flags.writeable


def test_of_a_wide_frame_few_columns_are_asked_for(monkeypatch):
    """pandas takes some 20 us for each: of 1,024 columns longer than their kernel did."""
    asked, column = [], frame_reader._column
    monkeypatch.setattr(frame_reader, "_column", lambda data, j: asked.append(j) or column(data, j))
    rows = np.ones((3, 1024))
    ExactSum(Ellipsoid.ball(1.0, d=1024)).add(pd.DataFrame(rows))
    assert len(asked) <= 3


def test_of_a_frame_of_one_block_no_column_is_asked_for(monkeypatch):
    """Nor its types; where pandas does not say how many blocks there are, the columns tell."""
    rows = np.random.default_rng(5).normal(size=(20_000, 5))
    frame, apart = pd.DataFrame(rows), pd.DataFrame({j: rows[:, j] for j in range(5)})
    told = [number_columns(each, 5) for each in (frame, apart)]
    with monkeypatch.context() as patched:
        patched.setattr(pd.DataFrame, "dtypes", property(lambda _: pytest.fail("types")))
        assert np.shares_memory(number_columns(frame, 5), frame.iloc[:, 1].to_numpy())
    with monkeypatch.context() as patched:
        patched.setattr(type(frame._mgr), "arrays", property(lambda _: []))
        untold = [number_columns(each, 5) for each in (frame, apart)]
    for one, other in zip(told, untold, strict=True):
        np.testing.assert_array_equal(np.array(one), np.array(other))
    assert np.shares_memory(untold[0], told[0])


def test_a_view_outlives_its_frame():
    rows = np.random.default_rng(4).normal(size=(100_000, 3))
    (batch,) = as_batches(pd.DataFrame(rows.copy()), 3)
    other = [np.full((100_000, 3), np.nan) for _ in range(5)]
    assert (batch == rows).all()
    assert other


def test_columns_apart_are_copied_block_by_block_and_mixed_floats_become_doubles():
    rng = np.random.default_rng(5)
    n = 300_000
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n).astype(np.float32)})
    blocks = list(as_batches(frame, 2))
    assert len(blocks) > 1
    got = np.concatenate(blocks)
    assert got.dtype == np.float64
    assert (got == frame.to_numpy(np.float64)).all()


@pytest.mark.parametrize(
    "frame",
    [
        pd.concat([pd.DataFrame({"a": [1, None], "b": [1, 2]}, dtype="Int64")] * 5000),
        pd.concat(
            [pd.DataFrame({"a": [1.0, None], "b": [1.0, 2.0]}, dtype="double[pyarrow]")] * 5000
        ),
        pd.DataFrame({"a": ["1", "2"], "b": [1.0, 2.0]}, dtype="string"),
        pd.DataFrame({"a": ["1", "2"], "b": [1.0, 2.0]}, dtype="category"),
        pd.DataFrame({"a": [1j, 2j], "b": [1.0, 2.0]}),
        pd.DataFrame({"a": pd.to_datetime(["2020", "2021"]), "b": [1.0, 2.0]}),
        pd.DataFrame({"a": np.ones(2, ">f8"), "b": [1.0, 2.0]}),
        pd.DataFrame({"a": np.ones(2, "f2"), "b": [1.0, 2.0]}),
        pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]),
        pd.DataFrame(np.ones((2, 3))),
        np.ones((2, 2)),
    ],
)
def test_anything_else_is_left_to_the_other_readers(frame):
    assert number_columns(frame, 2) is None


def test_a_frame_without_rows_adds_none():
    assert ExactSum(Ellipsoid.ball(1.0, d=2)).add(pd.DataFrame(np.empty((0, 2)))).count == 0


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize("names", [["a", "b"], ["a", "c"], [0, 1], ["a", "a"]], ids=str)
def test_one_null_decides_neither_whether_a_frame_is_read_nor_what_refuses_it(
    monkeypatch, names, arrow
):
    """Of pandas' own types, which go by their memory only where no cell is null."""
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    region = Ellipsoid.ball(4.0, center={"a": 0.0, "b": 0.0})
    seen = []
    for null in (False, True):
        frame = pd.DataFrame({"a": np.arange(9000) % 3, "b": np.arange(9000) % 2}).astype("Int64")
        if null:
            frame.iloc[3, 0] = pd.NA
        frame.columns = names
        try:
            seen.append(ExactSum(region).add(frame).count)
        except Exception as error:
            seen.append((type(error), str(error)))
    assert seen[0] == seen[1]


ODD_NAMES = [
    [1, "1"],
    [1.0, "1.0"],
    [True, "True"],
    [np.nan, "nan"],
    [("a", "b"), "('a', 'b')"],
    [("a", "b"), ("a", "c")],
    ["a\0", "a"],
    ["a", "__index_level_0__"],
    ["__index_level_0__", "__index_level_1__"],
    [np.int64(3), 5],
    ["1", "2"],
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["Int64", "boolean", "Float32", "int64[pyarrow]"])
@pytest.mark.parametrize("names", ODD_NAMES, ids=repr)
def test_names_that_arrow_would_alter_let_neither_a_null_nor_the_number_of_rows_decide(names, kind):
    region = Ellipsoid.ball(4.0, d=2)
    seen = []
    for n in (8192, 8193):
        for null in (False, True):
            cells = np.arange(2 * n).reshape(n, 2) % 2
            frame = pd.DataFrame(cells, columns=["a", "b"]).astype(kind)
            if null:
                frame.iloc[3, 0] = pd.NA
            frame.columns = pd.Index(names, tupleize_cols=False)
            total = ExactSum(region).add(frame)
            assert total.integers()[1] == n / total.ellipsoid.grid
            seen.append(total.count - n)
    assert seen == [0] * 4
