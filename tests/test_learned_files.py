"""What a file of a learned release states, and what it cannot state."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from safetensors import safe_open  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from ellipsum.learned import (  # noqa: E402
    GenerativeFilter,
    LocalGuarantee,
    PrivacyNetwork,
    VariationalEncoder,
    load,
)

torch.set_num_threads(1)


def test_files_keep_what_was_evaluated_and_measured_and_take_no_proof(tmp_path):
    path, x = tmp_path / "net.safetensors", np.random.default_rng(3).normal(size=(60, 1))
    affine = PrivacyNetwork("affine", distortion=0.5, steps=2).fit_covariance(np.eye(2) + 1, 1)
    affine.evaluate(np.eye(2) + 1, 1)
    free = PrivacyNetwork(distortion=0.5, steps=2).fit(x, x + 1)
    free.measure(x, x + 1)
    table = PrivacyNetwork("discrete", distortion=0.4, steps=3).fit(x[:, 0] > 0, x[:, 0] > 1)
    wide = GenerativeFilter(1.0, method="isotropic").fit(np.hstack([x, x**2]), x[:, 0] > 0)
    wide.measure(np.hstack([x, x**2]), x[:, 0] > 0, attackers="linear", draws=1)
    kinds = 2 * ["mutual-information-exact"] + 2 * ["mutual-information-estimated"]
    for made, kind in zip((affine, table, free, wide), kinds, strict=True):
        made.save(path)
        assert load(path).guarantee_ == made.guarantee_ and made.guarantee_.kind == kind
        with safe_open(str(path), framework="numpy") as file:
            header = json.loads(file.metadata()["ellipsum"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}
        older = {name: value for name, value in header.items() if name != "guarantee"}
        save_file(arrays, str(path), metadata={"ellipsum": json.dumps(older)})
        assert load(path).guarantee_.kind == (
            "mutual-information-exact" if made is table else kinds[-1]
        )
        for forged in (LocalGuarantee(0.1, 1.0).to_dict(), {"kind": "gdp"}, {}, None):
            text = json.dumps(header | {"guarantee": forged})
            save_file(arrays, str(path), metadata={"ellipsum": text})
            with pytest.raises(ValueError, match="no file can state"):
                load(path)
    proved = GenerativeFilter(mu=2.0, clip=1.0, method="isotropic").fit(x, x[:, 0] > 0)
    proved.save(path)
    with safe_open(str(path), framework="numpy") as file:
        header = json.loads(file.metadata()["ellipsum"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}
    assert "guarantee" not in header
    text = json.dumps(header | {"guarantee": LocalGuarantee(0.1, 1.0).to_dict()})
    save_file(arrays | {"A": 2 * arrays["A"]}, str(path), metadata={"ellipsum": text})
    assert load(path).guarantee_.mu == pytest.approx(1.0, rel=1e-5)  # of the weights, not the file


def test_damaged_files_are_refused_by_one_kind_of_error(tmp_path):
    """Each array, and each entry of the header, left out; files cut short."""
    path, x = tmp_path / "made.safetensors", np.random.default_rng(3).normal(size=(60, 2))
    made = [
        PrivacyNetwork("affine", distortion=0.5, steps=2).fit(x, x),
        GenerativeFilter(mu=2.0, clip=1.0, method="isotropic").fit(x, x[:, 0] > 0),
        VariationalEncoder(1, hidden=(3,), epochs=1).fit(x),
    ]
    for one in made:
        one.save(path)
        with safe_open(str(path), framework="numpy") as file:
            header = json.loads(file.metadata()["ellipsum"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}
        texts = ["{", "[]", "null", json.dumps({k: v for k, v in header.items() if k != "class"})]
        for missing in set(header["values"]) - {"distortion"}:  # which not all have
            values = {k: v for k, v in header["values"].items() if k != missing}
            texts.append(json.dumps(header | {"values": values}))
        refused = [(arrays, text) for text in texts]
        for name in arrays:
            rest = {k: v for k, v in arrays.items() if k != name}
            refused.append((rest, json.dumps(header)))
        for held, text in refused:
            save_file(held or {"none": np.zeros(1)}, str(path), metadata={"ellipsum": text})
            try:
                load(path)
            except ValueError:
                continue
            raise AssertionError(f"{type(one).__name__} was loaded from {text[:40]}")
        whole = path.read_bytes()
        for cut in (0, 1, 8, 100, len(whole) - 1):
            path.write_bytes(whole[:cut])
            with pytest.raises(ValueError):
                load(path)
