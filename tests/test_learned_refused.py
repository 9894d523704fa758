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
    PrivacyNetwork,
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


def test_one_row_says_nothing_of_a_law():
    """Its distortion came with a standard error of 0."""
    for made in (
        PrivacyNetwork("affine", distortion=0.5, steps=2),
        PrivacyNetwork("universal", distortion=0.5, steps=2),
    ):
        with pytest.raises(ValueError, match="2 rows or more, got 1"):
            made.fit(ROWS[:1], ROWS[:1])
        assert np.isfinite(made.fit(ROWS[:2], ROWS[:2]).distortion_)
    with pytest.raises(ValueError, match="2 rows or more, got 1"):
        PrivacyNetwork("discrete", distortion=0.5, steps=2).fit([1], [0])


def test_labels_that_are_not_numbers_are_no_class():
    labels = np.where(LABEL, 1.0, 0.0)
    labels[5] = np.nan
    for made in (GenerativeFilter(1.0, steps=1), GuaranteedFilter(hidden=(3,), steps=1)):
        with pytest.raises(TypeError, match="none of them missing"):
            made.fit(ROWS, labels)
    with pytest.raises(TypeError, match="none of them missing"):
        PrivacyNetwork("discrete", distortion=0.5, steps=2).fit(labels, LABEL)


def test_a_bank_says_what_users_and_labels_it_needs():
    told = GenerativeFilter(1.0, method="isotropic", uses_label=True)
    made = FilterBank(told).fit(ROWS, USERS, CHOICES)
    with pytest.raises(ValueError, match="give it, row by row"):
        made.transform(ROWS, USERS)
    for labels in ({0: LABEL}, {0: LABEL, 1: None}):
        with pytest.raises(ValueError, match="labels must be given for each user"):
            made.transform(ROWS, USERS, labels)
    for users in (USERS[:-1], USERS[:, None], 0):
        with pytest.raises(ValueError, match="one user for each row"):
            made.transform(ROWS, users, {0: LABEL, 1: LABEL})
    missing = USERS.astype(object)
    missing[3] = None
    with pytest.raises(ValueError, match="none of them missing"):
        made.transform(ROWS, missing, {0: LABEL, 1: LABEL})
