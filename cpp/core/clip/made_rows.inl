// Rows that a pass cannot read where they lie: of integers, apart from each other, or columns that it takes as rows
// (and before a matrix, or in a region that is a box, rows with cells that are moved into one of their own). A few are made right before they are read, so that they are in the first
// level of cache, and the memory is asked for others' numbers meanwhile. Each number is read once: what follows
// is of what was made. Included into each target's namespace.

// Bytes asked ahead of what is made, to the second level of cache; of rows whose numbers are apart, to the first.
constexpr std::size_t made_ahead = 8192, gathered_ahead = 4096;

// Do numbers lie one after the other? Then a pass asks for them as it asks for rows that it reads where they lie,
// evenly. (All at once, as rows are made, int64 took 1.4 to 1.7 times as long on a Zen 5.)
static bool are_asked_evenly(const Batch& from) {
  const std::ptrdiff_t size = std::ptrdiff_t(size_of(from.dtype));
  return !from.columns && from.column_stride == size &&
         from.row_stride == size * std::ptrdiff_t(from.d);
}

// Numbers `step` bytes apart; those `ahead` bytes on are asked for, each by itself, which the memory's own ways to look
// ahead do not do for rows that are read backwards.
template <class T>
static void gather_numbers(const char* from, std::ptrdiff_t step, std::size_t n,
                           std::ptrdiff_t ahead, double* to) {
  for (std::size_t k = 0; k < n; ++k, from += step) {
    T x;
    __builtin_prefetch(from + ahead);  // without it compilers gather by vectors, which takes longer
    std::memcpy(&x, from, sizeof x);
    to[k] = as_double(x);
  }
}

// Rows of an array as doubles; where its columns' numbers are the nearer ones, eight columns at a time, so that
// lines are read once.
template <class T>
static void gather_rows(const Batch& from, std::size_t i, std::size_t n, double* to) {
  const std::size_t d = from.d;
  const auto across = std::size_t(std::abs(from.column_stride)),
             down = std::size_t(std::abs(from.row_stride));
  if (from.column_stride == std::ptrdiff_t(sizeof(T))) {
    const bool dense = from.row_stride == std::ptrdiff_t(d * sizeof(T));
    const std::size_t runs = dense ? 1 : n, length = dense ? n * d : d;
    for (std::size_t r = 0; r < runs; ++r) convert_all<T>(row_at(from, i + r), length, to + r * d);
    return;
  }
  const auto gather = [&](std::size_t j, std::size_t r, std::size_t count, std::ptrdiff_t ahead) {
    gather_numbers<T>(number_at(from, j, i + r), from.column_stride, count, ahead, to + r * d + j);
  };
  if (across < down) {
    const std::ptrdiff_t ahead = std::ptrdiff_t(gathered_ahead / down + 1) * from.row_stride;
    for (std::size_t r = 0; r < n; ++r) gather(0, r, d, ahead);
    return;
  }
  for (std::size_t j = 0; j < d; j += vec_lanes)
    for (std::size_t r = 0; r < n; ++r)
      gather(j, r, std::min(d - j, norm_lanes), vec_lanes * from.column_stride);
}

// The same with cells moved into the box, if there is one.
static void make_doubles(const MadeRows& made, std::size_t i, std::size_t n, double* to) {
  const Batch& from = made.from;
  const Region& region = made.region;
  const std::ptrdiff_t size = std::ptrdiff_t(size_of(from.dtype));
  const bool moves_floats = region.lower && from.column_stride == size && is_floating(from.dtype);
  if (moves_floats && from.dtype == Dtype::float32)
    return move_rows<float>(row_at(from, i), from.row_stride, n, region, to);
  if (moves_floats) return move_rows<double>(row_at(from, i), from.row_stride, n, region, to);
  with_type(from.dtype, [&](auto number) { gather_rows<decltype(number)>(from, i, n, to); });
  if (!region.lower) return;
  copied();
  move_rows<double>(reinterpret_cast<const char*>(to), std::ptrdiff_t(from.d * sizeof *to), n,
                    region, to);
}

// n numbers of any column, also of an array with other strides; NaN where one is left out.
static void copy_run(const Batch& batch, std::size_t j, std::size_t i, std::size_t n, double* to) {
  if (!batch.columns || !batch.types || is_floating(batch.types[j])) {
    for (std::size_t k = 0; k < n; ++k) to[k] = number_of(batch, j, i + k);
    return;
  }
  convert_run(batch, j, i, n, to);
  for (std::size_t k = 0; batch.valid && k < n; ++k)
    to[k] = or_nan(to[k], left_out(batch.valid[j], batch.first + i + k));
}

// n rows from row i on, one after the other: eight columns at a time, so that their lines are read once.
// make(j, i, n, to): a run of at most 64 numbers.
template <class T, class Make>
static void interleave_runs(std::size_t d, std::size_t i, std::size_t n, T* to, const Make& make) {
  constexpr std::size_t run = 64;
  alignas(64) double runs[vec_lanes][run];
  for (std::size_t end = i + n; i < end; i += run, to += run * d) {
    const std::size_t rows = end - i < run ? end - i : run;
    for (std::size_t j = 0; j < d; j += vec_lanes) {
      const std::size_t columns = d - j < vec_lanes ? d - j : vec_lanes;
      for (std::size_t l = 0; l < columns; ++l) make(j + l, i, rows, runs[l]);
      for (std::size_t k = 0; k < rows; ++k)
        for (std::size_t l = 0; l < columns; ++l) to[k * d + j + l] = T(runs[l][k]);
    }
  }
}

// Rows i to i + count, and others behind them.
template <class T>
static __attribute__((noinline)) void make_rows(MadeRows& made, std::size_t i, std::size_t count) {
  const Batch& from = made.from;
  const std::size_t n = std::min(std::max(made.step, count), from.n - i);
  T* to = reinterpret_cast<T*>(made.to);
  made.first = i, made.end = i + n;
  if constexpr (std::is_same_v<T, double>) {
    if (!from.columns) return make_doubles(made, i, n, to);
    if (made.region.lower)
      return interleave_runs(from.d, i, n, to,
                             [&](auto... run) { make_run(from, made.region, run...); });
  }
  interleave_runs(from.d, i, n, to, [&](auto... run) { copy_run(from, run...); });
}

// Where rows i to i + count lie, from row to row `row_stride` apart; i may not go back, and `count` is at most
// most_rows_in_flight, for which there is room.
template <class T>
static ELLIPSUM_INLINE const char* rows_from(const Batch& rows, std::size_t i, std::size_t count) {
  if (rows.made && i + count > rows.made->end) make_rows<T>(*rows.made, i, count);
  return row_at(rows, i);
}
// What a pass asks for lies so far from here: row i, which it reads at `row`, where that is what others are made of.
static ELLIPSUM_INLINE const char* asked_from(const Batch& rows, std::size_t i, const char* row) {
  return rows.made && rows.made->ahead ? row_at(rows.made->from, i) : row;
}

// Rows that lie one after the other, each `stride` bytes from the last, to before row `end`; and from where on, and
// from one to the next, what is asked for meanwhile is counted.
struct LyingRows {
  const char *from, *asked;
  std::ptrdiff_t stride, asked_stride;
  std::size_t end;
};
// Those of a batch from row i on; of one whose rows are made, those that are made by now, at least `count`. (A loop that
// makes rows itself keeps no sums in registers, around that call.)
template <class T>
static LyingRows lying_rows(const Batch& rows, std::size_t i, std::size_t count) {
  const char* from = rows_from<T>(rows, i, count);
  if (!rows.made) return {from, from, rows.row_stride, rows.row_stride, rows.n};
  const MadeRows& made = *rows.made;
  const std::ptrdiff_t stride = std::ptrdiff_t(made.bytes);
  return {from, asked_from(rows, i, from), stride, made.ahead ? made.from.row_stride : stride,
          made.end};
}
