// Rows added to the sums of their groups: a table of integers, one row a group. What a row adds is
// what it adds to one sum (the walk of stream.inl: the same operations on each row, in the same
// order); only where it goes differs, so nothing is carried from one row to the next.
// Cost per 8 coordinates of a row: 10 vector operations, 5 loads and 2 stores; the sums' cache
// lines are asked for a group of rows ahead.

// What is asked for of the rows to come, the next R of them or more, whole rows on: lines to the first level
// of cache, and far ones to the second, which the first would lose among those of the sums. (Rows of a line
// gain nothing by that; those of add_short_rows are asked for by their number.)
struct RowsAhead {
  std::ptrdiff_t near, far;  // bytes
};
template <int R> static inline RowsAhead rows_ahead(const Batch& rows) {
  if (rows.n <= R) return {0, 0};                        // so few may be any distance apart
  constexpr std::ptrdiff_t first = 2048, second = 8192;  // bytes, at least: 4 to 14 KB are as fast
  const std::ptrdiff_t stride = rows.row_stride, size = std::abs(stride) + (stride == 0);
  const auto on = [&](std::ptrdiff_t bytes) { return (bytes + size - 1) / size * stride; };
  const std::ptrdiff_t near = size * R < first ? on(first) : R * stride;
  return {near, near + on(second)};
}
// From the numbers j, j + 1, ... of a row: once for a line.
template <class T>
static ELLIPSUM_INLINE void ask_rows(const char* from, std::size_t j, RowsAhead ahead) {
  constexpr std::size_t line = 64;
  if (j * sizeof(T) % line) return;
  __builtin_prefetch(from + ahead.near, 0, 3);
  __builtin_prefetch(from + ahead.far, 0, 2);
}

// y <- the rows from `i` on, clipped to the box or not yet scaled to the ball, as in walk_step;
// returns the squared norms.
template <class T, int R, Task task>
static inline Vec read_group(Stream& s, const Batch& rows, std::size_t i, RowsAhead ahead) {
  Vec norm2[R];
  const char* row[R];
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    norm2[r] = fill(0.0);
    row[r] = row_at(rows, i + std::size_t(r));
  }
  double* record = s.records;
  for (std::size_t j = 0; j < s.d; j += vec_lanes, record += s.stride) {
    const Vec center = load<double>(record + center_slot),
              scale = load<double>(record + scale_slot);
    const Vec limit = load<double>(record + limit_slot);
    ELLIPSUM_UNROLL
    for (int r = 0; r < R; ++r) {
      const char* from = row[r] + j * sizeof(T);
      ask_rows<T>(from, j, ahead);
      const Vec x = j + vec_lanes <= s.d ? load<T>(from) : load_first<T>(from, s.d - j);
      Vec y = (x - center) * scale;
      norm2[r] = add_square<task>(norm2[r], y, limit);
      store(record + y_slot(task) + r * vec_lanes, y);
    }
  }
  return sum_lanes_of_each<R>(norm2);
}

// Adds the integers of a row in flight, times its factor, to d sums.
template <Task task>
static inline void add_row(const Stream& s, int r, double factor, std::int64_t* to) {
  const Vec magic = fill(rounding_magic), f = fill(factor);
  VecInt minus;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) minus.part[p] = Mask{} - Mask(magic.part[p]);
  const double* record = s.records;
  for (std::size_t j = 0; j < s.d; j += vec_lanes, record += s.stride) {
    const Vec y = load<double>(record + y_slot(task) + r * vec_lanes);
    const VecInt q = add_bits(minus, y * f + magic);
    if (j + vec_lanes <= s.d) {
      VecInt sum = load_ints(to + j);
      ELLIPSUM_UNROLL
      for (int p = 0; p < vec_parts; ++p) sum.part[p] += q.part[p];
      store(to + j, sum);
    } else {
      add_first(to + j, q, s.d - j);
    }
  }
}

// Rows of at most `chunks` vectors, whose y stay in registers: `add_to_groups` by another way, in
// the same operations. Exceptional rows are none of it: returns whether there was one.
template <class T, int R, int chunks>
static inline bool add_short_rows(Stream& s, const Batch& rows, std::size_t i, const GroupSums& to,
                                  const std::int64_t* index) {
  Vec y[chunks][R], norm2[R];
  ELLIPSUM_UNROLL
  for (int c = 0; c < chunks; ++c) {
    const double* record = s.records + std::size_t(c) * s.stride;
    const Vec center = load<double>(record + center_slot),
              scale = load<double>(record + scale_slot);
    const std::size_t left = s.d - std::size_t(c) * vec_lanes;
    ELLIPSUM_UNROLL
    for (int r = 0; r < R; ++r) {
      const char* from = row_at(rows, i + std::size_t(r)) + c * vec_lanes * int(sizeof(T));
      __builtin_prefetch(from + 2 * R * rows.row_stride);
      if (chunks > 1 && sizeof(T) == sizeof(double))  // 5 to 10 KB on
        __builtin_prefetch(from + 10 * R * rows.row_stride, 0, 2);
      const Vec x = left >= vec_lanes ? load<T>(from) : load_first<T>(from, left);
      y[c][r] = (x - center) * scale;
      norm2[r] = c ? norm2[r] + y[c][r] * y[c][r] : fill(0.0) + y[c][r] * y[c][r];
    }
  }
  const Vec squares = sum_lanes_of_each<R>(norm2);
  if (__builtin_expect(!all_below(squares, fill(exceptional_norm2)), 0)) return true;
  const Vec norm = square_root(squares), radius = fill(s.radius), magic = fill(rounding_magic);
  s.counts.clipped += count_above(norm, radius);
  double factor[vec_lanes];
  store(factor, radius / maximum(norm, radius));
  VecInt minus;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) minus.part[p] = Mask{} - Mask(magic.part[p]);
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    const std::int64_t group = index[i + std::size_t(r)];
    if (group >= 0) ++to.rows[group];
    std::int64_t* sums = group >= 0 ? to.table + std::size_t(group) * s.d : to.nowhere;
    ELLIPSUM_UNROLL
    for (int c = 0; c < chunks; ++c) {
      const std::size_t left = s.d - std::size_t(c) * vec_lanes;
      const VecInt q = add_bits(minus, y[c][r] * fill(factor[r]) + magic);
      add_first(sums + c * vec_lanes, q, left < vec_lanes ? left : vec_lanes);
    }
  }
  return false;
}

template <class T, int R, Task task>
static void add_to_groups(Stream& s, const Batch& rows, const Origin& from, const GroupSums& to,
                          const std::int64_t* index, std::size_t& i) {
  const RowsAhead asked = rows_ahead<R>(rows);
  for (; i + R <= rows.n; i += R) {
    for (std::size_t r = i; r < i + R; ++r) {
      const std::int64_t ahead = index[r + R < rows.n ? r + R : r];
      if (ahead < 0) continue;
      const std::int64_t* sums = to.table + std::size_t(ahead) * s.d;
      __builtin_prefetch(to.rows + ahead, 1);
      for (std::size_t j = 0; j < s.d && j < 64; j += 8) __builtin_prefetch(sums + j, 1);
    }
    if (register_lanes == 8 && R == 8 && task == Task::ball && !from.stretch &&
        s.d <= 2 * vec_lanes) {
      const bool left = s.d <= vec_lanes ? add_short_rows<T, R, 1>(s, rows, i, to, index)
                                         : add_short_rows<T, R, 2>(s, rows, i, to, index);
      if (!left) continue;
    }
    Vec norm2 = read_group<T, R, task>(s, rows, i, asked);
    double factor[vec_lanes];
    if (from.stretch) norm2 = norm2 * load<double>(from.stretch + i);
    if (__builtin_expect(!all_below(norm2, fill(exceptional_norm2)), 0))
      norm2 = replace_exceptional<T, task>(s, from, i, R, norm2);
    const Vec norm = square_root(norm2), radius = fill(s.radius);
    s.counts.clipped += count_above(norm, task == Task::box ? fill(0.0) : radius);
    store(factor, task == Task::box ? fill(1.0) : radius / maximum(norm, radius));
    for (int r = 0; r < R; ++r) {
      const std::int64_t group = index[i + std::size_t(r)];
      if (group >= 0) ++to.rows[group];
      add_row<task>(s, r, factor[r], group >= 0 ? to.table + std::size_t(group) * s.d : to.nowhere);
    }
  }
}

// `start`: index of the first row of the pass in the batch of the call.
template <class T, Task task>
static void all_to_groups(Stream& s, const Batch& rows, const Origin& from, const GroupSums& to,
                          std::size_t start) {
  std::size_t i = 0;
  if (s.d <= 128) add_to_groups<T, most_in_groups, task>(s, rows, from, to, to.index + start, i);
  add_to_groups<T, 1, task>(s, rows, from, to, to.index + start, i);
}

// What a huge row of a matrix has added to the sums of the pass, to its group instead.
static void move_sums(Stream& s, const GroupSums& to, std::size_t row) {
  const std::int64_t group = to.index[row];
  std::int64_t* sums = group >= 0 ? to.table + std::size_t(group) * s.d : to.nowhere;
  for (std::size_t j = 0; j < s.d; ++j) {
    double* record = s.records + j / vec_lanes * s.stride + j % vec_lanes;
    sums[j] += *integers_at(record + sum_slot);
    *integers_at(record + sum_slot) = 0;
  }
}
