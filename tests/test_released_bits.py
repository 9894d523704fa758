"""No bit of a release changes unless a commit says so: against a file made before."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reference.released_bits import FILE, PARTS

KEPT = json.loads(FILE.read_text())


def hexadecimal(kept: dict[str, list[str] | str]) -> np.ndarray:
    texts = [text for name in sorted(kept) for text in np.ravel(kept[name])]
    return np.array([float.fromhex(text) for text in texts])


@pytest.mark.parametrize("part", ["sums", "noise", "releases"])
def test_integers_noise_and_releases_are_the_bits_that_were_kept(part):
    assert PARTS[part]() == KEPT[part]


@pytest.mark.parametrize("part", ["levels", "solved", "plans", "radii", "forms"])
def test_what_mathematical_libraries_have_a_part_in_is_what_was_kept(part):
    """Not bit for bit: exponentials and logarithms differ between machines and backends."""
    found = PARTS[part]()
    assert found.keys() == KEPT[part].keys()
    np.testing.assert_allclose(
        hexadecimal(found),
        hexadecimal(KEPT[part]),
        rtol=1e-9 if part == "plans" else 3e-12,
        atol=1e-300,
    )
