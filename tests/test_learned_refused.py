"""What learned releases refuse by name, and what they take without a word."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ellipsum[learned]")
pytest.importorskip("safetensors", reason="safetensors is not installed: ellipsum[learned]")

from ellipsum import _validate  # noqa: E402
from ellipsum.learned import (  # noqa: E402
    FilterBank,
    GenerativeFilter,
    GuaranteedFilter,
    VariationalEncoder,
)

torch.set_num_threads(1)

ROWS = np.random.default_rng(3).normal(size=(60, 2))
LABEL = ROWS[:, 0] > 0
USERS = np.arange(60) % 2
CHOICES = {user: (LABEL, LABEL) for user in (0, 1)}


@pytest.mark.skipif(
    np.finfo(np.longdouble).max == np.finfo(float).max, reason="long doubles are doubles here"
)
@pytest.mark.filterwarnings("error")
def test_no_warning_tells_of_a_long_double():
    """It said "overflow encountered in cast" where a proved release must say nothing."""
    huge = ROWS.astype(np.longdouble)
    huge[3, 1] = np.longdouble("1e4000")
    proved = GenerativeFilter(mu=2.0, clip=1.0, steps=1)
    encoder = VariationalEncoder(2, hidden=(3,), epochs=1).fit(ROWS)
    for made in (proved, GuaranteedFilter(hidden=(3,), steps=1)):
        assert np.isfinite(made.fit(ROWS, LABEL).transform(huge)).all()
    for bank in (FilterBank(proved), FilterBank(proved, encoder)):
        assert np.isfinite(bank.fit(ROWS, USERS, CHOICES).transform(huge, USERS)).all()
    assert proved.fit(ROWS, LABEL)._mechanism.clip.lengths(huge).shape == (60,)
    assert _validate.numbers("X", huge)[3, 1] == np.inf
