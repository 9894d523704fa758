"""Labels in ``.npz`` files are those of the same arrays in memory, whatever their bits."""

from __future__ import annotations

import warnings
import zipfile

import numpy as np
import pytest

from ellipsum import Ellipsoid, PrivateCounts, PrivateSum, open_rows
from file_rows import CANARY, fails

BALL = Ellipsoid.ball(1.0, [0.0])
USERS = PrivateSum(BALL, mu=1e4, neighbors="add-remove", by="u")
ODD = "\udc80" + CANARY  # a str, and no UTF-8


@pytest.mark.parametrize("dtype", ["U3", "S3"])
def test_text_with_zeros_inside_stays_apart(tmp_path, dtype):
    labels = np.array(["a\0b", "a\0b", "a", "a", "\0a", ""], dtype)
    np.savez(tmp_path / "x.npz", x=np.ones((6, 1)), u=labels)
    keys = ["a", "a\0b", "\0a"] if dtype == "U3" else [b"a", b"a\0b", b"\0a"]
    counts = PrivateCounts(keys=keys, mu=1e4)
    got = counts(open_rows(tmp_path / "x.npz", by="u"), key="u", seed=1)
    assert (got.value == counts(labels, key=labels, seed=1).value).all()
    assert got.value == pytest.approx([2, 2, 1], abs=0.1)


def test_users_by_their_bytes_stay_apart(tmp_path):
    """Cut at a zero byte, two users were one, and one of them moved a sum by twice its bound."""
    one, other = b"\0" + b"a" * 15, b"\0" + b"b" * 15
    users = np.array([one] + [other] * 999, "S16")
    rows = np.where(np.arange(1000) == 0, -1.0, 1.0)[:, None]
    np.savez(tmp_path / "x.npz", x=rows, u=users)
    got = USERS(open_rows(tmp_path / "x.npz", by="u"), seed=1)
    assert (got.integers == USERS(rows, users=users, seed=1).integers).all()
    assert got.value == pytest.approx([0], abs=1e-2)


def test_no_label_of_an_array_raises(tmp_path):
    nobody = np.array([0x110000, 98], "<u4").view("<U1")  # the first is no character
    for odd, users in ((np.array([ODD, "b"]), 2), (nobody, 1)):
        np.savez(tmp_path / "x.npz", x=np.ones((2, 1)), u=odd)
        rows = open_rows(tmp_path / "x.npz", by="u")
        assert USERS(rows).value == pytest.approx([users], abs=0.01)
        assert USERS(np.ones((2, 1)), users=odd).value == pytest.approx([users], abs=0.01)
        PrivateCounts(keys=["b"], mu=1.0)(rows, key="u")
    for dtype in (">i4", ">U2", "f2", "g", ">f8"):
        np.savez(tmp_path / "x.npz", x=np.ones((2, 1)), u=np.array([1, 2]).astype(dtype))
        assert USERS(open_rows(tmp_path / "x.npz", by="u")).value == pytest.approx([2], abs=0.01)


@pytest.mark.parametrize("labels", [
    np.array([{}, CANARY], object), np.array([True, False]),
    np.array(["2025", "2026"], "M8[Y]"), np.zeros(2, [("a", "i4")]),
], ids=lambda labels: labels.dtype.kind)  # fmt: skip
def test_types_that_cannot_be_labels_are_refused_before_anything_is_read(tmp_path, labels):
    np.savez(tmp_path / "x.npz", x=np.ones((2, 1)), u=labels)
    fails(TypeError, "cannot say whose a row is", lambda: open_rows(tmp_path / "x.npz", by="u"))


def test_an_archive_that_is_another_one_at_the_pass_is_refused(tmp_path, monkeypatch):
    """Also where its size and its time of change tell nothing."""
    monkeypatch.setattr("ellipsum.rows.sources.Source._check_facts", lambda source: None)
    path, rows = tmp_path / "x.npz", np.arange(8.0).reshape(4, 2)
    for other in (rows.astype("i8"), np.asfortranarray(rows), rows.reshape(2, 4)):
        np.savez(path, x=rows)
        data = open_rows(path)
        np.savez(path, x=other)
        fails(OSError, "truncated or damaged", lambda data=data: list(data))


def test_members_of_one_name_or_of_none_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 2)))
    array = (tmp_path / "a.npy").read_bytes()
    negative = array.replace(b"(4, 2)", b"(-1,2)")
    for members in (
        [("a.npy", array), ("a", array)],
        [("a.npy", array), ("a.npy", array)],
        [("a.npy", negative)],
    ):
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two of one name
            for name, raw in members:
                file.writestr(name, raw)
        fails(OSError, "truncated or damaged", lambda: open_rows(tmp_path / "x.npz"))
