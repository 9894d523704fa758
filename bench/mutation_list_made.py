"""The mutations of ``mutations.py`` in rows that the kernels make, or move, on the way."""

from __future__ import annotations

from mutation import C, Mutation

MADE = [
    Mutation(
        "made rows, C++: a group is read beyond those that were made",
        C + "clip/made_rows.inl",
        "rows.made && i + count > rows.made->end",
        "rows.made && i >= rows.made->end",
        "tests/test_made_rows.py",
    ),
    Mutation(
        "made rows, C++: integers stay outside of the cells' box",
        C + "clip/made_rows.inl",
        "  if (!region.lower) return;\n",
        "  return;\n",
        "tests/test_made_rows.py",
    ),
    Mutation(
        "made rows, C++: a truth value's own bit is its number",
        C + "clip/convert.inl",
        "double((x.byte | (0u - x.byte)) >> 7 & 1)",
        "double(x.byte & 1)",
        "tests/test_made_rows.py",
    ),
    Mutation(
        "made rows, C++: columns with gaps are read as rows",
        C + "clip/made_rows.inl",
        "std::min(d - j, norm_lanes), vec_lanes * from.column_stride",
        "std::min(d - j, norm_lanes / 2), vec_lanes * from.column_stride",
        "tests/test_made_rows.py",
    ),
    Mutation(
        "made rows, C++: the last columns of a box have other numbers' ends",
        C + "clip/cell_box.inl",
        "std::copy_n(last, d - j, row);",
        "std::copy_n(last, d - j - 1, row);",
        "tests/test_made_rows.py",
    ),
    Mutation(
        "boxed rows, C++: the lower ends are the upper ones, too",
        C + "clip/stream.inl",
        "upper_end = load<double>(ends + vec_lanes)",
        "upper_end = load<double>(ends)",
        "tests/test_cell_box.py",
    ),
    Mutation(
        "boxed rows, C++: eight rows side by side stay where they are",
        C + "clip/short_rows.inl",
        "if (boxed) move_eight(region, y);",
        "",
        "tests/test_cell_box.py",
    ),
    Mutation(
        "boxed rows, C++: an exceptional row stays where it is",
        C + "clip/cell_box.inl",
        "if (!region.lower) return copy_row",
        "return copy_row",
        "tests/test_cell_box.py",
    ),
    Mutation(
        "boxed rows, C++: rows that were made are moved once more",
        C + "clip/cell_box.inl",
        "rest.lower = rest.upper = nullptr, rest.box = nullptr;",
        "",
        "tests/test_cell_box.py",
    ),
    Mutation(
        "boxed columns, C++: few that were made are moved once more",
        C + "clip/short_columns.inl",
        "to.move = s.region.lower && !moved;",
        "to.move = s.region.lower;",
        "tests/test_cell_box.py -k moved_once",
    ),
    Mutation(
        "distances, C++: edges that are left over of four count no row",
        C + "clip/distances.inl",
        "k < bins.edges; k += edges_at_once",
        "k + edges_at_once <= bins.edges; k += edges_at_once",
        "tests/test_cell_box.py",
    ),
    Mutation(
        "rows, C++: of eight rows the last register of a sum is dropped",
        C + "simd/eight.hpp",
        "  for (int p = 1; p < vec_parts; ++p) sum += Words64(a.part[p]);",
        "  for (int p = 1; p + 1 < vec_parts; ++p) sum += Words64(a.part[p]);",
        "tests/test_short_rows.py",
    ),
]
