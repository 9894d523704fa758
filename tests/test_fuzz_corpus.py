"""The seeds of the fuzzers hold, and the checks would see what they are for."""

from __future__ import annotations

from pathlib import Path

import fuzz_readers
import fuzz_state
import numpy as np
import pytest

from ellipsum import Ellipsoid, ExactSum

FUZZ = Path(__file__).parent / "fuzz"


@pytest.mark.parametrize("path", sorted((FUZZ / "corpus_readers").iterdir()), ids=lambda p: p.name)
def test_a_seed_of_the_readers_holds(path):
    fuzz_readers.check(path.read_bytes())


@pytest.mark.parametrize("path", sorted((FUZZ / "corpus_state").iterdir()), ids=lambda p: p.name)
def test_a_seed_of_the_states_is_a_sum_and_holds(path):
    assert fuzz_state.check_bytes(path.read_bytes())
    fuzz_state.check(path.read_bytes())


def test_a_reader_that_lets_a_record_touch_another_is_seen(monkeypatch):
    def shifted(content, d, suffix, **options):
        return as_found(content, d, suffix, **options)[:-1]

    as_found = fuzz_readers.rows_of
    monkeypatch.setattr(fuzz_readers, "rows_of", shifted)
    with pytest.raises(AssertionError):
        fuzz_readers.check(bytes([fuzz_readers.MODES.index("csv"), 1]) + b"1,2\n3,4")


def test_a_message_that_quotes_a_record_is_seen():
    with pytest.raises(AssertionError, match="quotes a record"):
        fuzz_readers.quotes_nothing(ValueError("cannot read 987654.321"), [b"987654.321,1"])


def test_a_sum_beyond_its_bound_is_seen(monkeypatch):
    total = ExactSum(Ellipsoid.ball(1.0, d=2)).add(np.ones((3, 2)))
    total._totals.with_counts(0, 0, 0, total._totals.absent)
    with pytest.raises(ValueError, match="contradict"):
        ExactSum.from_bytes(total.to_bytes())
    monkeypatch.setattr("ellipsum.exact_sum.is_impossible", lambda *_known: False)
    with pytest.raises(AssertionError):
        fuzz_state.check(total.to_bytes())
