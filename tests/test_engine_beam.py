"""Beam on its local runner: the same bytes for any bundles, batches and single rows."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

from doc_pages import ROOT, run_page

pytest.importorskip("apache_beam", reason="Beam is not installed")

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet
from apache_beam.testing.util import assert_that, equal_to

from ellipsum.engines.beam import BeamRows, SumRows, SumRowsFn
from ellipsum.engines.engine_rows import EngineError
from engine_cases import (
    REGION,
    D,
    assert_resumes,
    assert_same_groups,
    assert_same_groups_of_users,
    assert_same_passes,
    assert_same_releases,
    assert_same_users,
    labelled_table,
    odd_rows,
    want,
    withheld,
)

RUNNER = "FnApiRunner"


def summed(elements, *, reshuffle=False):
    """Check, inside a pipeline, the bytes of what SumRows gives."""
    with beam.Pipeline(runner=RUNNER) as pipeline:
        rows = pipeline | beam.Create(elements, reshuffle=reshuffle)
        total = rows | SumRows(REGION) | beam.Map(lambda total: total.to_bytes())
        assert_that(total, equal_to([want(odd_rows())]))


@pytest.mark.parametrize("batches", [1, 7, 50])
def test_batches_change_no_byte(batches):
    summed(np.array_split(odd_rows(), batches), reshuffle=True)


def test_record_batches_frames_and_single_rows():
    rows = odd_rows()
    columns = dict(zip("abc", rows.T, strict=True))
    summed(pa.table(columns).to_batches(max_chunksize=900))
    mixed = [*rows[:50], *map(tuple, rows[50:90].tolist()), *rows[90:99].tolist()]
    summed([*mixed, rows[99:1000], pa.table(columns).slice(1000)], reshuffle=True)


def test_sums_by_key_and_an_empty_collection():
    rows = odd_rows()
    wanted = [(key, want(rows[key::3])) for key in range(3)]
    with beam.Pipeline(runner=RUNNER) as pipeline:
        keyed = [(k % 3, rows[k : k + 1]) for k in range(len(rows))]
        by_key = pipeline | beam.Create(keyed) | beam.CombinePerKey(SumRowsFn(REGION))
        assert_that(by_key | beam.MapTuple(lambda k, s: (k, s.to_bytes())), equal_to(wanted))
        nothing = pipeline | "none" >> beam.Create([]) | "sum" >> SumRows(REGION)
        empty = nothing | beam.Map(lambda s: s.to_bytes())
        assert_that(empty, equal_to([want(rows[:0])]), label="empty")


def test_a_combiner_keeps_beams_rules():
    """Accumulators may be made, pickled, compacted and merged at any time."""
    rows, rng, fn = odd_rows(), np.random.default_rng(2), SumRowsFn(REGION)
    for _ in range(20):
        bundles = []
        for part in np.split(rows, np.sort(rng.integers(0, len(rows), size=5))):
            bundle = fn.create_accumulator()
            for piece in np.array_split(part, 3):
                bundle = fn.add_input(bundle, piece)
                how = rng.integers(3)
                bundle = fn.compact(bundle) if how == 0 else bundle
                bundle = pickle.loads(pickle.dumps(bundle)) if how == 1 else bundle
            bundles.append(bundle)
        some = fn.merge_accumulators([bundles[k] for k in rng.permutation(6)][:3] and bundles[:3])
        total = fn.extract_output(fn.merge_accumulators([some, *bundles[3:]]))
        assert total.to_bytes() == want(rows)


def test_every_pass_gives_the_same_integers_as_one_array(tmp_path):
    rows, results = odd_rows(), tmp_path / "results"
    results.mkdir()
    table = pa.table(dict(zip("abc", rows.T, strict=True)))
    pa.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=1100)
    pattern = str(tmp_path / "*.parquet")
    read = BeamRows(lambda p: p | beam.io.ReadFromParquetBatched(pattern), str(results), d=D)
    assert_same_passes(read, rows)
    assert_same_releases(read, rows)
    assert not os.listdir(results)  # nothing private is left behind


def labelled(users, folder):
    """What makes pipelines that read some columns of the labelled table, and the table."""
    table = labelled_table(users)

    def make(columns, by):
        batches = table.select([*columns, *by]).to_batches(max_chunksize=400)
        return BeamRows(lambda p: p | beam.Create(batches), str(folder), by=by)

    return table, make


def test_groups_have_the_bytes_of_one_table(tmp_path):
    table, make = labelled("text", tmp_path)
    assert_same_groups(make, table)


def test_groups_of_users_have_the_bytes_of_one_table(tmp_path):
    table, make = labelled("uuid", tmp_path)
    assert_same_groups_of_users(make, table)
    assert not os.listdir(tmp_path)


def test_users_have_the_bits_of_one_table(tmp_path):
    table, make = labelled("text", tmp_path)
    assert_same_users(make, table)


def test_jobs_go_on(tmp_path):
    def make(table, columns, by):
        batches = table.select([*columns, *by]).to_batches(max_chunksize=400)
        return BeamRows(lambda p: p | beam.Create(batches), str(tmp_path / "results"), by=by)

    (tmp_path / "results").mkdir()
    assert_resumes(make, labelled_table("text"), tmp_path)
    assert not os.listdir(tmp_path / "results")


def test_a_bundle_that_runs_again_changes_no_byte(tmp_path):
    """The first attempt of a bundle fails after its rows are added: only the second counts."""
    mark, rows = tmp_path / "failed", odd_rows()

    class FailOnce(SumRowsFn):
        def compact(self, bundle):
            done = super().compact(bundle)
            if not mark.exists():
                mark.touch()
                raise OSError("lost")
            return done

    def attempt():
        with beam.Pipeline(runner=RUNNER) as pipeline:
            total = pipeline | beam.Create([rows]) | beam.CombineGlobally(FailOnce(REGION))
            assert_that(total | beam.Map(lambda s: s.to_bytes()), equal_to([want(rows)]))

    with pytest.raises(Exception, match="lost"):
        attempt()
    attempt()


def test_an_error_of_a_job_quotes_nothing(tmp_path):
    def fail(_):
        raise ValueError("could not convert '4711.5'")

    rows = BeamRows(lambda p: p | beam.Create([1]) | beam.Map(fail), str(tmp_path))
    with pytest.raises(EngineError) as caught:
        rows.exact_sum(REGION)
    assert withheld(caught.value, "4711.5") and not os.listdir(tmp_path)


def test_what_is_no_rows_is_refused(tmp_path):
    with pytest.raises(TypeError, match="region"):
        SumRows(3)
    with pytest.raises(TypeError, match="function of a pipeline"):
        BeamRows(odd_rows(), str(tmp_path))
    fn = SumRowsFn(REGION)
    with pytest.raises(TypeError, match="ReadFromParquetBatched"):
        fn.add_input(fn.create_accumulator(), {"a": 1.0})
    assert fn.extract_output(fn.create_accumulator()).ellipsoid.d == D


def test_the_guide_prints_what_it_shows():
    for wrong in run_page(ROOT / "docs/guides/engines/beam.md"):
        pytest.fail(f"line {wrong.block.line} shows\n{wrong.shown}\nbut prints\n{wrong.printed}")
