"""Files of learned releases that were changed: what does not go together is refused, in one way."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from safetensors import safe_open  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from ellipsum.learned import (  # noqa: E402
    FilterBank,
    GenerativeFilter,
    GuaranteedFilter,
    PrivacyNetwork,
    VariationalEncoder,
    load,
)

torch.set_num_threads(1)

ROWS = np.random.default_rng(3).normal(size=(60, 2))
LABEL = ROWS[:, 0] > 0
DAMAGED, NOT_STATED = "the file is damaged", "no file can state"


def parts_of(made, path):
    """The arrays and the header that are saved of something fitted."""
    made.save(path)
    with safe_open(str(path), framework="numpy") as file:
        header = json.loads(file.metadata()["ellipsum"])
        return {name: file.get_tensor(name) for name in file.keys()}, header


def put(path, arrays, header):
    save_file(arrays, str(path), metadata={"ellipsum": json.dumps(header)})
    return path


def table():
    return PrivacyNetwork("discrete", distortion=0.4, steps=3).fit(LABEL, ROWS[:, 0] > 1)


def affine():
    made = PrivacyNetwork("affine", distortion=0.5, steps=2).fit_covariance(np.eye(2) + 1, 1)
    made.evaluate(np.eye(2) + 1, 1)
    return made


def unclipped():
    return GenerativeFilter(1.0, method="isotropic").fit(ROWS, LABEL)


def bank():
    users = np.arange(60) % 2
    one = GenerativeFilter(1.0, method="isotropic")
    return FilterBank(one).fit(ROWS, users, {user: (LABEL, LABEL) for user in (0, 1)})


MAKERS = [
    table,
    affine,
    unclipped,
    bank,
    lambda: GenerativeFilter(mu=2.0, clip=1.0, steps=1).fit(ROWS, LABEL),
    lambda: GenerativeFilter(1.0, method="isotropic", uses_label=True).fit(ROWS, LABEL),
    lambda: GuaranteedFilter(hidden=(3,), steps=1).fit(ROWS, LABEL),
    lambda: VariationalEncoder(1, hidden=(3,), epochs=1).fit(ROWS),
    lambda: PrivacyNetwork("mixture", distortion=0.9, hidden=(3,), steps=1).fit(ROWS, ROWS),
]


@pytest.mark.parametrize("make", MAKERS)
def test_arrays_that_are_not_finite_or_of_another_shape_are_one_error(make, tmp_path):
    """They were loaded, or raised what NumPy and PyTorch say."""
    path = tmp_path / "made.safetensors"
    arrays, header = parts_of(make(), path)
    load(put(path, arrays, header))
    for name, array in arrays.items():
        odd = [np.full_like(array, np.nan), array.astype(np.int64), np.zeros((7, 5, 3))]
        odd += [array[..., None], array.reshape(-1)[:-1], np.concatenate([array, array])]
        if array.dtype == np.float32:
            odd.append(np.full(array.shape, 1e300))
        for other in odd:
            with pytest.raises(ValueError, match=DAMAGED):
                load(put(path, arrays | {name: np.ascontiguousarray(other)}, header))


@pytest.mark.parametrize("make", MAKERS)
def test_numbers_that_are_not_numbers_are_refused(make, tmp_path):
    path = tmp_path / "made.safetensors"
    arrays, header = parts_of(make(), path)
    numbers = {"leakage", "distortion", "scale", "scale_y", "loss", "d", "released"}
    for name in numbers & set(header["values"]):
        for other in (np.nan, np.inf, "1", None, []):
            odd = header | {"values": header["values"] | {name: other}}
            with pytest.raises(ValueError, match=DAMAGED):
                load(put(path, arrays, odd))
    width = load(put(path, arrays, header)).n_features_in_
    for names in (["a"] * (width + 1), ["a"] * (width - 1), "ab"[:width], [1] * width):
        with pytest.raises(ValueError, match=DAMAGED):
            load(put(path, arrays, header | {"names": names}))


@pytest.mark.parametrize(
    "channel",
    [
        [[np.nan, 1.0], [0.5, 0.5]],
        [[-0.5, 1.5], [0.5, 0.5]],
        [[0.5, 0.6], [0.5, 0.5]],
        [[0.0, 0.0], [0.5, 0.5]],
        [[0.5, 0.5]] * 3,
        [0.5, 0.5],
        np.ones((2, 0)),
    ],
)
def test_what_is_no_channel_keeps_no_exact_leakage(channel, tmp_path):
    path = tmp_path / "table.safetensors"
    arrays, header = parts_of(table(), path)
    with pytest.raises(ValueError, match=DAMAGED):
        load(put(path, {"channel": np.array(channel)}, header))
    for letters in ([False], [True, False], [[False, True]] * 2, None):
        odd = header | {"values": header["values"] | {"letters": letters}}
        with pytest.raises(ValueError, match=DAMAGED):
            load(put(path, arrays, odd))
    for leakage in (-0.1, np.log(2) + 0.01):  # of two letters
        odd = header | {"values": header["values"] | {"leakage": leakage}}
        with pytest.raises(ValueError, match=DAMAGED):
            load(put(path, arrays, odd))


def test_who_may_state_what(tmp_path):
    """An unclipped filter's file could state an exact leakage; and any could state NaN."""
    path = tmp_path / "made.safetensors"
    exact = {"kind": "mutual-information-exact", "leakage": 0.1, "gap": 0.0, "model": "a law"}
    measured = {
        "kind": "mutual-information-estimated",
        "lower": 0.1,
        "standard_error": 0.1,
        "attackers": ["mlp"],
        "n_test": 10,
    }
    odd = [("leakage", x) for x in (np.nan, -1.0, -np.inf, "0.1", None)]
    odd += [("gap", x) for x in (np.nan, -1.0, np.inf, "0.1")]
    forged = [exact | {name: value} for name, value in odd]
    odd = [(name, x) for name in ("lower", "standard_error") for x in (np.nan, -1.0, np.inf, "0")]
    odd += [("n_test", x) for x in (-1, 1.5, np.inf, np.nan, True)] + [("attackers", "mlp")]
    forged += [measured | {name: value} for name, value in odd]
    for make, refused in (
        (affine, forged),
        (table, [*forged, exact, measured]),
        (unclipped, [*forged, exact]),
        (MAKERS[-1], [*forged, exact]),
    ):
        made = make()
        arrays, header = parts_of(made, path)
        for stated in refused:
            with pytest.raises(ValueError, match=NOT_STATED):
                load(put(path, arrays, header | {"guarantee": stated}))
        if make is not table:
            assert load(put(path, arrays, header | {"guarantee": measured})).guarantee_.lower == 0.1
    arrays, header = parts_of(bank(), path)
    header["values"]["users"][1]["filter"]["guarantee"] = exact
    with pytest.raises(ValueError, match=NOT_STATED):
        load(put(path, arrays, header))


def test_a_bank_holds_filters_of_its_own_width(tmp_path):
    path = tmp_path / "bank.safetensors"
    arrays, header = parts_of(bank(), path)
    encoder = VariationalEncoder(2, hidden=(3,), epochs=1).fit(ROWS)
    _, other = parts_of(encoder, tmp_path / "encoder.safetensors")
    parts = header["values"]["users"]
    for users in ([], [{"user": 0, "filter": other}], [parts[0] | {"user": []}]):
        with pytest.raises(ValueError, match=DAMAGED):
            load(put(path, arrays, header | {"values": {"users": users, "d": 2}}))
    with pytest.raises(ValueError, match=DAMAGED):
        load(put(path, arrays, header | {"values": header["values"] | {"d": 3}}))


def test_a_release_that_tells_all_is_kept_as_that(tmp_path):
    """X = Y released as it is: infinite, as is the least possible; the gap was NaN."""
    made = PrivacyNetwork("affine", distortion=0.0, steps=2).fit_covariance(np.ones((2, 2)), 1)
    assert made.evaluate(np.ones((2, 2)), 1).excess == 0
    assert made.guarantee_.leakage == np.inf and made.guarantee_.gap == 0
    made.save(tmp_path / "all.safetensors")
    assert load(tmp_path / "all.safetensors").guarantee_ == made.guarantee_
