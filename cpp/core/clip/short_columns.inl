// Few columns: eight rows side by side, as in short_rows.inl, but each column's numbers lie together
// already. (Of 9 to 12 slabs take 1.2 to 2 times as long on a Zen 4, most of it for their loops.) No y is
// stored (the sums are, where registers are few). Where a row is exceptional, or numbers are left out, slabs
// take over for a while.

constexpr std::size_t short_stretch = 512;  // rows that are looked through for gaps at a time
constexpr std::size_t short_runs =
    2048;  // numbers of all columns' runs: half of the first level of cache
// Where registers are fewer, this was up to 1.4 times as slow as slabs, seldom faster.
constexpr std::size_t most_eights_of_columns =
    register_lanes == 8 ? most_side_by_side : most_short_columns;

// Where each_column has column j of d.
template <std::size_t d> constexpr std::size_t place_of(std::size_t j) {
  std::size_t place = j / norm_lanes;
  for (std::size_t lane = 0; lane < j % norm_lanes; ++lane)
    place += (d - lane + norm_lanes - 1) / norm_lanes;
  return place;
}

// Where a few columns are read from a row on, and which of them as float32; what is asked for meanwhile, and how much
// of it for eight rows: a column's own next numbers, or those that it is made of next. Are cells moved into the region's
// box on the way?
struct FewColumns {
  const char *at[most_side_by_side], *asked[most_side_by_side];
  std::size_t bytes[most_side_by_side];
  bool narrow[most_side_by_side];
  bool move;
};
// Bytes ahead that are asked for: columns a power of two apart have the same lines of the first level of cache, of which
// more than four take half.
constexpr std::size_t columns_ahead(std::size_t d) { return d > 4 ? 2048 : 4096; }

// Columns from row i on to before `end`; integers are made, to runs one after the other in `memory`, and with bitmaps
// all are, which moves them into the box.
template <class T>
static void find_columns(const Columns& s, std::size_t i, std::size_t end, double* memory,
                         FewColumns& to) {
  const std::size_t n = (end - i) / vec_lanes * vec_lanes;  // others are read elsewhere
  const bool moved = s.region.lower && s.batch.valid;
  const Region made = moved ? s.region : without_box(s.region);
  to.move = s.region.lower && !moved;
  for (std::size_t j = 0; j < s.batch.d; ++j) {
    const Dtype type = type_of_column(s.batch, j);
    to.at[j] = number_at(s.batch, j, i), to.narrow[j] = type == Dtype::float32;
    to.asked[j] = to.at[j] + columns_ahead(s.batch.d), to.bytes[j] = bytes_of_eight(type);
    if (!has_runs<T>(s) || !(moved || !is_floating(type))) continue;
    to.asked[j] = to.at[j] + bytes_of(s.batch, j, n);
    make_run(s.batch, made, j, i, n, memory);
    to.at[j] = reinterpret_cast<const char*>(memory), to.narrow[j] = false;
    memory += n;
  }
}

// Eights of ordinary rows from row i on, to before `end`, where columns lie as `from` says.
template <class T, int D, Task task, Form form, bool runs>
static __attribute__((noinline)) void add_eights_of_columns(Columns& s, const FewColumns& from,
                                                            std::size_t& i, std::size_t end) {
  // Each eight waits while the next is read; of more than eight columns only float32 that is scaled gains by it
  // (Zen 4: 1.09 to 1.24 times as fast, unscaled 0.9).
  constexpr bool few =
      D <= vec_lanes || (sizeof(T) == sizeof(float) && !is_unscaled<T, task, form>);
  // And to the second level, which holds more of them; float32 waits for its operations more than for lines.
  constexpr bool far = D > 4 && sizeof(T) == sizeof(double);
  const Region region = s.region;
  std::size_t next = 0;  // copies, which no store can change
  const char* at[D];
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) at[j] = from.at[j];
  Bins bins = s.bins;
  EightSums<D> lanes{};
  const auto read_at = [&](std::size_t row, Vec(&x)[D]) {
    ELLIPSUM_UNROLL
    for (int j = 0; j < D; ++j) {
      const bool narrow = runs && from.narrow[j];
      const char* eight = at[j] + row * (narrow ? sizeof(float) : sizeof(T));
      const char* asked = runs ? from.asked[j] + row / vec_lanes * from.bytes[j]
                               : eight + columns_ahead(std::size_t(D));
      if (far) __builtin_prefetch(asked, 0, 2);
      else __builtin_prefetch(asked);
      if (narrow) x[j] = load<float>(eight);
      else x[j] = load<T>(eight);
    }
    if (runs && from.move) move_eight(region, x);
  };
  add_ordinary<T, D, task, form, few>(region, radius_of<T, task, form>(s), read_at, next, end - i,
                                      lanes, bins);
  i += next;
  s.bins = bins;
  s.counts.clipped += lanes.counts.clipped;
  each_index<task == Task::distances ? 0 : D>([&](int j) {
    const std::size_t place = place_of<D>(std::size_t(j));
    add_total(*sums_at(s, column_sum, place), lanes.sum[j]);
    if (task == Task::halves) add_total(*sums_at(s, column_upper, place), lanes.upper[j]);
  });
}

// For d from D on.
template <class T, Task task, Form form, bool runs = false, int D = 2>
static void add_eights_of_any(Columns& s, const FewColumns& from, std::size_t& i, std::size_t end) {
  if (s.batch.d == std::size_t(D))
    return add_eights_of_columns<T, D, task, form, runs>(s, from, i, end);
  if constexpr (std::size_t(D) < most_eights_of_columns)
    add_eights_of_any<T, task, form, runs, D + 1>(s, from, i, end);
}

// Whole eights from row `i` on, or all but a few: those are left to the caller's slabs.
template <class T, Task task, Form form> static void add_short_columns(Columns& s, std::size_t& i) {
  alignas(64) double runs[short_runs];
  constexpr int vectors = 4;
  constexpr std::size_t careful_rows = (careful_slabs + 1) * vectors * vec_lanes;
  const std::size_t n = s.batch.n, fit = short_runs / s.batch.d / vec_lanes * vec_lanes,
                    rows = has_runs<T>(s) && fit < short_stretch ? fit : short_stretch;
  while (i + vec_lanes <= n) {
    const std::size_t end = n - i < rows ? n : i + rows;
    if (!s.careful && !has_gaps(s, i, end - i)) {
      FewColumns columns;
      find_columns<T>(s, i, end, runs, columns);
      if (has_runs<T>(s))
        add_eights_of_any<T, task, form, sizeof(T) == sizeof(double)>(s, columns, i, end);
      else add_eights_of_any<T, task, form>(s, columns, i, end);
      if (end - i < vec_lanes) continue;
    }
    const std::size_t before = i;
    add_slabs<T, vectors, task>(s, i, n - i < careful_rows ? n : i + careful_rows);
    if (i == before) break;
  }
}
