// Short contiguous rows (d <= 8): eight side by side, one coordinate of all of them in a vector.
// Lane l of the norm then holds one coordinate, and the sum over the lanes is one for all rows.

constexpr int short_ahead = 4096;  // bytes asked of the memory ahead of use

// Where a pass adds; with distances `bins` instead of `partial`.
struct ShortSums {
  std::int64_t* partial;
  std::int64_t* absent;  // holes of each coordinate
  Bins bins;
  ClipCounts counts;
};

// One row of d <= 8 as the rule says it, for the ends of a batch and for huge rows: from a copy, in
// vectors, where no compiler makes branches of the numbers of an ordinary row.
template <class T, Task task>
static void short_row(const Region& region, const char* row, ShortSums& sums) {
  double x[vec_lanes] = {}, y[vec_lanes] = {}, limit[vec_lanes] = {}, h[vec_lanes];
  const std::int64_t holes = copy_row<T>(row, region.d, region.center, x, sums.absent);
  sums.counts.nonfinite += holes > 0;
  for (std::size_t j = 0; j < region.d; ++j) {
    y[j] = (x[j] - region.center[j]) * region.scale[j];
    if (task == Task::box) limit[j] = region.limit[j];
  }
  const Vec all = load<double>(y), upper = load<double>(limit);
  const double stretch = stretch_of(region, holes), norm2 = sum_lanes(all * all) * stretch;
  const bool huge = !(norm2 < exceptional_norm2);
  if (task == Task::distances) {
    const double counted[vec_lanes] = {huge ? double(INFINITY) : norm2};
    return count_distances(sums.bins, load<double>(counted));
  }
  if (task == Task::box) {
    Vec inside = all;
    sums.counts.clipped += sum_lanes(magnitude(bring_inside(inside, upper))) != 0;
    store(y, inside);
  } else if (huge) {
    sums.counts.clipped += clip_huge_row(region, {x, h, y, stretch});
  } else {
    const double norm = std::sqrt(norm2);
    sums.counts.clipped += norm > region.radius;
    const double factor = region.radius / (norm > region.radius ? norm : region.radius);
    for (double& coordinate : y) coordinate *= factor;
  }
  for (std::size_t j = 0; j < region.d; ++j) {
    const std::int64_t q = std::int64_t(std::rint(y[j]));
    if (task == Task::halves) add_halves(q, q < 0 ? 0 : q, region.d, j, sums.partial);
    else sums.partial[j] += q;
  }
}

// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)) of D lanes of norms; the others are 0, which no norm feels.
template <int first, int size, int D>
static ELLIPSUM_INLINE Vec sum_of_lanes(const Vec (&lane)[D]) {
  constexpr int half = size / 2, other = first + norm_lanes / size;
  if constexpr (size == 1) return lane[first];
  else if constexpr (other >= D) return sum_of_lanes<first, half>(lane);
  else return sum_of_lanes<first, half>(lane) + sum_of_lanes<other, half>(lane);
}

// The sums of runs of eight rows, one a lane.
template <int D> struct EightSums {
  VecInt sum[D], upper[D];  // upper: of those above 0, for the halves
  VecInt absent[D];         // holes
  ClipCounts counts;
};

// Eight rows, whose columns `read` gives; false, and nothing done, if one of them is exceptional. Holes
// are filled where `holes` says so: then only a huge row is.
template <int D, Task task, bool holes, class Read>
static ELLIPSUM_INLINE bool eight_short_rows(const Region& region, const Read& read,
                                             EightSums<D>& to, Bins& bins) {
  Vec y[D], lane[D];
  read(y);
  VecInt missing{};
  Holes hole[D];
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    Vec x = y[j];
    if (holes) hold(x);
    if (holes) {
      hole[j] = holes_of(x);
      missing = count_holes(missing, hole[j]);
      x = fill_holes(x, hole[j], fill(region.center[j]));
    }
    y[j] = (x - fill(region.center[j])) * fill(region.scale[j]);
    const Vec limit = fill(task == Task::box ? region.limit[j] : 0.0);
    lane[j] = task == Task::box ? magnitude(bring_inside(y[j], limit)) : y[j] * y[j];
  }
  Vec norm2 = sum_of_lanes<0, norm_lanes>(lane);
  if (holes && region.stretch) norm2 = norm2 * stretches_of(as_doubles(missing), D);
  if (!all_below(norm2, fill(exceptional_norm2))) return false;
  if (holes) {
    to.counts.nonfinite += count_nonzero(missing);
    ELLIPSUM_UNROLL
    for (int j = 0; j < D; ++j) to.absent[j] = count_holes(to.absent[j], hole[j]);
  }
  if (task == Task::distances) {
    count_distances(bins, norm2);
    return true;
  }
  Vec factor = fill(1.0);
  if (task != Task::box) {
    const Vec norm = square_root(norm2), radius = fill(region.radius);
    to.counts.clipped += count_above(norm, radius);
    factor = radius / maximum(norm, radius);
  } else {
    to.counts.clipped += count_above(norm2, fill(0.0));
  }
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    const Vec magic = fill(rounding_magic), rounded = y[j] * factor + magic;
    to.sum[j] = add_bits(to.sum[j], rounded);
    if (task == Task::halves) to.upper[j] = add_bits(to.upper[j], maximum(rounded, magic));
  }
  return true;
}

// The sum of the lanes, modulo 2^64.
static inline std::uint64_t total_of(const VecInt& sum) {
  std::int64_t lanes[vec_lanes];
  store(lanes, sum);
  std::uint64_t all = 0;
  for (std::int64_t lane : lanes) all += std::uint64_t(lane);
  return all;
}

// f(0), ..., f(n - 1), written out where registers are many: by an index the compiler has what is indexed
// in memory, which is the faster on AVX2.
template <int n, class F> static ELLIPSUM_INLINE void each_index(const F& f) {
  if (register_lanes == 8) {
    ELLIPSUM_UNROLL
    for (int j = 0; j < n; ++j) f(j);
  } else {
    for (int j = 0; j < n; ++j) f(j);
  }
}

// What the lanes of `rows` rows come to.
template <int D, Task task>
static ELLIPSUM_INLINE void add_lanes(const EightSums<D>& lanes, std::size_t rows,
                                      ShortSums& sums) {
  const std::uint64_t magic = rows * rounding_magic_bits;
  each_index<task == Task::distances ? 0 : D>([&](int j) {
    const std::int64_t sum = std::int64_t(total_of(lanes.sum[j]) - magic);
    const std::int64_t upper = std::int64_t(total_of(lanes.upper[j]) - magic);
    if (task == Task::halves) add_halves(sum, upper, D, std::size_t(j), sums.partial);
    else sums.partial[j] += sum;
  });
  sums.counts.clipped += lanes.counts.clipped;
}

// Runs of eight ordinary rows, from row i on.
template <class T, int D, Task task>
static void add_eights(const Region& region, const Batch& batch, std::size_t& i, ShortSums& sums) {
  const std::size_t first = i;
  std::size_t next = i;  // a copy, which no store can change
  EightSums<D> lanes{};
  const auto read = [&](Vec(&y)[D]) {
    const char* rows = row_at(batch, next);
    constexpr int line = 64;
    ELLIPSUM_UNROLL
    for (int at = 0; at < D * vec_lanes * int(sizeof(T)); at += line)
      __builtin_prefetch(rows + short_ahead + at);
    load_columns<T>(rows, y);
  };
  while (next + vec_lanes <= batch.n &&
         eight_short_rows<D, task, false>(region, read, lanes, sums.bins))
    next += vec_lanes;
  i = next;
  add_lanes<D, task>(lanes, i - first, sums);
}

// Eights with holes, `careful_eights` of them at most, each from a copy; were there so many?
constexpr std::size_t careful_eights = 64;
template <class T, int D, Task task>
__attribute__((noinline)) static bool add_careful_eights(const Region& region, const Batch& batch,
                                                         std::size_t& i, ShortSums& sums) {
  const std::size_t first = i, last = first + careful_eights * vec_lanes;
  EightSums<D> lanes{};
  double copy[D * vec_lanes];
  for (; i < last && i + vec_lanes <= batch.n; i += vec_lanes) {
    const char* rows = row_at(batch, i);
    ELLIPSUM_UNROLL
    for (int k = 0; k < D; ++k)
      store(copy + k * vec_lanes, load<T>(rows + k * vec_lanes * int(sizeof(T))));
    copied();
    const auto read = [&](Vec(&y)[D]) {
      load_columns<double>(reinterpret_cast<const char*>(copy), y);
    };
    if (!eight_short_rows<D, task, true>(region, read, lanes, sums.bins)) break;
  }
  add_lanes<D, task>(lanes, i - first, sums);
  sums.counts.nonfinite += lanes.counts.nonfinite;
  for (int j = 0; j < D; ++j) sums.absent[j] += std::int64_t(total_of(lanes.absent[j]));
  return i == last;
}

// Eight rows that are not all ordinary are taken as if they had not been read.
template <class T, int D, Task task>
static void short_rows_of(const Region& region, const Batch& batch, ShortSums& sums) {
  for (std::size_t i = 0; i < batch.n;) {
    add_eights<T, D, task>(region, batch, i, sums);
    if (add_careful_eights<T, D, task>(region, batch, i, sums)) continue;
    for (int r = 0; r < vec_lanes && i < batch.n; ++r, ++i)
      short_row<T, task>(region, row_at(batch, i), sums);
  }
}

template <class T, Task task>
static void short_rows(const Region& region, const Batch& batch, ShortSums& sums) {
  switch (batch.d) {
    case 1:
      return short_rows_of<T, 1, task>(region, batch, sums);
    case 2:
      return short_rows_of<T, 2, task>(region, batch, sums);
    case 3:
      return short_rows_of<T, 3, task>(region, batch, sums);
    case 4:
      return short_rows_of<T, 4, task>(region, batch, sums);
    case 5:
      return short_rows_of<T, 5, task>(region, batch, sums);
    case 6:
      return short_rows_of<T, 6, task>(region, batch, sums);
    case 7:
      return short_rows_of<T, 7, task>(region, batch, sums);
    case 8:
      return short_rows_of<T, 8, task>(region, batch, sums);
  }
}
