"""The mutations of ``mutations.py`` in the rows of a user from two doubles."""

from __future__ import annotations

from mutation import C, Mutation, P

FILE, TESTS = C + "users/mean_kernels.cpp", "tests/test_run_means.py"

USERS = [
    Mutation(
        "plans over files: small blocks count by their numbers alone",
        P + "rows/kept.py",
        "_BYTES_OF_ARRAY * (arrays + 1)",
        "0 * (arrays + 1)",
        "tests/test_kept_rows.py",
    ),
    Mutation(
        "plans over files: what is kept ends where its room does",
        P + "rows/kept.py",
        "self._blocks = None if self._large else kept",
        "self._blocks = kept",
        "tests/test_kept_rows.py",
    ),
    Mutation(
        "plans over files: a pass that ends early is the whole",
        P + "rows/kept.py",
        "                yield block\n                del block\n        except",
        "                self._blocks = kept\n                yield block\n"
        "                del block\n        except",
        "tests/test_kept_rows.py",
    ),
    Mutation(
        "users: rows whose hashes nearly agree are in any order",
        P + "rows/words.py",
        "    if any((rank.take(here) != rank.take(after)).any() for rank in ranks):",
        "    if len(here) > len(runs):",
        "tests/test_words.py",
    ),
    Mutation(
        "users: parts of rows are joined in the places of others",
        P + "rows/divided.py",
        "all_rows[n - len(rows) : n], all_words[n - len(rows) : n] = rows, words",
        "all_rows[n - len(rows) : n], all_words[: len(rows)] = rows, words",
        "tests/test_words.py -k joined",
    ),
    Mutation(
        "users: rows of two types are joined with a warning of a value",
        P + "rows/divided.py",
        '        with np.errstate(all="ignore"):  # a warning would tell of a value\n'
        "            all_rows",
        "        with np.errstate():\n            all_rows",
        "tests/test_words.py -k signals",
    ),
    Mutation(
        "users: files stay while an error is held",
        P + "rows/divided.py",
        "            data.close()\n        raise",
        "            pass\n        raise",
        "tests/test_user_rows.py -k on_disk",
    ),
    Mutation(
        "groups: a table that was broken off goes on",
        P + "groups/table.py",
        "        self.book.refuse_half()\n",
        "        pass\n",
        "tests/test_interrupted.py -k broken",
    ),
    Mutation(
        "users: of rows of one hash it is a sort that chooses",
        P + "users.py",
        "        order = np.lexsort((*_told_apart(taken(rows, long)).T, ranks, run))\n",
        "        pass\n",
        "tests/test_user_rows.py -k hash",
    ),
    Mutation(
        "users' rows, C++: zeros of either sign have hashes of their own",
        C + "users/rank_kernels.cpp",
        "x.part[p] + Doubles{};",
        "x.part[p];",
        "tests/test_row_ranks.py",
    ),
    Mutation(
        "users' rows, C++: the last columns are in no hash",
        C + "users/rank_kernels.cpp",
        "(j + l < d ? std::uint64_t(own[l]) : 0)",
        "(j + l < d ? std::uint64_t(own[l] & 0) : 0)",
        "tests/test_row_ranks.py",
    ),
    Mutation(
        "users' means, C++: the second double counts as exact",
        FILE,
        "Mask(size < least) & Mask(error_of",
        "Mask(size == size) & Mask(error_of",
        TESTS,
    ),
    Mutation(
        "users' means, C++: what is left beside a quotient counts as exact",
        FILE,
        "Mask(error_of(rest, low, left) == Doubles{}) &",
        "Mask(left == left) &",
        TESTS,
    ),
    Mutation(
        "users' means, C++: what e rounds is that of one number",
        FILE,
        "sums.size.part[p] * k, divisor",
        "sums.size.part[p], divisor",
        TESTS,
    ),
    Mutation(
        "users' means, C++: what s rounds is lost",
        FILE,
        "to.e.part[p] = to.e.part[p] + error;",
        "to.e.part[p] = to.e.part[p];",
        TESTS,
    ),
    Mutation(
        "users' means, C++: holes count as numbers",
        FILE,
        "Doubles(finite & Mask(broadcast(1.0)))",
        "Doubles(Mask(broadcast(1.0)))",
        TESTS,
    ),
    Mutation(
        "users' means, C++: the rest of a division has 29 bits of the quotient",
        FILE,
        "(a - upper * k) - lower * k",
        "(a - upper * k)",
        TESTS,
    ),
    Mutation(
        "users' means, C++: they are sure on both sides of a tie",
        FILE,
        "Mask(from == to)",
        "Mask(from <= to)",
        TESTS,
    ),
    Mutation(
        "users' means, C++: a lone -0 is 0",
        FILE,
        "TwoSums sums{fill(-0.0),",
        "TwoSums sums{fill(0.0),",
        TESTS,
    ),
    Mutation(
        "users' means, C++: a run that goes on begins anew",
        C + "users/run_means.cpp",
        "if (r < runs && empty && contiguous",
        "if (r < runs && contiguous",
        TESTS,
    ),
]
