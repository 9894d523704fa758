// Rows added to the sums of their groups: a table of integers, one row a group. What a row adds is
// what it adds to one sum (the walk of stream.inl: the same operations on each row, in the same
// order); only where it goes differs, so nothing is carried from one row to the next.
// Cost per 8 coordinates of a row: 10 vector operations, 5 loads and 2 stores; the sums' cache
// lines are asked for a group of rows ahead.

// y <- the rows from `i` on, clipped to the box or not yet scaled to the ball, as in walk_step;
// returns the squared norms.
template <class S, int R, Task task>
static inline Vec read_group(Stream& s, const Batch& rows, std::size_t i, VecInt (&changed)[R]) {
  Vec norm2[R];
  const char* row[R];
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    norm2[r] = fill(0.0);
    changed[r] = VecInt{};
    row[r] = row_at(rows, i + std::size_t(r));
  }
  double* record = s.records;
  for (std::size_t j = 0; j < s.d; j += vec_lanes, record += s.stride) {
    const Vec center = load<double>(record + center_slot),
              scale = load<double>(record + scale_slot);
    ELLIPSUM_UNROLL
    for (int r = 0; r < R; ++r) {
      const char* from = row[r] + j * sizeof(S);
      __builtin_prefetch(from + R * rows.row_stride);
      Vec x = j + vec_lanes <= s.d ? load<S>(from) : load_first<S>(from, s.d - j);
      if (task == Task::box) x = held(x);
      Vec y = (x - center) * scale;
      if (task == Task::box) {
        const Vec inside = clamp(y, load<double>(record + limit_slot));
        changed[r] = or_difference(changed[r], y, inside);
        norm2[r] = norm2[r] + x * fill(0.0);  // NaN for a row with a hole
        y = inside;
      } else {
        norm2[r] = norm2[r] + y * y;
      }
      store(record + y_slot + r * vec_lanes, y);
    }
  }
  return sum_lanes_of_each<R>(norm2);
}

// Adds the integers of a row in flight, times its factor, to d sums.
static inline void add_row(const Stream& s, int r, double factor, std::int64_t* to) {
  const Vec magic = fill(rounding_magic), f = fill(factor);
  VecInt minus;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) minus.part[p] = Mask{} - Mask(magic.part[p]);
  const double* record = s.records;
  for (std::size_t j = 0; j < s.d; j += vec_lanes, record += s.stride) {
    const Vec y = load<double>(record + y_slot + r * vec_lanes);
    const VecInt q = add_bits(minus, y * f + magic);
    if (j + vec_lanes <= s.d) {
      VecInt sum = load_ints(to + j);
      ELLIPSUM_UNROLL
      for (int p = 0; p < vec_parts; ++p) sum.part[p] += q.part[p];
      store(to + j, sum);
    } else {
      std::int64_t lanes[vec_lanes];
      store(lanes, q);
      for (std::size_t l = 0; j + l < s.d; ++l) to[j + l] += lanes[l];
    }
  }
}

// S, T: as in stream_groups.
template <class S, class T, int R, Task task>
static void add_to_groups(Stream& s, const Batch& rows, const Origin& from, const GroupSums& to,
                          const std::int64_t* index, std::size_t& i) {
  for (; i + R <= rows.n; i += R) {
    for (std::size_t r = i; r < i + R; ++r) {
      const std::int64_t ahead = index[r + R < rows.n ? r + R : r];
      if (ahead >= 0) __builtin_prefetch(to.table + std::size_t(ahead) * s.d, 1);
    }
    VecInt changed[R];
    Vec norm2 = read_group<S, R, task>(s, rows, i, changed);
    double n2[vec_lanes], factor[vec_lanes];
    if (task == Task::box) {
      store(n2, norm2);
      for (int r = 0; r < R; ++r)
        s.counts.clipped += (n2[r] == 0) & (count_nonzero(changed[r]) > 0);
    }
    if (from.stretch) norm2 = norm2 * load<double>(from.stretch + i);
    if (__builtin_expect(!all_below(norm2, fill(exceptional_norm2)), 0))
      norm2 = replace_exceptional<T, task>(s, from, i, R, norm2);
    const Vec norm = square_root(norm2), radius = fill(s.radius);
    if (task != Task::box) s.counts.clipped += count_above(norm, radius);
    store(factor, task == Task::box ? fill(1.0) : radius / maximum(norm, radius));
    for (int r = 0; r < R; ++r) {
      const std::int64_t group = index[i + std::size_t(r)];
      if (group >= 0) ++to.rows[group];
      add_row(s, r, factor[r], group >= 0 ? to.table + std::size_t(group) * s.d : to.nowhere);
    }
  }
}

// `start`: index of the first row of the pass in the batch of the call.
template <class S, class T, Task task>
static void all_to_groups(Stream& s, const Batch& rows, const Origin& from, const GroupSums& to,
                          std::size_t start) {
  std::size_t i = 0;
  if (s.d <= 128) add_to_groups<S, T, most_in_groups, task>(s, rows, from, to, to.index + start, i);
  add_to_groups<S, T, 1, task>(s, rows, from, to, to.index + start, i);
}

// What a huge row of a matrix has added to the sums of the pass, to its group instead.
static void move_sums(Stream& s, const GroupSums& to, std::size_t row) {
  const std::int64_t group = to.index[row];
  std::int64_t* sums = group >= 0 ? to.table + std::size_t(group) * s.d : to.nowhere;
  for (std::size_t j = 0; j < s.d; ++j) {
    double* record = s.records + j / vec_lanes * s.stride + j % vec_lanes;
    sums[j] += *integers_at(record + sum_slot);
    *integers_at(record + sum_slot) = *integers_at(record + limit_slot) = 0;
  }
}
