"""The mutations of ``mutations.py`` in what comes in: bytes, tables, files, names."""

from __future__ import annotations

from mutation import Mutation, P

INPUT = [
    Mutation(
        "from_bytes: a sum beyond its rows",
        P + "partial_bytes.py",
        "    return sum(int(v) ** 2 for v in as_integers(state.low, state.high)) > bound**2",
        "    return False",
        "tests/test_exact_sum.py",
    ),
    Mutation(
        "from_bytes: a box's limits unchecked",
        P + "ellipsoid.py",
        "if float(np.max(limit)) > 2.0**_LIMIT_BITS:",
        "if False:",
        "tests/test_ellipsoid.py -k limits",
    ),
    Mutation(
        "from_bytes: checksum unread",
        P + "sum_bytes.py",
        "if not is_whole(raw):",
        "if False:",
        "tests/test_exact_sum.py",
    ),
    Mutation(
        "arrow: a null list is read",
        P + "rows/arrow.py",
        "whole &= ~_nulls(array)",
        "pass",
        "tests/test_arrow.py tests/test_arrow_records.py",
    ),
    Mutation(
        "arrow: a null fixed-size list is read",
        P + "rows/arrow.py",
        "return _blank(block, _nulls(array)) if array.null_count else block",
        "return block",
        "tests/test_arrow.py tests/test_arrow_records.py",
    ),
    Mutation(
        "arrow: a decimal beyond its precision is a number",
        P + "rows/decimals.py",
        "none = _beyond(limbs, 10**kind.precision)",
        "none = np.zeros(len(array), bool)",
        "tests/test_arrow.py -k decimal",
    ),
    Mutation(
        "lists: a list of lists is a batch",
        P + "rows/batches.py",
        "    if isinstance(item, (list, tuple)):\n        return False",
        "    if isinstance(item, (list, tuple)):\n        return isinstance(item[:1], list)",
        "tests/test_record_independence.py",
    ),
    Mutation(
        "merge: a sum without rows has no marks",
        P + "exact_sum.py",
        "total._marks = lineage.marks_of(data)",
        "total._marks = lineage.marks_of(data) if state.rows else frozenset()",
        "tests/test_lineage.py",
    ),
    Mutation(
        "from_bytes: coordinates within the bound, and not the norm",
        P + "partial_bytes.py",
        "return sum(int(v) ** 2 for v in",
        "return max(int(v) ** 2 for v in",
        "tests/test_exact_sum.py -k beyond",
    ),
    Mutation(
        "csv: a byte order mark is stripped from the first line alone",
        P + "rows/csv_file.py",
        '.replace(b"\\n" + _MARK, b"\\n")',
        "",
        "tests/test_csv.py",
    ),
    Mutation(
        "cli: texts that are not ours",
        P + "cli/exit.py",
        "if ours and code.co_code[trace.tb_lasti] == _RAISE:",
        "if True:",
        "tests/test_cli_errors.py",
    ),
    Mutation(
        "columns: names in another order are taken by their places",
        P + "column_names.py",
        "return [places[name] for name in self.names]",
        "return None if places else None",
        "tests/test_column_names.py",
    ),
    Mutation(
        "groups: a key without a user is named",
        P + "groups/base.py",
        "named = (counts > 0) & np.array",
        "named = np.array",
        "tests/test_group_selection.py -k no_user",
    ),
    Mutation(
        "keys: two parts of a batch exchange their names",
        P + "groups/keys.py",
        "self._in_turn &= len(fresh) == 1",
        "pass",
        "tests/test_group_keys.py -k fractions",
    ),
    Mutation(
        "resume: a checkpoint takes the same budget in other words",
        P + "jobs/resumable.py",
        'guarantee.to_dict() | {"asked": guarantee.asked}',
        "guarantee.to_dict()",
        "tests/test_resume_groups.py -k words",
    ),
    Mutation(
        "resume: a file that is no checkpoint is removed",
        P + "jobs/checkpoint.py",
        "if not CHECKPOINT_MAGIC.startswith(start):",
        "if False:",
        "tests/test_resume_inside.py -k never_removed",
    ),
    Mutation(
        "resume: counts of other edges go on",
        P + "groups/counts.py",
        'else digest(self.edges), "center"',
        'else b"edges", "center"',
        "tests/test_resume_groups.py -k job_of_counts",
    ),
    Mutation(
        "resume: a kept table of counts loses its units",
        P + "groups/count_table.py",
        "self.units += units",
        "pass",
        "tests/test_resume_groups.py -k several_files",
    ),
]
