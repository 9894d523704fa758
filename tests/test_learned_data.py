"""Readers of one's own rows for the figures of learned releases, and their areas; no training."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the splits are scikit-learn's")

from filter_figures import TABLE3
from learned_baselines import area_under, tabled
from learned_data import Source, columns_of, from_files
from learned_pictures import RESULTS, options

JOBS = ("table2", "table4", "curve")
LINES = """length,sex,rings,weight
0.5,M,9,1.5
0.25,F,11,0.5
0.75,I,10,2.0
0.5,F,12,1.0
"""


@pytest.fixture
def abalone(tmp_path):
    path = tmp_path / "abalone.csv"
    path.write_text(LINES)
    return path


def test_named_columns_of_one_csv_are_labels_and_no_rows(abalone):
    rows, labels = from_files(abalone, abalone, ("sex", "rings>10"))
    assert rows.tolist() == [[0.5, 1.5], [0.25, 0.5], [0.75, 2.0], [0.5, 1.0]]
    assert labels["sex"].tolist() == ["M", "F", "I", "F"]
    assert labels["rings>10"].tolist() == [0, 1, 0, 1]


def test_a_label_is_no_column_of_the_rows_whatever_file_it_comes_from(abalone, tmp_path):
    np.save(tmp_path / "rings.npy", np.array([(9,), (11,), (10,), (12,)], dtype=[("rings", "i8")]))
    rows, labels = from_files(abalone, tmp_path / "rings.npy", ("rings",))
    assert rows.shape == (4, 5)  # a column for each of M, F, I
    assert labels["rings"].tolist() == [9, 11, 10, 12]


def test_parquet_holds_what_the_csv_does(abalone, tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    path = tmp_path / "abalone.parquet"
    parquet.write_table(csv.read_csv(abalone), path)
    for name, column in columns_of(abalone).items():
        assert columns_of(path)[name].tolist() == column.tolist()


def images(folder, n=300):
    rng = np.random.default_rng(0)
    digits = np.arange(n) % 10
    pixels = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
    pixels[:, 0, 0] = digits
    np.save(folder / "images.npy", pixels)
    np.save(folder / "digits.npy", digits)
    return ["--rows", str(folder / "images.npy"), "--labels", str(folder / "digits.npy")]


def test_the_command_reads_images_and_digits(tmp_path):
    given = options("", JOBS, ["curve", *images(tmp_path), "--records", "200"])
    data = given.source.digits()
    assert data.rows.shape == (200, 784) and data.rows.min() == 0 and data.rows.max() == 1
    digit = data.labels["digit"]
    drawn = np.load(tmp_path / "images.npy").reshape(300, -1) / 255.0
    assert all((drawn[np.arange(300) % 10 == k] == row).all(1).any()
               for k, row in zip(digit, data.rows, strict=True))  # fmt: skip
    assert data.labels["circle"].tolist() == [int(k in (0, 6, 8, 9)) for k in digit]
    assert sorted([*data.train, *data.test]) == list(range(200))
    assert given.results != RESULTS and given.jobs == ["curve"]


def test_the_command_reads_tables_and_faces(tmp_path):
    rng = np.random.default_rng(1)
    lines = [f"{a},{b},{c},{x:.3f},0" for (a, b, c), x in zip(
        rng.choice(["no", "yes"], (80, 3)), rng.normal(size=80), strict=True)]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(["Male,Young,Smiling,x,same", *lines]) + "\n")
    files = ["--rows", str(tmp_path / "t.csv"), "--labels", str(tmp_path / "t.csv")]
    named = ["--private", "Male,Young", "--useful", "Smiling"]
    data, hidden, useful = options("", JOBS, ["table4", *files, *named]).source.faces()
    assert hidden == ("Male", "Young") and useful == "Smiling" and data.rows.shape == (80, 2)
    assert all(set(data.labels[name]) == {0, 1} for name in (*hidden, useful))
    named[1] = "Male"
    source = options("", JOBS, ["table2", *files, *named]).source
    data, private, _ = source.table(2)
    assert private == "Male" and not source.of_digits
    assert data.rows.shape == (80, 3)  # x, and Young as texts; without the column that is constant
    assert abs(data.rows.mean(0)).max() < 1e-12 and abs(data.rows.std(0) - 1).max() < 1e-12


def test_the_stand_ins_are_what_is_run_without_files():
    given = options("", JOBS, [])
    assert given.results == RESULTS and not given.source.own
    assert given.source.digits().rows.shape == (1797, 64)
    assert given.source.table(2)[1:] == ("size", "malignant")
    assert given.source.table(3)[1:] == ("sex", "progression")
    assert given.source.faces()[1:][1] == "round" and len(given.source.faces()[1]) == 7
    assert TABLE3 == (0.01, 0.1, 1.0, 10.0)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--labels", "rows.csv"], "go together"),
        (["table9"], "no figure 'table9'"),
    ],
)
def test_options_that_do_not_fit_are_refused(more, said, capsys):
    with pytest.raises(SystemExit):
        options("", JOBS, more)
    assert said in capsys.readouterr().err


def test_own_files_do_not_go_among_the_committed_results(tmp_path, capsys):
    files = images(tmp_path)
    for more, said in ([], "name the figures"), (["curve", "--results", str(RESULTS)], "stand-ins"):
        with pytest.raises(SystemExit):
            options("", JOBS, [*files, *more])
        assert said in capsys.readouterr().err


def test_files_that_do_not_fit_are_refused(abalone, tmp_path):
    def refused(match, *arguments):
        with pytest.raises(ValueError, match=match):
            from_files(*arguments)

    refused("no column 'age': it has length, sex, rings, weight", abalone, abalone, ("age",))
    refused("cuts a column of texts", abalone, abalone, ("sex>1",))
    refused("must end in", abalone.with_suffix(".xlsx"), abalone, ())
    refused("no column beside the labels", abalone, abalone, ())
    np.save(tmp_path / "few.npy", np.arange(3))
    refused("3 labels, --rows has 4 rows", abalone, tmp_path / "few.npy", ("label",))
    np.save(tmp_path / "gap.npy", np.array([[1.0], [np.nan]]))
    refused("'rows' has cells that are missing", tmp_path / "gap.npy", tmp_path / "few.npy")
    abalone.write_text("a,b\n1\n")
    refused("as many cells as its header", abalone, abalone)
    with pytest.raises(ValueError, match="two classes"):
        abalone.write_text(LINES)
        Source(abalone, abalone, ("rings>10",), "sex").table(3)
    with pytest.raises(ValueError, match="of digits"):
        Source(abalone, abalone, ("sex",), "rings>10").digits()
    with pytest.raises(ValueError, match="digits 0 to 9"):
        np.save(tmp_path / "ten.npy", np.array([1, 2, 3, 10]))
        Source(abalone, tmp_path / "ten.npy").digits()


def test_what_is_read_is_no_pickle(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        columns_of(tmp_path / "objects.npy")


def test_the_area_is_that_of_scikit_learn_and_its_error_that_of_many_draws():
    """One draw against roc_auc_score, with ties; DeLong's error against 400 fresh samples."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(2)
    label = np.arange(2000) % 2
    rows = np.round(rng.normal(size=(2000, 1)) + label[:, None], 1)
    test = np.arange(1600, 2000)
    area, error = area_under(rows, label, test, "linear")
    scaled = StandardScaler().fit(rows[:1600]).transform(rows)
    model = LogisticRegression().fit(scaled[:1600], label[:1600])
    assert abs(area - roc_auc_score(label[test], model.decision_function(scaled[test]))) < 1e-12
    fresh = [
        roc_auc_score(label[test], np.round(rng.normal(size=400) + label[test], 1))
        for _ in range(400)
    ]
    assert abs(error / np.std(fresh) - 1) < 0.25  # its sampling error is 0.035
    twice = area_under(np.array([rows, rows]), label, test, "linear")
    assert abs(twice[0] - area) < 1e-12 and abs(twice[1] / error - 1) < 1e-9


def test_what_a_bit_tells_is_entropy_and_less_by_response():
    label = np.arange(1000) % 2
    assert abs(tabled(label, label) - np.log(2)) < 1e-12
    keep = 1 / (1 + np.exp(-2.0))
    told = np.log(2) + keep * np.log(keep) + (1 - keep) * np.log(1 - keep)
    assert abs(tabled(label, label, 2.0) - told) < 1e-12
    assert tabled(np.arange(1000) // 2 % 2, label) < 1e-12
