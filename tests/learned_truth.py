"""Reference cases of the exact tradeoffs, where the folder beside the repository has them."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "data"


def group(name):
    """The cases of a group of ``learned_truth.json``; skips the test where there are none."""
    path = FOLDER / "learned_truth.json"
    if not path.exists():
        pytest.skip("the reference cases are not beside this checkout")
    cases = [case for case in json.loads(path.read_text()) if case["group"] == name]
    assert cases
    return cases


def channels():
    """The discrete cases of ``records_truth.json``."""
    path = FOLDER / "records_truth.json"
    if not path.exists():
        pytest.skip("the reference cases are not beside this checkout")
    return json.loads(path.read_text())["blahut"]["cases"]
