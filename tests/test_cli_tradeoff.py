"""``ellipsum tradeoff`` and ``ellipsum audit``: figures, pictures, refusals."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main
from ellipsum.cli.read_columns import _text
from ellipsum.tradeoff import GaussianTradeoff, audit

N = 800


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tradeoff")
    rng = np.random.default_rng(0)
    income = rng.normal(size=N)
    spending = 0.8 * income + 0.6 * rng.normal(size=N)
    table = pa.table(
        {
            "income": income,
            "spending": 10 * spending,
            "visits": rng.normal(size=N),
            "member": (income > 0).astype(int),
        }
    )
    pq.write_table(table, path / "rows.parquet")
    pa.csv.write_csv(table, path / "rows.csv")
    gone = table.slice(0, 5).to_pydict() | {"income": [None, 1.0, 2.0, 3.0, 5.0]}
    pq.write_table(pa.table(gone), path / "gap.parquet")
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


CURVE = ["tradeoff", "rows.parquet", "--private", "income", "--useful", "spending,visits"]


def test_the_curve_is_that_of_the_library(capsys, folder):
    code, out, err = run(capsys, *CURVE, "--points", "5", "--json")
    assert (code, err) == (Exit.OK, "")
    found, table = json.loads(out), pq.read_table(folder / "rows.parquet")
    y = np.c_[table["spending"], table["visits"]]
    for i in (0, 2, 4):
        wanted = GaussianTradeoff(distortion=found["distortion"][i]).fit(table["income"], y)
        assert found["leakage"][i] == pytest.approx(wanted.leakage_, abs=1e-9)
    assert max(found["gap"]) < 1e-8 and "nothing here is private" in found["caveat"]


def test_text_of_a_csv(capsys):
    options = ["--observe", "full", "--points", "3", "--standardize"]
    code, out, err = run(capsys, "tradeoff", "rows.csv", *CURVE[2:], *options)
    assert (code, err) == (Exit.OK, "")
    assert "least leakage of income" in out and "CAVEAT" in out
    assert len(out.strip().splitlines()) == 8
    assert out.strip().splitlines()[-1].split()[1] == "0.000000"  # the variance: nothing is told


def test_a_picture(capsys, tmp_path):
    path = tmp_path / "curve.png"
    code, _, err = run(capsys, *CURVE, "--points", "4", "--out", str(path))
    assert (code, err) == (Exit.OK, "")
    assert path.read_bytes()[:4] == b"\x89PNG" and path.stat().st_size > 5000
    code, _, err = run(capsys, *CURVE, "--points", "4", "--out", str(tmp_path / "curve.xyz"))
    assert code == Exit.USAGE and "--out must end in" in err


def test_incomplete_rows_are_counted(capsys):
    arguments = ["tradeoff", "gap.parquet", *CURVE[2:], "--points", "2", "--json"]
    _, out, _ = run(capsys, *arguments)
    found = json.loads(out)
    assert (found["rows"], found["incomplete"]) == (4, 1)


def test_attackers_are_those_of_the_library(capsys, folder):
    arguments = ["audit", "rows.parquet", "--label", "member", "--columns", "spending,visits"]
    code, out, err = run(capsys, *arguments, "--attackers", "linear,knn", "--json")
    assert (code, err) == (Exit.OK, "")
    found, table = json.loads(out), pq.read_table(folder / "rows.parquet")
    rows = np.c_[table["spending"], table["visits"]]
    wanted = audit(rows, np.asarray(table["member"]), attackers=("linear", "knn"))
    assert found["results"][0]["accuracy"] == wanted.results[0].accuracy > 0.7
    assert found["guarantee"]["kind"] == "mutual-information-estimated"
    code, out, _ = run(capsys, *arguments, "--attackers", "linear")
    assert code == Exit.OK and "not differential privacy" in out


@pytest.mark.parametrize(
    "arguments, code, text",
    [
        (["--private", "income", "--useful", "nothing"], Exit.DATA, "nothing"),
        (["--private", "income", "--useful", "income"], Exit.USAGE, "named twice"),
        (["--private", "income", "--useful", "visits", "--points", "1"], Exit.PARAMETER, "points"),
    ],
)
def test_what_the_curve_refuses(capsys, arguments, code, text):
    found, out, err = run(capsys, "tradeoff", "rows.parquet", *arguments)
    assert (found, out) == (code, "") and text in err and err.count("\n") == 1


def test_what_the_audit_refuses(capsys):
    rest = ["--columns", "spending"]
    found, _, err = run(capsys, "audit", "rows.parquet", "--label", "income", *rest)
    assert found == Exit.DATA and "different values" in err
    rest += ["--attackers", "oracle"]
    found, _, err = run(capsys, "audit", "rows.parquet", "--label", "member", *rest)
    assert found == Exit.PARAMETER and "attackers must be" in err


def test_a_label_may_be_text(capsys, tmp_path, monkeypatch):
    """As in Python: of CSV and Parquet, plain or a dictionary; rows without one are left out."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, sex = rng.normal(size=60), np.array(["F", "M"] * 30)
    wanted = audit(a[:, None], sex, attackers="linear")
    holes = pa.table({"a": [*a, 1.0, None], "sex": [*sex, None, "M"], "odd": ["x"] * 62})
    pq.write_table(holes, "people.parquet")
    pa.csv.write_csv(holes, "people.csv")
    coded = holes.set_column(1, "sex", holes["sex"].combine_chunks().dictionary_encode())
    pq.write_table(coded, "coded.parquet")
    rest = ["--attackers", "linear", "--columns", "a", "--json", "--label"]
    for name in ("people.parquet", "people.csv", "coded.parquet"):
        code, out, err = run(capsys, "audit", name, *rest, "sex")
        assert (code, err) == (Exit.OK, ""), name
        found = json.loads(out)
        assert found["incomplete"] == 2
        assert found["results"][0]["accuracy"] == wanted.results[0].accuracy
        code, _, err = run(capsys, "audit", name, *rest, "odd")
        assert code == Exit.PARAMETER and "two different values" in err
        code, _, err = run(capsys, "audit", name, *rest, "nobody")
        assert code == Exit.DATA and "nobody" in err


@pytest.mark.parametrize("label, gone", [("text", 7), ("number", 7), ("mixed", 7), ("whole", 0)])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_left_out_are_told_with_the_reason(capsys, tmp_path, monkeypatch, label, gone, suffix):
    """Those without a label were left out of the text without a word."""
    monkeypatch.chdir(tmp_path)
    values = {"text": ["F", "M"], "number": [1, 2], "mixed": ["1", "x"], "whole": [1, 2]}[label]
    labels = [None] * gone + (values * 40)[gone:]
    a = [*np.random.default_rng(0).normal(size=77).tolist(), None, None, None]
    a[0] = None  # and without a number, too, where a label is missing
    table = pa.table({"a": a, "label": labels})
    pa.csv.write_csv(table, "t.csv")
    pq.write_table(table, "t.parquet")
    rest = ["audit", f"t.{suffix}", "--label", "label", "--columns", "a", "--attackers", "linear"]
    lost = max(gone, 1) + 3
    code, out, _ = run(capsys, *rest, "--json")
    found = json.loads(out)
    assert code == Exit.OK
    assert (found["rows"], found["incomplete"], found["unlabelled"]) == (80 - lost, lost, gone)
    first = run(capsys, *rest)[1].splitlines()[0]
    why = ", 7 of them for want of a label" if gone else ""
    assert first == f"label from a: {80 - lost} rows ({lost} incomplete left out{why})"


def test_labels_that_mix_text_and_numbers_keep_their_rows(capsys, tmp_path, monkeypatch):
    """The rows with text were left out, as if they had no label."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, grade = rng.normal(size=90), ["1", "2", "fail"] * 30
    spelled = [{"1": "1.0"}.get(g, g) if i % 2 else g for i, g in enumerate(grade)]
    wanted = audit(a[:, None], np.array(grade), attackers="linear")
    rest = ["--columns", "a", "--attackers", "linear", "--json", "--label", "grade"]
    for labels, lost in ((grade, 0), (spelled, 0), ([*grade, "NA", ""], 2)):
        rows = [f"{x!r},{g}" for x, g in zip([*a.tolist(), 0.5, 0.5], labels, strict=False)]
        (tmp_path / "mixed.csv").write_text("\n".join(["a,grade", *rows]) + "\n")
        code, out, err = run(capsys, "audit", "mixed.csv", *rest)
        assert (code, err) == (Exit.OK, "")
        found = json.loads(out)
        assert found["incomplete"] == lost
        assert found["results"][0]["accuracy"] == wanted.results[0].accuracy
    numbers = ["1", "2"] * 45 + ["NA", ""]
    rows = [f"{x!r},{g}" for x, g in zip([*a.tolist(), 0.5, 0.5], numbers, strict=True)]
    (tmp_path / "numbers.csv").write_text("\n".join(["a,grade", *rows]) + "\n")
    code, out, _ = run(capsys, "audit", "numbers.csv", *rest)
    assert code == Exit.OK and json.loads(out)["incomplete"] == 2


def test_few_rows_text_and_seeds_are_no_internal_errors(capsys, tmp_path, monkeypatch):
    """Eight rows have fewer neighbours than an attacker asks for, and a text no number."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=8), "b": [0, 1] * 4, "c": ["Ada", "Ben"] * 4}
    pa.csv.write_csv(pa.table(table), "few.csv")
    rest = ["audit", "few.csv", "--attackers", "linear,knn", "--columns", "a", "--label"]
    code, out, err = run(capsys, *rest, "b")
    assert (code, err) == (Exit.OK, "") and "knn" in out
    code, out, err = run(capsys, *rest[:4], "--label", "a", "--columns", "c")
    assert (code, out) == (Exit.DATA, "") and "'c' has no number" in err and "Ada" not in err
    code, out, err = run(capsys, *rest, "b", "--seed", "-1")
    assert (code, out) == (Exit.PARAMETER, "") and "seed must be at least 0" in err
    pa.csv.write_csv(pa.table({"a": table["a"], "b": [0, 1] * 3 + [2, 0]}), "rare.csv")
    code, out, err = run(capsys, "audit", "rare.csv", *rest[2:], "b")
    assert (code, out) == (Exit.PARAMETER, "") and "join rare labels" in err


def test_texts_that_are_no_plain_numbers_are_labels_of_their_own():
    alike = [1, 1.0, "1", "1.0", b"1.00", "-0.5", -0.5]
    assert len({_text(value) for value in alike}) == 2
    apart = ["10", "1_0", "007", "7", "1e1", "9007199254740993", "9007199254740992", " 7"]
    assert len({_text(value) for value in apart}) == len(apart)
    assert _text(9007199254740993) == "9007199254740993" and _text(None) == ""
