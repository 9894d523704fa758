"""One entry of a budget has one answer to each step of a plan, whatever becomes of checkpoints."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from ellipsum import Budget, BudgetError, Checkpoint, CheckpointError, noise
from ellipsum.budget import ledger
from ellipsum.budget.ledger import Ledger
from ellipsum.jobs import resumable
from engine_cases import labelled_table
from test_resume_engines import TABLE, budget_of, drawn_by, far, root_of, run, same

pytestmark = pytest.mark.usefixtures("without_rest")

PLANS = ["plan", "counted plan", "users' plan"]


def other_rows():
    """As many rows, of the same types and labels, with other numbers."""
    table, turned = TABLE, np.roll(np.arange(len(TABLE)), 3) // 3
    for k, name in enumerate(TABLE.column_names[:3]):
        table = table.set_column(k, name, TABLE[name].take(turned))
    return table


def ledger_of(kind, folder):
    plain = budget_of(kind)
    terms = {"neighbors": plain.neighbors.value, "unit": plain.unit}
    return Budget(mu=1, path=folder / "job.ledger", **terms)


def states_of(path, patch):
    """All that a checkpoint is, one write after the other."""
    states, write = [], Checkpoint.write

    def keep(self, body):
        write(self, body)
        if str(path) == self.path:
            states.append(path.read_bytes())

    patch.setattr(Checkpoint, "write", keep)
    return states


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("kept", ["ledger", "memory"])
def test_a_plan_that_is_put_back_repeats_its_release_or_is_refused(
    memory_path, kind, kept, monkeypatch
):
    path = memory_path / "job.ck"
    budget = ledger_of(kind, memory_path) if kept == "ledger" else budget_of(kind)
    with monkeypatch.context() as patch:
        states = states_of(path, patch)
        keys, first = drawn_by(
            monkeypatch, lambda: run(kind, far(kind), resume=path, budget=budget)
        )
    for state in states[:: 1 if kept == "ledger" else 4]:
        path.write_bytes(state)
        more, again = drawn_by(
            monkeypatch, lambda: run(kind, far(kind, seed=1), resume=path, budget=budget)
        )
        assert same(again, first) and more == keys
        path.write_bytes(state)

        def refused():
            with pytest.raises(
                BudgetError, match="this job drew entry 1 of the budget for other rows"
            ):
                run(kind, far(kind, other_rows()), resume=path, budget=budget)

        more, _ = drawn_by(monkeypatch, refused) if state is not states[-1] else ([], None)
        assert more == keys[: len(more)] and len(more) < len(keys)
    assert len(budget.entries) == 1
    path.unlink()
    with pytest.raises(BudgetError, match="no budget"):  # a new job pays for itself
        run(kind, far(kind, other_rows()), resume=path, budget=budget)


def test_of_two_runs_at_once_on_copies_one_is_refused(memory_path):
    """The second comes between two steps of the first, and is the one that answers them."""
    paths, budget = (memory_path / "a.ck", memory_path / "b.ck"), ledger_of("plan", memory_path)
    rows, found = far("plan"), []

    def dies():
        if len(rows.passes) == 2:
            paths[1].write_bytes(paths[0].read_bytes())
            paths[1].chmod(0o600)
            found.append(run("plan", far("plan", other_rows()), resume=paths[1], budget=budget))

    rows.dies = dies
    with pytest.raises(BudgetError, match="put back as it was before, or copied"):
        run("plan", rows, resume=paths[0], budget=budget)
    assert len(found) == 1 and len(budget.entries) == 1


def test_a_step_is_marked_on_the_disk_before_its_noise_is_drawn(memory_path, monkeypatch):
    events, budget = [], ledger_of("plan", memory_path)
    mark = Ledger.mark

    def marked(self, entry, step, of):
        found = mark(self, entry, step, of)
        assert of in (memory_path / "job.ledger").read_text()
        events.append(of)
        return found

    monkeypatch.setattr(Ledger, "mark", marked)

    drawn = noise.rounded_gaussian

    def seen(*known, **more):
        events.append("noise")
        return drawn(*known, **more)

    monkeypatch.setattr(noise, "rounded_gaussian", seen)
    steps = run("plan", far("plan"), resume=memory_path / "job.ck", budget=budget)
    marks = events[::2]
    assert set(events[1::2]) == {"noise"} and len(events) == 2 * len(steps)
    assert len(set(marks)) == len(marks) and "noise" not in marks


def test_marks_are_of_the_key_and_tell_nothing_without_it(memory_path):
    """The same rows twice: no mark is shared, and none is a key of the noise."""
    budget = Budget(mu=2, path=memory_path / "job.ledger")
    for name in "ab":
        run("plan", far("plan"), resume=memory_path / f"{name}.ck", budget=budget)
    lines = (memory_path / "job.ledger").read_text().splitlines()
    marks = [json.loads(x[: x.rindex(" ")])["mark"] for x in lines if '{"mark"' in x]
    values = [mark["of"] for mark in marks]
    assert len(set(values)) == len(values) and all(re.fullmatch("[0-9a-f]{64}", x) for x in values)
    assert {mark["entry"] for mark in marks} == {1, 2}
    for name in "ab":
        assert root_of(memory_path / f"{name}.ck").hex() not in "".join(lines)
    assert len(budget.entries) == 2


def test_a_mark_torn_at_any_byte_is_there_or_is_not(memory_path):
    path = memory_path / "torn.ledger"
    Budget(mu=1, path=path).spend(mu=0.5)
    before = path.read_bytes()
    assert Ledger(path).mark(1, 0, "aa") and not Ledger(path).mark(1, 0, "bb")
    first = path.stat().st_size - 1
    assert Ledger(path).mark(1, 1, "bb")
    whole = path.read_bytes()
    for end in range(len(before), len(whole)):
        path.write_bytes(whole[:end])
        firsts = [Ledger(path).mark(1, 0, told) for told in ("cc", "aa", "cc")]
        there = end >= first  # its line's end may be cut off
        assert firsts == [not there, there, not there]
        assert Budget(path=path).spent == Budget(path=path).entries[0].cost


def test_a_mark_that_cannot_be_written_draws_nothing_and_the_job_goes_on(memory_path, monkeypatch):
    budget, path = ledger_of("plan", memory_path), memory_path / "job.ck"
    append = ledger._append

    def full(fd, data, name):
        if b'"step":2' in data:
            raise ledger.LedgerError(f"{name} cannot be written: No space left on device")
        append(fd, data, name)

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_append", full)

        def stopped():
            with pytest.raises(ledger.LedgerError, match="No space left"):
                run("plan", far("plan"), resume=path, budget=budget)

        assert len(drawn_by(monkeypatch, stopped)[0]) == 2
    found = run("plan", far("plan"), resume=path, budget=budget)
    assert same(found, run("plan", far("plan"), seed=root_of(path))) and len(budget.entries) == 1


def test_a_plan_begun_before_there_were_marks_is_refused(tmp_path, monkeypatch):
    """Its entry may have been answered over other rows, unseen."""
    with monkeypatch.context() as patch:
        patch.setattr(resumable, "_STEPS", "plain")
        run("plan", far("plan"), resume=tmp_path / "job.ck")
    with pytest.raises(CheckpointError, match=r"begun by another version .* stays spent"):
        run("plan", far("plan"), resume=tmp_path / "job.ck")


def test_a_share_pays_for_each_run(memory_path):
    """Runs under a share have no entry in common: nothing is to be marked."""
    budget, table = Budget(mu=2, path=memory_path / "job.ledger"), labelled_table("text")
    with budget.spend(mu=1.5) as share:
        for _ in range(2):
            run("plan", far("plan", table), resume=memory_path / "job.ck", budget=share)
        with pytest.raises(BudgetError, match="no budget"):
            run("plan", far("plan", table), resume=memory_path / "job.ck", budget=share)
    assert b'"mark"' not in (memory_path / "job.ledger").read_bytes()
