// Which way the rows of a pass stream, and the ways of those that fit the registers: eight rows of two vectors
// each, one square root and one division for all of them (8 vector operations for 8 coordinates and 1 load of a
// ball, nothing stored), or side by side.

// The squared norm of row i, exceptional as it was read, with what it adds in alone.y: as in
// replace_exceptional.
template <class T, Task task>
__attribute__((noinline, cold)) static double read_alone(Stream& s, const Origin& from,
                                                         std::size_t i) {
  if (!is_mixed(from.region)) {
    const double square = walk_alone<T, task, true>(s, from, i, 0);
    if (square < exceptional_norm2) return square;
  }
  if (task == Task::distances) return double(INFINITY);
  s.counts.clipped += clip_huge(s, from, i);
  return 0;
}

// Rows of `chunks` vectors, all of them or those that are made by now: the walk's operations, but nothing leaves the
// registers between a row's first number and the sums. What was seen of an exceptional row is dropped, and it is read alone.
template <class T, int R, int chunks, Task task, Form form>
static void stream_few(Stream& s, const Batch& rows, const Origin& from, std::size_t& i,
                       const Arrangement& arrangement, HoledWindow& window) {
  const Vec radius = fill(s.radius), numerator = fill(s.numerator);
  const std::size_t left = s.d - (chunks - 1) * vec_lanes;
  Vec center[chunks], scale[chunks], limit[chunks];
  VecInt sum[chunks], upper[chunks];
  ELLIPSUM_UNROLL
  for (int c = 0; c < chunks; ++c) {
    const double* record = s.records + std::size_t(c) * s.stride;
    const std::size_t j = std::size_t(c) * vec_lanes;
    center[c] = load<double>(s.center + j), scale[c] = load<double>(s.scale + j);
    if (task == Task::box) limit[c] = load<double>(record + limit_slot);
    sum[c] = upper[c] = VecInt{};
  }
  std::uint64_t quantised = 0;
  const Ahead ahead = plan_ahead(rows, sizeof(T), R, arrangement);
  LyingRows lying = lying_rows<T>(rows, i, R);
  lying.end = std::min(lying.end, rows.n);
  for (; i + R <= lying.end; i += R) {
    if (window.ends(i) && window.count(i, s.counts) > often_holed && s.spare) {
      s.holed = true;
      break;
    }
    Vec y[chunks][R];
    Group<R> g;
    Asking asking{lying.asked + ahead.offset, ahead.length};
    ELLIPSUM_UNROLL
    for (int r = 0; r < R; ++r) g.norm2[r] = fill(0.0), g.row[r] = lying.from + r * lying.stride;
    lying.from += R * lying.stride, lying.asked += R * lying.asked_stride;
    ELLIPSUM_UNROLL
    for (int c = 0; c < chunks; ++c) {
      ask<R, vec_lanes* int(sizeof(T))>(ahead, asking);
      ELLIPSUM_UNROLL
      for (int r = 0; r < R; ++r) {
        const char* at = g.row[r] + c * vec_lanes * int(sizeof(T));
        const Vec x = c + 1 < chunks || left == vec_lanes ? load<T>(at) : load_first<T>(at, left);
        y[c][r] = scaled<T, task, form>(x, center[c], scale[c]);
        g.norm2[r] =
            add_square<task, squares_are_exact<T, task, form>>(g.norm2[r], y[c][r], limit[c]);
      }
    }
    Vec norm2 = sum_lanes_of_each<R>(g.norm2);
    if (from.stretch) norm2 = norm2 * load<double>(from.stretch + i);
    if (__builtin_expect(!all_below(norm2, fill(exceptional_norm2)), 0)) {
      double n2[vec_lanes];
      store(n2, norm2);
      ELLIPSUM_UNROLL
      for (int r = 0; r < R; ++r) {
        if (n2[r] < exceptional_norm2) continue;
        n2[r] = read_alone<T, task>(s, from, i + std::size_t(r));
        ELLIPSUM_UNROLL
        for (int c = 0; c < chunks; ++c) y[c][r] = load<double>(s.alone.y + c * vec_lanes);
      }
      norm2 = load<double>(n2);
    }
    if (task == Task::distances) count_distances(s.bins, norm2);
    if (task == Task::distances) continue;
    if (task == Task::box) s.counts.clipped += count_above(norm2, fill(0.0));
    double factor[vec_lanes];
    if (task != Task::box) {
      const Vec norm = square_root<R>(norm2);
      s.counts.clipped += count_above(norm, radius);
      store(factor, divide<R>(numerator, maximum(norm, radius)));
    }
    ELLIPSUM_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec by = fill(task == Task::box ? 1.0 : factor[r]);
      ELLIPSUM_UNROLL
      for (int c = 0; c < chunks; ++c) {
        add_clipped<task>(task == Task::box ? y[c][r] : y[c][r] * by, sum[c], upper[c]);
      }
    }
    quantised += R;
  }
  s.quantised += quantised;
  ELLIPSUM_UNROLL
  for (int c = 0; c < chunks; ++c) {
    double* record = s.records + std::size_t(c) * s.stride;
    const auto add = [&](std::size_t slot, const VecInt& more) {
      VecInt all = load_ints(integers_at(record + slot));
      ELLIPSUM_UNROLL
      for (int p = 0; p < vec_parts; ++p)
        all.part[p] = Mask(Words64(all.part[p]) + Words64(more.part[p]));
      store(integers_at(record + slot), all);
    };
    if (task != Task::distances) add(sum_slot, sum[c]);
    if (task == Task::halves) add(limit_slot, upper[c]);
  }
}

// Rows of 9 to 14 coordinates, eight of them side by side, as in short_rows.inl: of two vectors for each row up to
// half would be nothing. Cost of eight rows: 7 vector operations a coordinate (8 of float32) and the permutations
// of load_columns. From row i on, while they are ordinary.
template <class T, int D, Task task, Form form>
static void add_eights_of_rows(Stream& s, const Batch& rows, const Region& region, std::size_t& i,
                               const Arrangement& arrangement) {
  const std::size_t first = i;
  EightSums<D> lanes{};
  add_all_eights<T, D, task, form>(region, rows, i, s.radius, eights_ahead(arrangement), lanes,
                                   s.bins);
  s.counts.clipped += lanes.counts.clipped;
  s.quantised += i - first;
  each_index<task == Task::distances ? 0 : D>([&](int j) {
    double* record = s.records + j / vec_lanes * std::ptrdiff_t(s.stride) + j % vec_lanes;
    add_total(*integers_at(record + sum_slot), lanes.sum[j]);
    if (task == Task::halves) add_total(*integers_at(record + limit_slot), lanes.upper[j]);
  });
}

// Where nothing is divided, two vectors a row are as fast on AVX-512 or faster (Zen 4, float32: distances 1.1 times
// from 9 on, boxes from 12 on).
template <Task task>
constexpr int most_eights =
    register_lanes < 8 || task == Task::ball || task == Task::halves ? int(most_side_by_side)
    : task == Task::box                                              ? 10
                                                                     : vec_lanes;

// For d from D on.
template <class T, Task task, Form form, int D = vec_lanes + 1>
static void add_eights_of_long_rows(Stream& s, const Batch& rows, const Region& region,
                                    std::size_t& i, const Arrangement& arrangement) {
  if constexpr (D <= most_eights<task>) {
    constexpr Form its = is_unscaled<T, task, form> ? form : Form::ellipsoid;
    if (rows.d == std::size_t(D))
      return add_eights_of_rows<T, D, task, its>(s, rows, region, i, arrangement);
    add_eights_of_long_rows<T, task, form, D + 1>(s, rows, region, i, arrangement);
  }
}

// Until the rows end, or so many have holes that the next ones should go another way.
template <class T, Task task, Form form>
static void stream_vectors(Stream& s, const Batch& rows, const Origin& from, std::size_t& i,
                           const Arrangement& arrangement) {
  if constexpr (may_be_boxed<task, form>) {
    if (s.boxed && most_in_flight == 8 && arrangement.rows >= 8)
      stream_groups<T, most_in_flight, task, false, form, true>(s, rows, from, i, arrangement);
    else if (s.boxed && arrangement.rows >= 4)
      stream_groups<T, 4, task, false, form, true>(s, rows, from, i, arrangement);
    else if (s.boxed && arrangement.rows >= 2)
      stream_groups<T, 2, task, false, form, true>(s, rows, from, i, arrangement);
    if (s.boxed) return stream_groups<T, 1, task, false, form, true>(s, rows, from, i, arrangement);
  }
  if constexpr (register_lanes == 8) {
    constexpr Form its = is_unscaled<T, task, form> ? form : Form::ellipsoid;
    HoledWindow window(i, s.counts);
    if (arrangement.registers && s.d > std::size_t(most_eights<task>) && s.d <= most_in_registers)
      while (!s.holed && i + 8 <= rows.n)
        stream_few<T, 8, 2, task, its>(s, rows, from, i, arrangement, window);
  }
  constexpr int most = most_in_flight;
  const std::size_t in_flight = arrangement.rows;
  if constexpr (task == Task::box) {
    if (most == 8 && in_flight == 8) stream_box<T, most, form>(s, rows, i, arrangement);
    else if (in_flight >= 4) stream_box<T, 4, form>(s, rows, i, arrangement);
    else if (in_flight == 3) stream_box<T, 3, form>(s, rows, i, arrangement);
    else if (in_flight == 2) stream_box<T, 2, form>(s, rows, i, arrangement);
    stream_box<T, 1, form>(s, rows, i, arrangement);
  } else {
    if constexpr (sizeof(T) == 4 && task != Task::distances) {
      if (s.keeps && in_flight == 2)
        stream_groups<T, 2, task, true, form>(s, rows, from, i, arrangement);
      else if (s.keeps) stream_groups<T, 4, task, true, form>(s, rows, from, i, arrangement);
    }
    if (s.keeps) return stream_groups<T, 1, task, false, form>(s, rows, from, i, arrangement);
    if (most == 8 && in_flight == 8)
      stream_groups<T, most, task, false, form>(s, rows, from, i, arrangement);
    else if (in_flight >= 4) stream_groups<T, 4, task, false, form>(s, rows, from, i, arrangement);
    else if (in_flight == 3) stream_groups<T, 3, task, false, form>(s, rows, from, i, arrangement);
    else if (in_flight == 2) stream_groups<T, 2, task, false, form>(s, rows, from, i, arrangement);
    stream_groups<T, 1, task, false, form>(s, rows, from, i, arrangement);
  }
}

// The same, by eights side by side where rows may go like that; a while behind an exceptional row as others.
template <class T, Task task, Form form>
static void stream_plain(Stream& s, const Batch& rows, const Origin& from, std::size_t& i,
                         const Arrangement& arrangement) {
  constexpr std::size_t careful_rows = 512;
  const bool dense = rows.row_stride == std::ptrdiff_t(rows.d * sizeof(T));
  const bool eights = arrangement.registers && dense && s.d > norm_lanes &&
                      !is_mixed(from.region) && s.d <= std::size_t(most_eights<task>);
  for (Batch part = rows; eights && !s.holed && i + vec_lanes <= rows.n;) {
    add_eights_of_long_rows<T, task, form>(s, rows, from.region, i, arrangement);
    if (i + vec_lanes > rows.n) break;
    part.n = rows.n - i < careful_rows ? rows.n : i + careful_rows;
    stream_vectors<T, task, form>(s, part, from, i, arrangement);
  }
  if (!s.holed) stream_vectors<T, task, form>(s, rows, from, i, arrangement);
}

template <class T, Task task>
static void stream(Stream& s, const Batch& rows, const Origin& from, const Arrangement& arrangement,
                   std::size_t first = 0) {
  std::size_t i = first;
  s.holed = arrangement.takes == Takes::holed && s.spare;
  for (;; s.holed = false) {
    if (!s.holed) {
      if (s.form == Form::ellipsoid)
        stream_plain<T, task, Form::ellipsoid>(s, rows, from, i, arrangement);
      else if (s.form == Form::ball_at_zero)
        stream_plain<T, task, Form::ball_at_zero>(s, rows, from, i, arrangement);
      else stream_plain<T, task, Form::ball>(s, rows, from, i, arrangement);
      if (!s.holed) return;
      if (arrangement.takes == Takes::plain) break;
    }
    if constexpr (task != Task::distances) stream_holed<T, task>(s, rows, from, i, arrangement);
    if (arrangement.takes == Takes::holed) break;
  }
  s.counts.left = rows.n - i;
}
