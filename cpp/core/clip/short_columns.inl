// Short rows in columns: eight side by side, as in short_rows.inl, but each column's numbers lie together
// already. No y is stored (the sums are, where registers are few). Where a row is exceptional, or numbers
// are left out, slabs take over for a while.

constexpr std::size_t short_stretch = 512;  // rows that are looked through for gaps at a time

// Eights of ordinary rows from row i on, to before `end`.
template <class T, int D, Task task>
static __attribute__((noinline)) void add_eights_of_columns(Columns& s, std::size_t& i,
                                                            std::size_t end) {
  // Half of the first level of cache: columns a power of two apart have the same lines of it.
  constexpr int ahead = D > 4 ? short_ahead / 2 : short_ahead;
  const Region region = s.region;
  std::size_t next = i;  // copies, which no store can change
  const char* at[D];
  bool narrow[D];
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    at[j] = number_at(s.batch, std::size_t(j), 0);
    narrow[j] = sizeof(T) == sizeof(double) && is_narrow(s.batch, std::size_t(j));
  }
  Bins bins = s.bins;
  EightSums<D> lanes{};
  const auto read = [&](Vec(&x)[D]) {
    ELLIPSUM_UNROLL
    for (int j = 0; j < D; ++j) {
      const char* from = at[j] + next * (narrow[j] ? sizeof(float) : sizeof(T));
      __builtin_prefetch(from + ahead);
      x[j] = narrow[j] ? load<float>(from) : load<T>(from);
    }
  };
  while (next + vec_lanes <= end && eight_short_rows<D, task, false>(region, read, lanes, bins))
    next += vec_lanes;
  i = next;
  s.bins = bins;
  s.counts.clipped += lanes.counts.clipped;
  // Sums of up to eight columns lie in their order.
  each_index<task == Task::distances ? 0 : D>([&](int j) {
    add_to(sums_at(s, column_sum, std::size_t(j)), lanes.sum[j]);
    if (task == Task::halves) add_to(sums_at(s, column_upper, std::size_t(j)), lanes.upper[j]);
  });
}

template <class T, Task task>
static void add_eights_of_any(Columns& s, std::size_t& i, std::size_t end) {
  switch (s.batch.d) {
    case 2:
      return add_eights_of_columns<T, 2, task>(s, i, end);
    case 3:
      return add_eights_of_columns<T, 3, task>(s, i, end);
    case 4:
      return add_eights_of_columns<T, 4, task>(s, i, end);
    case 5:
      return add_eights_of_columns<T, 5, task>(s, i, end);
    case 6:
      return add_eights_of_columns<T, 6, task>(s, i, end);
    case 7:
      return add_eights_of_columns<T, 7, task>(s, i, end);
    case 8:
      return add_eights_of_columns<T, 8, task>(s, i, end);
  }
}

// Whole eights from row `i` on, or all but a few: those are left to the caller's slabs.
template <class T, Task task> static void add_short_columns(Columns& s, std::size_t& i) {
  constexpr int vectors = 4;
  constexpr std::size_t careful_rows = (careful_slabs + 1) * vectors * vec_lanes;
  const std::size_t n = s.batch.n;
  while (i + vec_lanes <= n) {
    const std::size_t end = n - i < short_stretch ? n : i + short_stretch;
    if (!s.careful && !has_gaps(s, i, end - i)) {
      add_eights_of_any<T, task>(s, i, end);
      if (end - i < vec_lanes) continue;
    }
    const std::size_t before = i;
    add_slabs<T, vectors, task>(s, i, n - i < careful_rows ? n : i + careful_rows);
    if (i == before) break;
  }
}
