"""The mutations of ``mutations.py`` in columns of numbers that are no floats."""

from __future__ import annotations

from mutation import C, Mutation, P

COLUMNS = [
    Mutation(
        "columns in a box, C++: nulls are the numbers below them",
        C + "clip/cell_box.inl",
        "if (gaps.at) holes = with_gaps(holes, gaps, i / vec_lanes);",
        "",
        "tests/test_cell_box.py -k columns",
    ),
    Mutation(
        "columns in a box, C++: a stretch has the nulls of the first",
        C + "clip/table.cpp",
        "  valid.first += from;\n",
        "",
        "tests/test_cell_box.py -k stretches",
    ),
    Mutation(
        "columns in a box, C++: the last few numbers of a stretch have no nulls",
        C + "clip/cell_box.inl",
        "to[i] = is_valid(valid, i) ? number[0] : ends.center;",
        "to[i] = number[0];",
        "tests/test_cell_box.py -k columns",
    ),
    Mutation(
        "columns, C++: integers are rounded twice",
        C + "clip/convert.inl",
        "  else return double(x);",
        "  else return double(float(x));",
        "tests/test_number_columns.py",
    ),
    Mutation(
        "columns, C++: halves of large integers are signed",
        C + "clip/convert.inl",
        "double(std::int64_t(x >> 32))",
        "double(std::int32_t(x >> 32))",
        "tests/test_number_columns.py",
    ),
    Mutation(
        "columns, C++: a truth value's own byte is its number",
        C + "clip/convert.inl",
        "from[i] != 0 ? 1.0 : 0.0",
        "double(from[i])",
        "tests/test_number_columns.py -k bytes",
    ),
    Mutation(
        "columns, C++: converted columns have the nulls of the first rows",
        C + "clip/table.cpp",
        "{batch.valid[j].bits, batch.valid[j].first + from}",
        "{batch.valid[j].bits, batch.valid[j].first}",
        "tests/test_number_columns.py",
    ),
    Mutation(
        "columns, C++: floats beside converted columns are those of the first rows",
        C + "clip/table.cpp",
        "columns_[j] = column_at(batch, j, from);",
        "columns_[j] = column_at(batch, j, 0);",
        "tests/test_number_columns.py",
    ),
    Mutation(
        "columns, C++: truth values begin with a byte",
        C + "../bindings/table_view.cpp",
        "to[k] = std::uint8_t(bits[k] >> shift | above);",
        "to[k] = std::uint8_t(bits[k] | above);",
        "tests/test_number_columns.py -k byte",
    ),
    Mutation(
        "frames: what lies beneath a null of pandas' own types is a number",
        P + "rows/frames.py",
        "if column.isna().any():",
        "if False:",
        "tests/test_number_columns.py -k nulls_are_the_same",
    ),
    Mutation(
        "frames: without pyarrow one null decides whether a frame is read",
        P + "rows/frames.py",
        "if few or pyarrow_missing():",
        "if few:",
        "tests/test_frames.py -k one_null",
    ),
    Mutation(
        "records: an array of another length is read",
        C + "../bindings/bind_records.cpp",
        "array->nd != 1 || array->dimensions[0] != d_ ||",
        "array->nd != 1 ||",
        "tests/test_plain_records.py",
    ),
    Mutation(
        "records: what a mask hides is read",
        C + "../bindings/bind_records.cpp",
        "if (Py_TYPE(record) == array_type_) return read_array(record, row);",
        "if (PyType_IsSubtype(Py_TYPE(record), const_cast<PyTypeObject*>(array_type_)))\n"
        "      return read_array(record, row);",
        "tests/test_plain_records.py",
    ),
    Mutation(
        "records: an integer beyond 64 bits is -1",
        C + "../bindings/bind_records.cpp",
        "return !beyond;",
        "return true;",
        "tests/test_plain_records.py",
    ),
    Mutation(
        "records: None is 0",
        C + "../bindings/bind_records.cpp",
        "number = std::numeric_limits<double>::quiet_NaN();\n    } else if (PyBool",
        "number = 0;\n    } else if (PyBool",
        "tests/test_plain_records.py",
    ),
]
