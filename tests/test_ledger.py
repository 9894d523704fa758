"""The ledger file: real processes, kills at every write, torn lines, other people's edits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ellipsum import Budget, BudgetError, Ellipsoid, PrivateSum, compose, open_rows
from ellipsum.budget.ledger import Ledger, LedgerError

QUARTER = Fraction(1, 4)  # of mu; mu^2 = 1/16

#: Forks a spender for each job (all at once, or one after the other) and prints how they ended.
#: A spender takes mu = 1/2, four times, until it is refused, and tells of each that was granted.
#: The step-th call of write, fsync or ftruncate kills it, after a share of what it was to write.
SPENDERS = """
    import json, os, signal, sys, time
    from ellipsum import Budget, BudgetError
    real = {name: getattr(os, name) for name in ("write", "fsync", "ftruncate")}

    def spend(path, log, step, share):
        left = [step]

        def die_at(name):
            def call(*args):
                left[0] -= 1
                if name == "write":
                    time.sleep(0.002)  # so that others come between, unless they are kept out
                if left[0] == 0:
                    if name == "write":
                        real["write"](args[0], bytes(args[1])[: int(share * len(args[1]))])
                    os.kill(os.getpid(), signal.SIGKILL)
                return real[name](*args)
            return call

        log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for name in real:
            setattr(os, name, die_at(name))
        budget = Budget(mu=1, path=path)
        while True:
            try:
                entry = budget.spend(mu=0.5).entry
            except BudgetError:
                return
            real["write"](log, b"%d\\n" % entry.number)

    jobs, together = json.loads(sys.argv[1])
    ends, running = [], []
    for job in jobs:
        child = os.fork()
        if child == 0:
            try:
                spend(*job)
            finally:
                os._exit(0)
        running.append(child)
        if not together:
            ends.append(os.waitpid(running.pop(), 0)[1])
    print(json.dumps(ends + [os.waitpid(child, 0)[1] for child in running]))
"""


def run_spenders(jobs: list[tuple[Path, Path, int, float]], *, together: bool) -> list[int]:
    text = json.dumps([[[str(path), str(log), *rest] for path, log, *rest in jobs], together])
    command = [sys.executable, "-c", textwrap.dedent(SPENDERS), text]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def granted(log: Path) -> list[int]:
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def check(path: Path, log: Path, crashes: int) -> None:
    """Never more than the budget, and every grant stands in the ledger."""
    told = granted(log)
    budget = Budget(path=path)
    kept = {entry.number for entry in budget.entries}
    assert budget.spent.mu_squared <= 1
    assert len(set(told)) == len(told) and set(told) <= kept
    assert len(kept) <= len(told) + crashes  # a crash costs at most one


#: Writes and syncs of a run: three to make a ledger, two for each of four spends.
STEPS = 3 + 2 * 4


@pytest.mark.parametrize("share", [0.0, 0.3, 0.97])
def test_a_kill_at_every_write_loses_no_grant_and_grants_no_more(memory_path, share):
    """The spender is killed at its k-th write or sync, for every k; then another goes on."""
    steps = range(1, STEPS + 2)
    runs = [(memory_path / f"{k}.ledger", memory_path / f"{k}.log", k, share) for k in steps]
    ends = run_spenders(runs, together=False)
    assert ends == [signal.SIGKILL] * STEPS + [0]
    ends = run_spenders([(path, log, 0, 0.0) for path, log, _, _ in runs], together=False)
    assert ends == [0] * (STEPS + 1)
    for path, log, step, _ in runs:
        check(path, log, crashes=step <= STEPS)
        assert Budget(path=path).left.mu < 0.5


def test_eight_processes_share_one_budget_and_half_of_them_are_killed(memory_path):
    path, log = memory_path / "shared.ledger", memory_path / "log"
    jobs = [(path, log, step, 0.5) for step in (1, 3, 4, 5, 0, 0, 0, 0)]
    ends = run_spenders(jobs, together=True)
    assert set(ends) <= {0, signal.SIGKILL}
    check(path, log, ends.count(signal.SIGKILL))
    assert Budget(path=path).left.mu < 0.5


def test_a_last_line_torn_at_any_byte_is_spent(memory_path):
    path = memory_path / "torn.ledger"
    budget = Budget(mu=1, path=path)
    budget.spend(mu=QUARTER)
    before = path.stat().st_size
    budget.spend(mu=0.5)
    whole = path.read_bytes()
    last_line = len(whole) - whole[:-1].rindex(b"\n") - 1
    for cut in range(1, last_line + 1):
        path.write_bytes(whole[:-cut])
        assert Budget(path=path).spent.mu_squared == Fraction(5, 16)
        Budget(path=path).spend(mu=QUARTER)
        again = Budget(path=path)
        assert [entry.number for entry in again.entries] == [1, 2, 3]
        assert again.spent.mu_squared == Fraction(6, 16)
    for cut in range(last_line + 1, len(whole) - before + 1):  # a grant that never was
        path.write_bytes(whole[:-cut])
        Budget(path=path).spend(mu=QUARTER)
        spent = Budget(path=path).spent.mu_squared
        readable = b'"delta":"0/1"' in whole[before:-cut]
        assert spent == Fraction(6 if readable else 2, 16)


def test_a_torn_line_is_closed_also_where_the_closing_is_torn(memory_path):
    path = memory_path / "torn.ledger"
    Budget(mu=1, path=path).spend(mu=QUARTER)
    first = path.read_bytes()[:-9]
    path.write_bytes(first)
    Budget(path=path).spend(mu=QUARTER)
    closed = path.read_bytes()
    for end in range(len(first) + 1, len(closed)):
        path.write_bytes(closed[:end])
        Budget(path=path).spend(mu=QUARTER)
        Budget(path=path).spend(mu=QUARTER)
        assert Fraction(3, 16) <= Budget(path=path).spent.mu_squared <= Fraction(4, 16)


def test_a_line_that_was_altered_is_found(memory_path):
    path = memory_path / "altered.ledger"
    budget = Budget(mu=1, path=path)
    budget.spend(mu=QUARTER, what="first")
    budget.spend(mu=QUARTER, what="second")
    whole = path.read_bytes()
    for old, new in [(b"1/16", b"1/99"), (b"first", b"worst"), (b'"granted":1', b'"granted":7')]:
        path.write_bytes(whole.replace(old, new, 1))
        with pytest.raises(LedgerError, match="altered"):
            Budget(path=path)
    path.write_bytes(whole.replace(b'"mu_squared":"1"', b'"mu_squared":"9"'))
    with pytest.raises(LedgerError, match="no ledger"):
        Budget(path=path)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[3:]))
    with pytest.raises(LedgerError, match="altered"):
        Budget(path=path)


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("last", ["mark", "grant"])
def test_a_last_line_that_was_whole_and_has_another_byte_is_no_torn_one(memory_path, last, end):
    """Else a step that was answered would have a second answer, of other rows."""
    path = memory_path / "altered.ledger"
    Budget(mu=1, path=path).spend(mu=QUARTER, what="my } own mean")
    if last == "mark":
        assert Ledger(path).mark(1, 0, "ab" * 32)
    whole = path.read_bytes()[:-1]
    start = whole.rindex(b"\n") + 1
    for at in range(start, len(whole)):
        news = {b"\n", b" ", b"}", b"0", b"f", b"\xff", bytes([whole[at] ^ 1])}
        # A line whose last byte is lost is a torn one.
        for new in news - {whole[at : at + 1]} - ({b"\n"} if at == len(whole) - 1 else set()):
            path.write_bytes(whole[:at] + new + whole[at + 1 :] + end)
            with pytest.raises(LedgerError, match="was altered: line"):
                Ledger(path).mark(1, 0, "cd" * 32)
    path.write_bytes(whole + b"f")  # the end itself
    with pytest.raises(LedgerError, match="was altered: line"):
        Ledger(path).mark(1, 0, "cd" * 32)
    path.write_bytes(whole + end)
    assert Ledger(path).mark(1, 0, "cd" * 32) == (last != "mark")


@pytest.mark.parametrize("zeros", [0, 1, 9])
@pytest.mark.parametrize("words", ["a", 'a" b', "\u00e9}", "}"])
def test_a_spend_torn_in_words_that_end_as_if_by_a_hash_is_a_torn_one(memory_path, words, zeros):
    """Some file systems leave zeros in the place of what was still to be written."""
    path, hashed = memory_path / "torn.ledger", "0123456789abcdef" * 2
    Budget(mu=1, path=path)
    before = path.stat().st_size
    Budget(path=path).spend(mu=QUARTER, what=f"{words}{hashed} {hashed}")
    whole = path.read_bytes()
    for end in range(before + 1, len(whole) - 1):
        if whole[end : end + 1] == b"\n" and zeros:
            continue  # a whole line whose end has another byte: altered
        path.write_bytes(whole[:end] + bytes(zeros))
        Budget(path=path).spend(mu=QUARTER)
        closed = path.read_bytes()
        path.write_bytes(closed[: end + zeros + 7])  # the closing is torn too
        budget = Budget(path=path)
        budget.spend(mu=QUARTER)
        readable = b'"delta":"0/1"' in whole[:end]
        assert budget.spent.mu_squared == Fraction(2 if readable else 1, 16)


def test_an_amount_that_was_altered_to_no_number_is_found(memory_path):
    path = memory_path / "altered.ledger"
    Budget(mu=1, path=path).spend(mu=QUARTER)
    whole = path.read_bytes()
    for old, new in [(b'"delta":"0/1"', b'"delta":"0/0"'), (b"1/16", b"1/00")]:
        for cut in (0, 1 + len(whole.splitlines()[-1])):
            path.write_bytes(whole.replace(old, new, 1)[: len(whole) - cut])
            with pytest.raises(LedgerError, match="was altered: line 2"):
                Budget(path=path)


def test_a_ledger_that_was_cut_back_is_found_by_whoever_saw_it(memory_path):
    path = memory_path / "cut.ledger"
    budget = Budget(mu=1, path=path)
    fresh = path.read_bytes()
    budget.spend(mu=QUARTER)
    path.write_bytes(fresh)
    with pytest.raises(LedgerError, match="cut back or replaced"):
        budget.spend(mu=QUARTER)


def test_a_torn_spend_that_was_seen_and_is_gone_is_found(memory_path):
    path = memory_path / "cut.ledger"
    Budget(mu=1, path=path)
    fresh = path.read_bytes()
    Budget(path=path).spend(mu=QUARTER)
    path.write_bytes(path.read_bytes()[: len(fresh) + 150])
    budget = Budget(path=path)
    assert budget.spent.mu_squared == Fraction(1, 16)
    path.write_bytes(fresh)
    with pytest.raises(LedgerError, match="cut back or replaced"):
        budget.spend(mu=QUARTER)


def test_a_ledger_that_is_gone_is_not_made_anew_by_whoever_saw_it(memory_path):
    path = memory_path / "gone.ledger"
    budget = Budget(mu=1, path=path)
    budget.spend(mu=1)
    path.unlink()
    with pytest.raises(LedgerError, match="what was spent is no longer all there"):
        budget.spend(mu=1)
    assert not path.exists()


def test_releases_whose_lines_were_torn_count_each(memory_path):
    """Killed in the ledger's write, their jobs go on under torn lines, which tell them apart."""
    path, total = memory_path / "torn.ledger", PrivateSum(Ellipsoid.ball(1.0, d=1), mu=1)
    Budget(mu=2, path=path)
    releases = []
    for k in range(2):
        np.save(memory_path / f"{k}.npy", np.full((5, 1), k))
        rows, job = open_rows(memory_path / f"{k}.npy"), memory_path / f"{k}.ck"
        first = total(rows, budget=Budget(path=path), resume=job)
        whole = path.read_bytes()
        path.write_bytes(whole[: whole.rindex(b'"what"')])
        releases.append(total(rows, budget=Budget(path=path), resume=job))
        assert np.array_equal(releases[k].value, first.value)
        assert releases[k].entry.number == k + 1
    chains = [entry.chain for entry in Budget(path=path).entries]
    assert [release.entry.chain for release in releases] == chains and len(set(chains)) == 2
    assert compose([*releases, *releases]).spent.mu_squared == 2


def test_another_budget_or_another_file_is_refused(memory_path):
    path = memory_path / "one.ledger"
    Budget(mu=1, path=path)
    with pytest.raises(LedgerError, match="another budget"):
        Budget(mu=2, path=path)
    with pytest.raises(LedgerError, match="another budget"):
        Budget(mu=1, neighbors="add-remove", path=path)
    letter = memory_path / "letter.txt"
    letter.write_text("dear reader")
    with pytest.raises(LedgerError, match="no ledger"):
        Budget(mu=1, path=letter)
    assert letter.read_text() == "dear reader"
    with pytest.raises(LedgerError, match="cannot be opened"):
        Budget(path=memory_path / "none")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk to write to")
def test_a_full_disk_grants_nothing_and_spends_nothing(memory_path, monkeypatch):
    path = memory_path / "full.ledger"
    budget = Budget(mu=1, path=path)
    before, write = path.read_bytes(), os.write

    def half(fd: int, data: bytes) -> int:
        if len(data) < 60:
            raise OSError(28, "No space left on device")
        return write(fd, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(LedgerError, match="No space left"):
        budget.spend(mu=QUARTER)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert budget.spend(mu=QUARTER).entry.number == 1


def test_a_sync_that_fails_grants_nothing_and_is_spent(memory_path, monkeypatch):
    budget = Budget(mu=1, path=memory_path / "sync.ledger")

    def fails(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(LedgerError, match="may not be on the disk"):
        budget.spend(mu=QUARTER)
    monkeypatch.undo()
    assert budget.spent.mu_squared == Fraction(1, 16)


def test_what_does_not_fit_is_refused_with_what_is_left(memory_path):
    budget = Budget(mu=1, path=memory_path / "small.ledger")
    budget.spend(mu=0.75)
    before = Path(budget.path).read_bytes()
    with pytest.raises(BudgetError, match=r"mu = 0\.75 is spent; left is mu = 0\.66143"):
        budget.spend(mu=0.75)
    assert Path(budget.path).read_bytes() == before


def test_two_copies_of_a_ledger_never_have_the_same_entry(tmp_path, monkeypatch):
    """One that was put back from a copy, within a second: what drew from both is two releases."""
    path = tmp_path / "a.ledger"
    Budget(mu=1, path=path)
    kept, seen = path.read_bytes(), set()
    for _ in range(3):
        path.write_bytes(kept)
        entry = Budget(path=path).spend(mu=0.5, what="same").entry
        seen.add(entry.chain)
    assert len(seen) == 3
