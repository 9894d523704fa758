// Short contiguous rows (d <= 8): eight side by side, one coordinate of all of them in a vector.
// Lane l of the norm then holds one coordinate, and the sum over the lanes is one for all rows.

constexpr int short_ahead = 4096;  // bytes asked of the memory ahead of use

// One row of d <= 8 as the rule says it, for the ends of a batch and for exceptional rows.
template <class T, Shape shape>
static void short_row(const Region& region, const char* row, std::ptrdiff_t stride,
                      std::int64_t* partial, ClipCounts& counts) {
  double y[vec_lanes] = {}, h[vec_lanes];
  bool changed = false;
  double test = 0;
  for (std::size_t j = 0; j < region.d; ++j) {
    const double x = element<T>(row, stride, j);
    y[j] = (x - region.center[j]) * region.scale[j];
    test += shape == Shape::box ? x * 0.0 : 0.0;
    if (shape == Shape::ball) continue;
    const double limit = region.limit[j];
    changed |= std::fabs(y[j]) > limit;
    y[j] = y[j] > limit ? limit : (y[j] < -limit ? -limit : y[j]);
  }
  if (shape == Shape::ball) {
    double square[vec_lanes];
    for (int l = 0; l < vec_lanes; ++l) square[l] = y[l] * y[l];
    test = sum_lanes(load<double>(square));
  }
  if (!(test < exceptional_norm2)) {
    exceptional_row<T>(region, row, stride, h, y, counts);
  } else if (shape == Shape::box) {
    counts.clipped += changed;
  } else {
    const double norm = std::sqrt(test);
    counts.clipped += norm > region.radius;
    const double factor = region.radius / (norm > region.radius ? norm : region.radius);
    for (double& coordinate : y) coordinate *= factor;
  }
  for (std::size_t j = 0; j < region.d; ++j) partial[j] += std::int64_t(std::rint(y[j]));
}

// Eight rows from `rows` on; false, and nothing done, if one of them is exceptional.
template <class T, int D, Shape shape>
static inline bool eight_short_rows(const Region& region, const char* rows,
                                    VecInt (&sum)[D], ClipCounts& counts) {
  Vec y[D], lane[norm_lanes] = {};
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) __builtin_prefetch(rows + short_ahead + j * vec_lanes * int(sizeof(T)));
  load_columns<T>(rows, y, std::make_integer_sequence<int, D>());
  VecInt changed{};
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    const Vec x = y[j];
    y[j] = (x - fill(region.center[j])) * fill(region.scale[j]);
    if (shape == Shape::box) {
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
  Vec factor = fill(1.0);
  if (shape == Shape::ball) {
    const Vec norm = square_root(norm2), radius = fill(region.radius);
    counts.clipped += count_above(norm, radius);
    factor = radius / maximum(norm, radius);
  } else {
    counts.clipped += count_nonzero(changed);
  }
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) sum[j] = add_bits(sum[j], y[j] * factor + fill(rounding_magic));
  return true;
}

// Runs of eight ordinary rows, from row i on; the sums stay in registers.
template <class T, int D, Shape shape>
static void add_eights(const Region& region, const Batch& batch, std::size_t& i,
                       std::int64_t* partial, ClipCounts& total) {
  const std::size_t first = i;
  ClipCounts counts{0, 0};
  VecInt sum[D];
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) sum[j] = VecInt{};
  while (i + vec_lanes <= batch.n &&
         eight_short_rows<T, D, shape>(region, row_at(batch, i), sum, counts))
    i += vec_lanes;
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    std::int64_t lanes[vec_lanes];
    store(lanes, sum[j]);
    std::uint64_t all = 0 - (i - first) * rounding_magic_bits;
    for (std::int64_t lane : lanes) all += std::uint64_t(lane);
    partial[j] += std::int64_t(all);
  }
  total.clipped += counts.clipped;
}

template <class T, int D, Shape shape>
static void short_rows_of(const Region& region, const Batch& batch, std::int64_t* partial,
                          ClipCounts& counts) {
  for (std::size_t i = 0; i < batch.n;) {
    add_eights<T, D, shape>(region, batch, i, partial, counts);
    for (int r = 0; r < vec_lanes && i < batch.n; ++r, ++i)
      short_row<T, shape>(region, row_at(batch, i), batch.column_stride, partial, counts);
  }
}

template <class T, Shape shape>
static void short_rows(const Region& region, const Batch& batch, std::int64_t* partial,
                       ClipCounts& counts) {
  switch (batch.d) {
    case 1: return short_rows_of<T, 1, shape>(region, batch, partial, counts);
    case 2: return short_rows_of<T, 2, shape>(region, batch, partial, counts);
    case 3: return short_rows_of<T, 3, shape>(region, batch, partial, counts);
    case 4: return short_rows_of<T, 4, shape>(region, batch, partial, counts);
    case 5: return short_rows_of<T, 5, shape>(region, batch, partial, counts);
    case 6: return short_rows_of<T, 6, shape>(region, batch, partial, counts);
    case 7: return short_rows_of<T, 7, shape>(region, batch, partial, counts);
    case 8: return short_rows_of<T, 8, shape>(region, batch, partial, counts);
  }
}
