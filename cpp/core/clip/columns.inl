// Short contiguous rows (d <= 8): eight side by side, one coordinate of all of them in a vector.
// Lane l of the norm then holds one coordinate, and the sum over the lanes is one for all rows.

constexpr int short_ahead = 4096;  // bytes asked of the memory ahead of use

// Where a pass adds; with distances `bins` instead of `partial`.
struct ShortSums {
  std::int64_t* partial;
  Bins bins;
  ClipCounts counts;
};

// One row of d <= 8 as the rule says it, for the ends of a batch and for exceptional rows: from a
// copy, in vectors, where no compiler makes branches of the numbers of an ordinary row.
template <class T, Task task>
static void short_row(const Region& region, const char* row, std::ptrdiff_t stride,
                      ShortSums& sums) {
  double x[vec_lanes] = {}, y[vec_lanes] = {}, limit[vec_lanes] = {}, h[vec_lanes];
  copy_row<T>(row, stride, region.d, x);
  for (std::size_t j = 0; j < region.d; ++j) {
    y[j] = (x[j] - region.center[j]) * region.scale[j];
    if (task == Task::box) limit[j] = region.limit[j];
  }
  const RowScratch scratch{x, h, y};
  const Vec all = load<double>(y), inside = clamp(all, load<double>(limit));
  const double test = sum_lanes(task == Task::box ? load<double>(x) * fill(0.0) : all * all);
  const bool exceptional = !(test < exceptional_norm2);
  if (task == Task::distances) {
    const double norm2[vec_lanes] = {exceptional ? distance_alone(region, scratch) : test};
    return count_distances(sums.bins, load<double>(norm2));
  }
  if (exceptional) {
    clip_alone<task>(region, scratch, sums.counts);
  } else if (task == Task::box) {
    store(y, inside);
    sums.counts.clipped += count_nonzero(or_difference({}, all, inside)) > 0;
  } else {
    const double norm = std::sqrt(test);
    sums.counts.clipped += norm > region.radius;
    const double factor = region.radius / (norm > region.radius ? norm : region.radius);
    for (double& coordinate : y) coordinate *= factor;
  }
  for (std::size_t j = 0; j < region.d; ++j) {
    const std::int64_t q = std::int64_t(std::rint(y[j]));
    if (task == Task::halves) add_halves(q, q < 0 ? -q : q, region.d, j, sums.partial);
    else sums.partial[j] += q;
  }
}

// Eight rows from `rows` on; false, and nothing done, if one of them is exceptional: each is then
// taken as if it had not been read (short_row). `size`: sums of magnitudes, for the halves.
template <class T, int D, Task task>
static inline bool eight_short_rows(const Region& region, const char* rows, VecInt (&sum)[D],
                                    VecInt (&size)[D], Bins& bins, ClipCounts& counts) {
  Vec y[D], lane[norm_lanes] = {};
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) __builtin_prefetch(rows + short_ahead + j * vec_lanes * int(sizeof(T)));
  load_columns<T>(rows, y, std::make_integer_sequence<int, D>());
  VecInt changed{};
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    const Vec x = y[j];
    y[j] = (x - fill(region.center[j])) * fill(region.scale[j]);
    if (task == Task::box) {
      const Vec inside = clamp(y[j], fill(region.limit[j]));
      changed = or_difference(changed, y[j], inside);
      lane[0] = lane[0] + x * fill(0.0);
      y[j] = inside;
    } else {
      lane[j] = y[j] * y[j];
    }
  }
  const Vec norm2 = ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
                    ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  if (!all_below(norm2, fill(exceptional_norm2))) return false;
  if (task == Task::distances) {
    count_distances(bins, norm2);
    return true;
  }
  Vec factor = fill(1.0);
  if (task != Task::box) {
    const Vec norm = square_root(norm2), radius = fill(region.radius);
    counts.clipped += count_above(norm, radius);
    factor = radius / maximum(norm, radius);
  } else {
    counts.clipped += count_nonzero(changed);
  }
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    if (task == Task::halves)
      size[j] = add_bits(size[j], magnitude(y[j] * factor) + fill(rounding_magic));
    sum[j] = add_bits(sum[j], y[j] * factor + fill(rounding_magic));
  }
  return true;
}

// The lanes of a sum of `rows` magic numbers, in all.
static inline std::int64_t total_of(const VecInt& sum, std::size_t rows) {
  std::int64_t lanes[vec_lanes];
  store(lanes, sum);
  std::uint64_t all = 0 - rows * rounding_magic_bits;
  for (std::int64_t lane : lanes) all += std::uint64_t(lane);
  return std::int64_t(all);
}

// Runs of eight ordinary rows, from row i on; the sums stay in registers.
template <class T, int D, Task task>
static void add_eights(const Region& region, const Batch& batch, std::size_t& i,
                       ShortSums& sums) {
  const std::size_t first = i;
  std::size_t next = i;  // a copy, which no store can change
  ClipCounts counts{0, 0};
  VecInt sum[D], size[D];
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) sum[j] = size[j] = VecInt{};
  while (next + vec_lanes <= batch.n &&
         eight_short_rows<T, D, task>(region, row_at(batch, next), sum, size, sums.bins, counts))
    next += vec_lanes;
  i = next;
  if (task == Task::distances) return;
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    const std::int64_t all = total_of(sum[j], i - first);
    if (task == Task::halves) add_halves(all, total_of(size[j], i - first), D, j, sums.partial);
    else sums.partial[j] += all;
  }
  sums.counts.clipped += counts.clipped;
}

template <class T, int D, Task task>
static void short_rows_of(const Region& region, const Batch& batch, ShortSums& sums) {
  for (std::size_t i = 0; i < batch.n;) {
    add_eights<T, D, task>(region, batch, i, sums);
    for (int r = 0; r < vec_lanes && i < batch.n; ++r, ++i)
      short_row<T, task>(region, row_at(batch, i), batch.column_stride, sums);
  }
}

template <class T, Task task>
static void short_rows(const Region& region, const Batch& batch, ShortSums& sums) {
  switch (batch.d) {
    case 1: return short_rows_of<T, 1, task>(region, batch, sums);
    case 2: return short_rows_of<T, 2, task>(region, batch, sums);
    case 3: return short_rows_of<T, 3, task>(region, batch, sums);
    case 4: return short_rows_of<T, 4, task>(region, batch, sums);
    case 5: return short_rows_of<T, 5, task>(region, batch, sums);
    case 6: return short_rows_of<T, 6, task>(region, batch, sums);
    case 7: return short_rows_of<T, 7, task>(region, batch, sums);
    case 8: return short_rows_of<T, 8, task>(region, batch, sums);
  }
}
