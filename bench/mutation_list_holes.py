"""The mutations of ``mutations.py`` in rows of which many have holes."""

from __future__ import annotations

from mutation import C, Mutation

TESTS = "tests/test_arrangements.py -k come_and_go"

HOLES = [
    Mutation(
        "blocks: bits of the wrong byte follow where a bitmap begins within one",
        C + "clip/holes.inl",
        "std::uint64_t(gaps.at[8 * w + 8])",
        "std::uint64_t(gaps.at[8 * w + 7])",
        "tests/test_arrangements.py -k bitmap",
    ),
    Mutation(
        "blocks: a row's holes are those of its last column alone",
        C + "clip/column_blocks.inl",
        "b.holes->add(found[k], b.rows);",
        "b.holes->clear();\n      b.holes->add(found[k], b.rows);",
        "tests/test_arrow_columns.py tests/test_holes.py",
    ),
    Mutation(
        "blocks: a row's third hole is its first",
        C + "clip/holes.inl",
        "plane.words[w] ^= carry.words[w], carry.words[w] = both;",
        "plane.words[w] ^= carry.words[w], carry.words[w] = k ? 0 : both;",
        "tests/test_arrangements.py -k bitmap",
    ),
    Mutation(
        "blocks: what lies in a hole is added, where numbers are kept",
        C + "clip/column_blocks.inl",
        "y = empty_holes(y, with_gone(Holes{}, gone));",
        "y = empty_holes(y, with_gone(Holes{}, gone & 0));",
        "tests/test_arrangements.py -k bitmap",
    ),
    Mutation(
        "trials: rows of which many have holes count as others",
        C + "clip/arrangement.cpp",
        "if (!in_columns(batch) && holed * many_holed > std::int64_t(slice)) {",
        "if (holed < 0) {",
        "tests/test_choice.py -k holes",
    ),
    Mutation(
        "rows with holes, C++: an exceptional one is counted twice",
        C + "clip/holed_rows.inl",
        "s.counts.nonfinite -= n2[r] >= exceptional_norm2 && missing[r] > 0;",
        "(void)missing;",
        TESTS,
    ),
    Mutation(
        "rows with holes, C++: their holes are not marked where they wait",
        C + "clip/holed_rows.inl",
        "store(at, mark_holes(y, holes, x));",
        "store(at, y);",
        TESTS,
    ),
    Mutation(
        "rows with holes, C++: their norm is not stretched",
        C + "clip/holed_rows.inl",
        "if (from.region.stretch) norm2 =",
        "if (from.region.stretch && from.stretch) norm2 =",
        TESTS,
    ),
    Mutation(
        "rows with holes, C++: the last of them are left behind",
        C + "clip/holed_rows.inl",
        "  walk_holed<T, R, task, false>(s, g, found);\n  for",
        "  for",
        TESTS,
    ),
    Mutation(
        "rows with holes, C++: magnitudes of halves stay in their own records",
        C + "clip/holed_rows.inl",
        "if (task == Task::halves) add(limit_slot);",
        "",
        TESTS,
    ),
    Mutation(
        "rows with holes, C++: a hole in a box is clamped to its centre as any number",
        C + "clip/holed_rows.inl",
        "Vec y = empty_holes((x - center) * scale, holes);",
        "Vec y = (x - center) * scale;\n    if (task != Task::box) y = empty_holes(y, holes);",
        TESTS,
    ),
    Mutation(
        "rows with holes, C++: their magic numbers are not counted",
        C + "clip/holed_rows.inl",
        "  other.quantised += s.quantised;\n",
        "",
        TESTS,
    ),
    Mutation(
        "arrangements, C++: one is chosen for a whole octave",
        C + "clip/arrangement.cpp",
        "((batch.d - 1) * quarters >> (bits - 1)) % quarters;",
        "0 * ((batch.d - 1) * quarters >> (bits - 1)) % quarters;",
        "tests/test_choice.py -k what_leads",
    ),
    Mutation(
        "balls, C++: what pads the last vector of a row has a centre",
        C + "clip/scratch.inl",
        "std::fill(to + d, to + round_up(d, vec_lanes), 0.0);",
        "std::fill(to + d, to + round_up(d, vec_lanes), 1.0);",
        "tests/test_arrangements.py -k twin",
    ),
    Mutation(
        "balls, C++: each is around 0",
        C + "clip/clip_sum.hpp",
        "at_zero &= region.center[j] == 0;",
        "at_zero &= region.center[j] == region.center[j];",
        "tests/test_arrangements.py -k twin",
    ),
    Mutation(
        "balls, C++: scales of their own are one",
        C + "clip/clip_sum.hpp",
        "if (region.scale[j] != region.scale[0] ||",
        "if (false ||",
        "tests/test_arrangements.py -k twin",
    ),
    Mutation(
        "arrangements, C++: balls and ellipsoids are one class",
        C + "clip/arrangement.cpp",
        "region.form == Form::ellipsoid ? layout",
        "true ? layout",
        "tests/test_choice.py -k what_leads",
    ),
    Mutation(
        "arrangements, C++: rows with gaps are judged by those without",
        C + "clip/arrangement.cpp",
        "return of_gaps;",
        "return of_balls + of_rows - of_table;",
        "tests/test_choice.py -k what_leads",
    ),
]
