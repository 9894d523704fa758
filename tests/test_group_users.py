"""Groups: the column of users, named once for a mechanism or for each call."""

from __future__ import annotations

import pytest

from ellipsum import PrivateCounts, PrivateGroupMean
from test_groups import BALL, STORES, make_table


def test_by_is_the_user_of_every_call_that_names_none():
    data, known = make_table(3), {"keys": STORES, "mu": 0.5, "max_keys": 2}
    mechanism, plain = PrivateGroupMean(BALL, **known, by="u"), PrivateGroupMean(BALL, **known)
    want = plain(data, key="store", user="u", seed=1)
    for user in (None, "u"):
        got = mechanism(data, key="store", user=user, seed=1)
        assert (got.value == want.value).all() and got.guarantee == want.guarantee
    assert mechanism.guarantee_for(None).unit == "all rows of one value of u"
    assert "by='u'" in repr(mechanism)
    part = mechanism.exact_sum(data, key="store")
    assert part.to_bytes() == plain.exact_sum(data, key="store", user="u").to_bytes()
    labels, counts = data[["store", "u"]], PrivateCounts(**known, by="u")
    same = PrivateCounts(**known)(labels, key="store", user="u", seed=1)
    assert (counts(labels, key="store", seed=1).sizes == same.sizes).all()
    for call in (counts, mechanism):
        with pytest.raises(ValueError, match="another column than by"):
            call(data, key="store", user="v")
    with pytest.raises(TypeError, match="column's name"):
        PrivateCounts(**known, by=[1, 2])
