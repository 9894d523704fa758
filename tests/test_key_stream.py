"""The key stream: published vectors, and seeking to any word."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum import noise
from ellipsum.kernels import twins

KEY = bytes(range(32))

# ---- key stream -------------------------------------------------------------------------

# Strombergson, "Test Vectors for the Stream Cipher ChaCha" (draft 01), 256-bit keys, 20 rounds.
STROMBERGSON = [
    (
        "00" * 32,
        "00" * 8,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    (
        "c46ec1b18ce8a878725a37e780dfb7351f68ed2e194c79fbc6aebee1a667975d",
        "1ada31d5cf688221",
        "f63a89b75c2271f9368816542ba52f06ed49241792302b00b5e8f80ae9a473af"
        "c25b218f519af0fdd406362e8d69de7f54c604a6e00f353f110f771bdca8ab92",
    ),
]


@pytest.mark.parametrize(("key", "nonce", "stream"), STROMBERGSON)
def test_key_stream_gives_the_published_vectors(kernels, key, nonce, stream):
    want = np.frombuffer(bytes.fromhex(stream), dtype="<u8")
    number = int.from_bytes(bytes.fromhex(nonce), "little")
    got = noise.keystream(want.size, key=bytes.fromhex(key), nonce=number)
    np.testing.assert_array_equal(got, want)


def test_key_stream_gives_the_block_of_rfc_8439_section_2_3_2(kernels):
    # Its 96-bit nonce 000000090000004a00000000 fills words 13-15, so that its counter 1 is
    # block 1 + 0x09000000 * 2^32 of the nonce 0x4a000000 in the original layout.
    want = bytes.fromhex(
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    out = np.empty(8, dtype=np.uint64)
    kernels.keystream(out, KEY, 0x4A000000, 8 * (1 + (0x09000000 << 32)))
    assert out.tobytes() == want


@pytest.mark.parametrize("start", [0, 1, 7, 8, 13, 127, 128, 1000, 8 * (2**32 - 9), 2**61 * 7 + 3])
@pytest.mark.parametrize("n", [0, 1, 7, 9, 300])
def test_key_stream_seeks_to_any_word(kernels, start, n):
    origin = start - start % 8
    whole, part = np.empty(n + 16, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    twins.keystream(whole, KEY, 5, origin)
    kernels.keystream(part, KEY, 5, start)
    np.testing.assert_array_equal(part, whole[start % 8 :][:n])
