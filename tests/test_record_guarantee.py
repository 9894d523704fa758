"""What a record release promises: as it was fitted, and never understated."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from ellipsum.records import RecordGuarantee, RecordRelease


def test_the_guarantee_is_that_of_the_fit_whatever_is_set_later():
    public = np.random.default_rng(0).normal(size=(50, 3))
    release = RecordRelease(noise="gaussian", mu=5.0, seed=1).fit(public)
    release.transform(public)
    release.set_params(mu=0.01, seed=None)
    assert release.guarantee.mu == 5.0 and not release.private
    release = RecordRelease(noise="privunit", epsilon=8.0).fit(public)
    release.set_params(epsilon=0.1)
    assert release.guarantee.epsilon() == 8.0 and release.private


@pytest.mark.parametrize("pure", [1.0, 20.0, 33.5, 40.0, 120.0])
def test_the_delta_of_a_pure_release_does_not_cancel(pure):
    promise = RecordGuarantee(0.0, pure, 0.0)
    for part in (0.01, 0.5, 0.9999):
        with mpmath.workdps(60):
            e, e0 = mpmath.mpf(part * pure), mpmath.mpf(pure)
            true = (mpmath.exp(e0) - mpmath.exp(e)) / (1 + mpmath.exp(e0))
            assert true <= promise.delta(part * pure) <= min(1, true * (1 + mpmath.mpf("1e-12")))
    assert str(RecordGuarantee(0.0, 1.0000004, 0.0)).startswith("1.00001-DP")
