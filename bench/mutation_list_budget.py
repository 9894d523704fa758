"""The mutations of ``mutations.py`` in what is spent: shares, marks, exact amounts."""

from __future__ import annotations

from mutation import Mutation, P

BUDGET = [
    Mutation(
        "events of a sample cost what a record that becomes 0 costs",
        P + "accounting/events.py",
        'if neighbors == "replace" and _is_sampled(event):',
        'if neighbors == "other" and _is_sampled(event):',
        "tests/test_budget.py -k sample",
    ),
    Mutation(
        "a budget leaves out what is said beside an event",
        P + "budget/budget.py",
        "if (mu, rho, epsilon) != (None,) * 3:",
        "if (mu, rho, epsilon) == ():",
        "tests/test_budget.py -k accounting",
    ),
    Mutation(
        "ledger: spends of one second have one hash",
        P + "budget/ledger.py",
        "job = job or secrets.token_hex(16)",
        "job = job or ''",
        "tests/test_ledger.py -k same_entry",
    ),
    Mutation(
        "projection: bytes forget a seed",
        P + "records/projection.py",
        "self._caveats = self._caveats or seed_caveats(0 if seeded else None)",
        "self._caveats = self._caveats",
        "tests/test_projection.py -k seed",
    ),
    Mutation(
        "projection: a fork releases what its parent may release",
        P + "records/projection.py",
        "if self._processes - {os.getpid()}:",
        "if self._processes - self._processes:",
        "tests/test_projection.py -k fork",
    ),
    Mutation(
        "groups: a table of visits is one of persons",
        P + "groups/made_of.py",
        "_UNKNOWN in (self.user, other.user) or self.user == other.user",
        "len(self.user) == len(other.user)",
        "tests/test_group_parts.py -k column_of_users",
    ),
    Mutation(
        "second pass: its noise is that of the whole budget",
        P + "records/second_pass.py",
        "multiplier = found.promise.noise_multiplier / math.sqrt(SECOND_SHARE)",
        "multiplier = found.promise.noise_multiplier",
        "tests/test_second_pass.py",
    ),
    Mutation(
        "second pass: the first one's noise is that of the whole budget",
        P + "records/private_moments.py",
        "rounded_up(promise.noise_multiplier / math.sqrt(1 - second) * sensitivity)",
        "rounded_up(promise.noise_multiplier * sensitivity)",
        "tests/test_second_pass.py",
    ),
    Mutation(
        "second pass: one key draws at both noise levels",
        P + "records/private_moments.py",
        "*([second] if second else ())",
        "*()",
        "tests/test_second_pass.py",
    ),
    Mutation(
        "second pass: the noise of the other relation",
        P + "records/second_pass.py",
        "multiplier * region.sensitivity(relation)",
        'multiplier * region.sensitivity("add-remove")',
        "tests/test_second_pass.py",
    ),
    Mutation(
        "ledger: a step has a second mark",
        P + "budget/ledger.py",
        "return kept in (None, mark)",
        "return True",
        "tests/test_resume_marks.py",
    ),
    Mutation(
        "ledger: a mark is not on the disk when it is granted",
        P + "budget/ledger.py",
        'self._write(fd, state, {"mark": {"entry": entry, "step": step, "of": mark}})',
        "pass",
        "tests/test_resume_marks.py",
    ),
    Mutation(
        "ledger: a last line that was altered passes as torn",
        P + "budget/ledger_lines.py",
        "    if broken:",
        "    if False:",
        "tests/test_ledger.py",
    ),
    Mutation(
        "budget in memory: a step has a second mark",
        P + "budget/budget.py",
        "same = self._marks.setdefault((entry.number, step), mark) == mark",
        "same = True",
        "tests/test_resume_marks.py",
    ),
    Mutation(
        "amounts: NumPy's integers stay and wrap around",
        P + "accounting/cost.py",
        "return Fraction(int(value.numerator), int(value.denominator))",
        "return Fraction(value)",
        "tests/test_budget_first.py",
    ),
    Mutation(
        "costs: a guarantee's NumPy integers stay and wrap around",
        P + "accounting/cost.py",
        "if type(number.numerator) is not int:",
        "if False:",
        "tests/test_budget_first.py",
    ),
]
