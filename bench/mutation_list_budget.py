"""The mutations of ``mutations.py`` in what is spent: shares, marks, exact amounts."""

from __future__ import annotations

from mutation import Mutation, P

BUDGET = [
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
