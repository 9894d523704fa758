"""The command line's options beside each other: what a plan says, and what goes with what."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli_folder import BUDGET, MEAN, D, N, folder, inside, released, rows, run
from ellipsum.cli.exit import Exit
from ellipsum.private_sum import PrivateMean

BOX = ["--bounds", "0,300"]
PLAN = (
    "--plan goes with --bounds in several passes and --neighbors replace, without --user: "
    "a plan is made from the public number of rows"
)
MAX_ROWS = (
    "--max-rows goes with --neighbors add-remove and a region of one pass: --ball, --sigma, "
    "--public, or --bounds with --one-pass"
)
FILES = "--jobs does not go with --grouped: a user's rows may go on in the next file"
MISSING = "--missing ignore goes with mean"
USERS = ["--user", "age", "--columns", "height,weight"]
JOINED = ["--neighbors", "add-remove", *USERS]

REFUSED = {
    "plan of a user": ([*MEAN, *BOX, "--plan", *USERS], PLAN),
    "plan of add-remove": ([*MEAN, *BOX, "--plan", "--neighbors", "add-remove"], PLAN),
    "plan of one pass": ([*MEAN, *BOX, "--plan", "--one-pass"], PLAN),
    "plan of a ball": ([*MEAN, "--ball", "300", "--plan"], PLAN),
    "plan of a shape": ([*MEAN, "--sigma", "sigma.npy", "--plan"], PLAN),
    "plan of groups": ([*MEAN, *BOX, "--one-pass", "--group", "age", "--plan"], PLAN),
    "rows of no user": ([*MEAN, "--ball", "300", "--max-rows", "2"], "--max-rows goes with --user"),
    "rows of a plan": ([*MEAN, *BOX, "--max-rows", "2", *JOINED], MAX_ROWS),
    "rows that are replaced": ([*MEAN, "--ball", "300", "--max-rows", "2", *USERS], MAX_ROWS),
    "a sum's cells": (["sum", *MEAN[1:], "--ball", "300", "--missing", "ignore"], MISSING),
    "users' files": ([*MEAN, *BOX, *USERS, "--grouped", "--jobs", "2"], FILES),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused_in_the_shells_words(capsys, case):
    arguments, message = REFUSED[case]
    assert run(capsys, *arguments) == (Exit.USAGE, "", f"ellipsum: {message}\n")


@pytest.mark.parametrize(
    "shape",
    [["--ball", "300"], ["--sigma", "short.txt"], ["--public", "public.parquet"],
     [*BOX, "--one-pass"]],
)  # fmt: skip
def test_some_rows_of_a_user_count_over_each_region_of_one_pass(capsys, shape):
    arguments = [*MEAN, *shape, *JOINED, "--max-rows"]
    one, two = (np.array(released(capsys, *arguments, k)["sd"]) for k in "12")
    np.testing.assert_allclose(two, 2 * one, rtol=0.05)  # a user has two rows' noise
    code, _, err = run(capsys, *arguments, "0")
    assert (code, err) == (
        Exit.PARAMETER,
        "ellipsum: --max-rows must be at least 1, got 0\n",
    )


def test_a_plan_is_printed_beside_json_where_it_is_asked_for(capsys):
    plan = PrivateMean(lower=[0] * D, upper=[300] * D, epsilon=1, delta=1e-6).plan(N)
    code, out, err = run(capsys, *MEAN, *BOX, "--json", "--plan")
    assert (code, err) == (Exit.OK, f"{plan}\n")
    assert len(json.loads(out)["value"]) == D
    assert run(capsys, *MEAN, *BOX, "--json")[2] == ""


def test_a_plan_of_too_few_rows_says_so(capsys):
    arguments = ["mean", "short.csv", *BUDGET, *BOX]
    few = "too few rows for this budget: the release is the centre of the domain"
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (Exit.OK, f"ellipsum: {few}\n")
    assert f"\n{few}\n" in out
    assert few in run(capsys, *arguments, "--plan")[2]
