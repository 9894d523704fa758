"""Reading a file's rows, and errors that quote none of them, for tests."""

from __future__ import annotations

import numpy as np
import pytest

CANARY = "987654.321"  # stands in the data, and must stand in no message


def gather(data, d=3):
    return np.concatenate([np.empty((0, d)), *data.batches(d)])


def fails(error, phrase, call):
    with pytest.raises(error, match=phrase) as caught:
        call()
    assert CANARY not in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value
