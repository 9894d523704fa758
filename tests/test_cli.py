"""The command line: the API's answers, exit codes that mean something, and no data in a message."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import ellipsum
from cli_folder import BUDGET, CENTER, MEAN, NAMES, SD, D, N, folder, inside, released, rows, run
from ellipsum.cli import warm
from ellipsum.cli.exit import Exit
from ellipsum.cli.main import main
from ellipsum.ellipsoid import Ellipsoid
from ellipsum.gaussian_shape import GaussianShape
from ellipsum.kernels.backend import backend, use_kernels
from ellipsum.private_sum import PrivateMean, PrivateSum
from ellipsum.sum_release import MISSING_CENTER

# ---- the API's answers -----------------------------------------------------------------

SHAPES = {
    "ball": (["--ball", "300"], lambda: Ellipsoid.ball(300, d=D)),
    "moved ball": (
        ["--ball", "30", "--center", "center.txt"],
        lambda: Ellipsoid.ball(30, CENTER),
    ),
    "one box": (["--bounds", "-1,250", "--one-pass"], lambda: Ellipsoid.box([-1] * D, [250] * D)),
    "box of a text": (
        ["--bounds", "bounds.csv", "--one-pass"],
        lambda: Ellipsoid.box([0, 100, 0], [100, 250, 200]),
    ),
    "box of names": (
        ["--bounds", "bounds.json", "--one-pass"],
        lambda: Ellipsoid.box([0, 100, 0], [100, 250, 200]),
    ),
    "gaussian": (
        ["--sigma", "sigma.npy", "--center", "center.txt", "--clip-probability", "0.05"],
        lambda: Ellipsoid.for_gaussian(SD, CENTER, 0.05),
    ),
}


@pytest.mark.parametrize("kind, mechanism", [("sum", PrivateSum), ("mean", PrivateMean)])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_release_is_that_of_the_api(capsys, rows, kind, mechanism, neighbors, shape):
    options, region = SHAPES[shape]
    found = released(capsys, kind, "rows.parquet", *BUDGET, "--neighbors", neighbors, *options)
    want = mechanism(region(), epsilon=1, delta=1e-6, neighbors=neighbors)(rows, seed=7)
    assert found["value"] == want.value.tolist()
    assert found["sd"] == want.sd.tolist()
    assert found["columns"] == NAMES
    assert found["private"] is False and "seed" in found["caveats"][0]


@pytest.mark.parametrize("name", ["rows.csv", "rows.npy"])
def test_every_format_gives_the_same_release(capsys, name):
    options = ("--bounds", "bounds.csv", "--one-pass", *BUDGET)
    want = released(capsys, "mean", "rows.parquet", *options)
    assert released(capsys, "mean", name, *options)["value"] == want["value"]


@pytest.mark.parametrize("budget", [["--rho", "0.5"], ["--mu", "1"]])
def test_other_budgets(capsys, rows, budget):
    found = released(capsys, "sum", "rows.npy", "--ball", "300", *budget)
    name, value = budget[0][2:], float(budget[1])
    want = PrivateSum(Ellipsoid.ball(300, d=D), **{name: value})(rows, seed=7)
    assert found["value"] == want.value.tolist()
    assert found[name] == value


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_bounds_alone_are_narrowed_by_a_plan_that_is_named_first(capsys, rows, kind):
    lower, upper = np.array([[0, 100], [100, 250], [0, 200]]).T
    mechanism = PrivateSum if kind == "sum" else PrivateMean
    arguments = [kind, "rows.parquet", *BUDGET, "--bounds", "bounds.csv", "--seed", "7"]
    box = {"lower": lower, "upper": upper, "epsilon": 1, "delta": 1e-6}
    want = mechanism(**box)(rows, seed=7)
    code, out, err = run(capsys, *arguments)
    assert code == 0
    passes = want.plan.passes
    assert err == f"ellipsum: {passes} passes over the data (--plan says what each is for)\n"
    assert run(capsys, *arguments, "--plan")[2] == f"{mechanism(**box).plan(N)}\n"
    assert f"spent {want.plan.summary()}" in out
    found = json.loads(run(capsys, *arguments, "--json")[1])
    np.testing.assert_allclose(found["value"], want.value, rtol=1e-6)


def test_public_rows_set_the_shape(capsys, rows):
    public = rows[1:100]
    shape = GaussianShape.for_sample(public, diagonal=True)
    found = released(capsys, "mean", "rows.parquet", *BUDGET, "--public", "public.parquet")
    want = PrivateMean(shape, epsilon=1, delta=1e-6)(rows, seed=7)
    np.testing.assert_allclose(found["value"], want.value, rtol=1e-5)
    np.testing.assert_allclose(found["sd"], want.sd, rtol=1e-9)


def test_relative_error_is_the_absolute_one_of_standardised_columns(capsys, rows):
    found = released(
        capsys, "mean", "rows.parquet", *BUDGET, "--sigma", "sigma.npy", "--center", "center.txt",
        "--error", "relative",
    )  # fmt: skip
    region = GaussianShape(np.ones(D))
    standard = (rows - CENTER) / SD
    want = PrivateMean(region, epsilon=1, delta=1e-6)(standard, seed=7)
    np.testing.assert_allclose(found["sd"] / SD, want.sd, rtol=1e-6)
    away = (np.array(found["value"]) - CENTER) / SD - want.value  # two noises of this size
    assert (np.abs(away) < 6 * np.sqrt(2) * want.sd).all()


@pytest.mark.parametrize("error", ["absolute", "relative"])
def test_a_correlated_shape_is_that_of_the_public_sample(capsys, rows, error):
    found = released(
        capsys, "mean", "rows.parquet", *BUDGET, "--public", "public.parquet", "--correlated",
        "--error", error,
    )  # fmt: skip
    public = rows[1:100]
    shape = GaussianShape.for_sample(public, error=error or "absolute")
    want = PrivateMean(shape, epsilon=1, delta=1e-6)(rows, seed=7)
    np.testing.assert_allclose(found["sd"], want.sd, rtol=1e-6)
    assert found["parameters"]["shape"] == "matrix"


def test_columns_are_chosen_in_the_order_given(capsys, rows):
    found = released(
        capsys, "mean", "rows.parquet", "rows.csv", *BUDGET, "--ball", "300", "--columns",
        "weight, age",
    )  # fmt: skip
    want = PrivateMean(Ellipsoid.ball(300, d=2), epsilon=1, delta=1e-6)(
        np.tile(rows[:, [2, 0]], (2, 1)), seed=7
    )
    assert found["columns"] == ["weight", "age"]
    assert found["value"] == want.value.tolist()


def test_a_list_column_takes_its_length_from_the_shape_or_from_dim(capsys):
    with_dim = released(capsys, "sum", "list.parquet", "--mu", "1", "--ball", "300", "--dim", "3")
    assert with_dim["columns"] == ["v[0]", "v[1]", "v[2]"]
    of_shape = released(
        capsys, "sum", "list.parquet", "--mu", "1", "--bounds", "bounds.csv", "--one-pass"
    )
    assert len(of_shape["value"]) == D


def test_without_a_seed_two_releases_differ_and_are_private(capsys):
    arguments = ["mean", "rows.npy", *BUDGET, "--ball", "300", "--json"]
    first, second = (json.loads(run(capsys, *arguments)[1]) for _ in range(2))
    assert first["private"] and first["caveats"] == [MISSING_CENTER]
    assert first["value"] != second["value"]


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_no_rows_at_all_are_an_error_only_where_their_number_is_public(capsys, tmp_path, kind):
    (tmp_path / "x.csv").write_text("a,b\n")
    arguments = [kind, str(tmp_path / "x.csv"), *BUDGET, "--bounds", "1,2", "--one-pass"]
    code, _, err = run(capsys, *arguments)
    assert code == Exit.DATA and "no rows" in err
    assert run(capsys, *arguments, "--neighbors", "add-remove")[0] == Exit.OK


# ---- output ----------------------------------------------------------------------------


def test_text_for_a_person(capsys):
    code, out, err = run(
        capsys, "mean", "rows.parquet", *BUDGET, "--bounds", "bounds.csv", "--one-pass"
    )
    assert (code, err) == (Exit.OK, "")
    lines = out.splitlines()
    assert lines[0] == f"private mean of {N} rows, {D} coordinates"
    assert "(1, 1e-06)-DP" in lines[1] and "replace" in lines[1]
    assert lines[2] == f"CAVEAT: {MISSING_CENTER}"
    assert [line.split()[0] for line in lines[5:]] == NAMES


def test_text_says_what_is_noisy_and_what_is_not_private(capsys):
    _, out, _ = run(
        capsys, "mean", "rows.npy", *BUDGET, "--ball", "300", "--neighbors", "add-remove",
        "--seed", "1",
    )  # fmt: skip
    assert "(noisy count)" in out and "CAVEAT: not private: made with a seed" in out
    assert out.startswith("mean of ") and "coordinates, not private\n" in out


def test_text_of_many_coordinates_is_cut(capsys, tmp_path):
    np.save(tmp_path / "wide.npy", np.zeros((5, 100)))
    _, out, _ = run(capsys, "sum", str(tmp_path / "wide.npy"), "--mu", "1", "--ball", "1")
    assert "... and 70 more" in out and len(out.splitlines()) < 40


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_out_writes_what_json_prints(capsys, tmp_path, suffix):
    path = tmp_path / f"release.{suffix}"
    found = released(capsys, "mean", "rows.npy", *BUDGET, "--ball", "300", "--out", str(path))
    if suffix == "json":
        assert json.loads(path.read_text()) == found
        assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
        return
    with np.load(path) as arrays:
        assert json.loads(str(arrays["json"])) == found
        assert arrays["value"].tolist() == found["value"]
        assert (arrays["lower"] < arrays["value"]).all()


def test_an_unbounded_interval_is_null_in_json_and_infinite_in_text(capsys, tmp_path, monkeypatch):
    # One count in twenty would stand out from noise of this size: a key whose does not.
    monkeypatch.setattr("ellipsum.noise_keys.secrets.token_bytes", lambda n: b"\1" * n)
    arguments = ["mean", "rows.npy", "--mu", "1e-6", "--ball", "300", "--neighbors", "add-remove"]
    found = released(capsys, *arguments, "--out", str(tmp_path / "x.npz"))
    assert found["confidence_interval_95"][0][0] is None
    assert np.isnan(np.load(tmp_path / "x.npz")["lower"][0])
    assert "inf" in run(capsys, *arguments)[1]


# ---- info, help, the process -----------------------------------------------------------


def test_info_says_what_runs_and_why(capsys):
    code, out, _ = run(capsys, "info")
    runs = ellipsum.backend()
    assert code == Exit.OK
    assert ellipsum.__version__ in out and runs.reason in out and "pyarrow" in out
    found = json.loads(run(capsys, "info", "--json")[1])
    assert (found["backend"], found["cpu"]) == (runs.name, runs.cpu)
    assert runs.cpu in found["cpus supported"]


def test_info_survives_a_bad_environment_and_missing_packages(capsys, monkeypatch):
    from ellipsum.cli import info as _cli_info

    monkeypatch.setenv("ELLIPSUM_THREADS", "many")
    monkeypatch.setattr(_cli_info, "_OPTIONAL", {"no-such-package": "arrow"})
    out = run(capsys, "info")[1]
    assert "ELLIPSUM_THREADS must be" in out
    assert "no-such-package missing: pip install no-such-package" in out


@pytest.mark.parametrize("command", [[], ["sum"], ["mean"], ["info"], ["demo"]])
def test_help_is_there_and_tells_the_exit_codes(capsys, command):
    code, out, err = run(capsys, *command, "--help")
    assert (code, err) == (Exit.OK, "")
    if command in ([], ["sum"], ["mean"]):
        codes = [value for name, value in vars(Exit).items() if name.isupper()]
        assert all(f" {code}  " in out for code in codes)
    assert "--seed" not in out


def process(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "ellipsum", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_the_process_has_the_same_output_and_exit_codes(capsys):
    arguments = [*MEAN, "--bounds", "bounds.csv", "--json", "--seed", "7"]
    child = process(*arguments)
    out, err = child.communicate()
    assert (child.returncode, out, err) == run(capsys, *arguments)
    child = process("mean", "x.parquet", *BUDGET, "--ball", "1")
    out, err = child.communicate()
    assert (child.returncode, out) == (Exit.DATA, "") and err.count("\n") == 1


def test_an_interrupt_releases_nothing(tmp_path):
    path, shape = tmp_path / "x.npy", (1 << 22, 64)
    header = np.lib.format.header_data_from_array_1_0(np.empty((0, 64)))
    with open(path, "wb") as file:  # sparse: 2 GB to read, a second of work, no space on disk
        np.lib.format.write_array_header_1_0(file, {**header, "shape": shape})
        file.truncate(file.tell() + shape[0] * shape[1] * 8)
    child = process("sum", str(path), "--mu", "1", "--ball", "1", "--progress")
    child.stderr.read(1)  # the bar has begun
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    assert (child.returncode, out) == (Exit.INTERRUPTED, "")
    assert "interrupted; nothing was released" in err and "Traceback" not in err


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["info"], ["mean", "--help"], ["--version"]])
def test_a_reader_that_leaves_is_no_traceback_and_no_success(arguments, unbuffered):
    read, write = os.pipe()
    os.close(read)
    child = subprocess.run(
        [sys.executable, "-m", "ellipsum", *arguments],
        stdout=write,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    os.close(write)
    assert (child.returncode, child.stderr) == (Exit.OUTPUT, b"")


def test_missing_cells_are_ignored_where_asked_for(capsys, tmp_path):
    rows = np.random.default_rng(0).normal(1.0, 1.0, (4000, 3))
    rows[np.random.default_rng(1).random((4000, 3)) < 0.3] = np.nan
    path = tmp_path / "holes.csv"
    lines = [",".join("" if np.isnan(x) else f"{x:.6f}" for x in row) for row in rows]
    path.write_text("\n".join(["a,b,c", *lines]) + "\n")
    arguments = [str(path), "--mu", "1", "--ball", "5", "--json", "--missing"]
    found = json.loads(run(capsys, "mean", *arguments, "ignore")[1])
    assert found["parameters"]["missing"] == "ignore" and len(found["present"]) == 3
    assert np.abs(np.array(found["value"]) - 1.0).max() < 0.15
    drawn = json.loads(run(capsys, "mean", *arguments, "center")[1])
    assert np.abs(np.array(drawn["value"]) - 0.7).max() < 0.1
    code, _, err = run(capsys, "sum", *arguments, "ignore")
    assert (code, err) == (
        Exit.USAGE,
        "ellipsum: --missing ignore goes with mean\n",
    )


# ---- the unit of privacy ---------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_user_column_makes_one_row_a_user(capsys, rows, tmp_path, suffix):
    ids = np.random.default_rng(1).integers(0, 900, N)
    columns = {name: rows[:, j] for j, name in enumerate(NAMES)}
    table = pa.table({"id": [f"p{i}" for i in ids], **columns})
    path = str(tmp_path / f"visits.{suffix}")
    (pq.write_table if suffix == "parquet" else pa.csv.write_csv)(table, path)
    options = ["--ball", "300", *BUDGET]
    found = released(capsys, "mean", path, "--user", "id", *options)
    mean = PrivateMean(Ellipsoid.ball(300, d=D), epsilon=1, delta=1e-6, by="id")
    assert found["value"] == mean(rows, users=ids, seed=7).value.tolist()
    assert found["n"] == len(np.unique(ids)) and found["columns"] == NAMES
    assert found["guarantee"]["unit"] == "all rows of one value of id"
    code, out, _ = run(capsys, "mean", path, "--user", "id", *options)
    assert code == Exit.OK and f"{found['n']} users" in out and "unit: all rows of" in out
    assert run(capsys, "mean", path, "--user", "nobody", *options)[0] == Exit.DATA
    assert run(capsys, "mean", path, "--grouped", *options)[0] == Exit.USAGE


def test_warm_says_where_there_is_nothing_to_compile(capsys):
    pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    if backend().name != "cpp":
        pytest.skip("the fallback was asked for")
    assert main(["info", "--warm"]) == 0
    out, err = capsys.readouterr()
    assert err == "ellipsum: nothing to compile, the C++ kernels run\n"
    assert out.startswith("ellipsum ")


def test_warm_runs_each_step_on_the_fallback_and_says_so(capsys, monkeypatch):
    ran = []
    steps = {name: lambda name=name: ran.append(name) for name in warm.STEPS}
    monkeypatch.setattr(warm, "STEPS", steps)
    with use_kernels("numba"):
        warm.warm()
    err = capsys.readouterr().err
    assert ran == list(steps) and len(ran) >= 5
    assert [f"compiling {name}" in err for name in ran] == [True] * len(ran)
    assert "all compiled" in err


@pytest.mark.parametrize("step", warm.STEPS)
def test_every_step_of_warm_runs(step):
    warm.STEPS[step]()
