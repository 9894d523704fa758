// Short contiguous rows (d <= 8; those of 9 to 14 in rows.inl): eight side by side (eights.inl).

// Where a pass adds; with distances `bins` instead of `partial`.
struct ShortSums {
  std::int64_t* partial;
  std::int64_t* absent;  // holes of each coordinate
  Units units;
  Bins bins;
  ClipCounts counts;
};

// One row of d <= 8 as the rule says it, for the ends of a batch and for huge rows: from a copy, in
// vectors, where no compiler makes branches of the numbers of an ordinary row.
template <class T, Task task>
static void short_row(const Region& region, const Batch& batch, std::size_t i, ShortSums& sums) {
  const char* row = rows_from<T>(batch, i, 1);
  double x[vec_lanes] = {}, y[vec_lanes] = {}, limit[vec_lanes] = {}, h[vec_lanes];
  const std::int64_t holes = read_row<T>(row, region, x, sums.absent);
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

// Are there cells that a pass moves into a box? (Else its rows are made: boxes_on_the_way, units_of.)
template <Task task, Form form>
constexpr bool may_be_boxed = form == Form::ellipsoid && task != Task::box;

// How eights are asked for: so many bytes ahead, to the first level of cache and to the second; not at 0.
struct EightsAhead {
  std::ptrdiff_t near, far;
};
static inline EightsAhead eights_ahead(const Arrangement& arrangement) {
  const std::ptrdiff_t ahead = std::ptrdiff_t(arrangement.ahead);
  switch (arrangement.fetch) {
    case Fetch::hardware:
      return {0, 0};
    case Fetch::far:
    case Fetch::made:
      return {0, ahead};
    case Fetch::both:
      return {ahead, ahead + beyond_bytes};
    default:
      return {ahead, 0};
  }
}

// Reads eight rows that follow each other, the row-th of them and on, moves their cells into the box if there is one,
// and asks for others.
template <class T, int D, bool boxed>
static ELLIPSUM_INLINE auto reader_of_eights(const Region& region, const LyingRows& rows,
                                             const EightsAhead& ahead) {
  const char *const from = rows.from, *const asked = rows.asked;
  const std::ptrdiff_t stride = rows.stride, asked_stride = rows.asked_stride;
  return [&region, from, asked, stride, asked_stride, ahead](std::size_t row, Vec(&y)[D]) {
    constexpr int eight = D * vec_lanes * int(sizeof(T));
    const char* next = asked + std::ptrdiff_t(row) * asked_stride;
    if (ahead.near) ask_lines<eight, 1>(next + ahead.near);
    if (ahead.far) ask_lines<eight, 2>(next + ahead.far);
    load_columns<T>(from + std::ptrdiff_t(row) * stride, y);
    if (boxed) move_eight(region, y);
  };
}

// Each eight waits while the next one is read, where there are registers for it: halves of 11 and more have none left
// (Zen 4: 0.7 to 1 of the time without).
template <int D, Task task>
constexpr bool waits_in_registers =
    D <= vec_lanes || (register_lanes == 8 && (task != Task::halves || D <= 10));

// Runs of eight ordinary rows, from the first of n on; how many rows? A function of its own, and copies, which no
// store can change: among others its sums left their registers.
template <class T, int D, Task task, Form form, bool boxed>
static __attribute__((noinline)) std::size_t add_eights(const Region& given, const LyingRows& rows,
                                                        std::size_t n, double most,
                                                        const EightsAhead& ahead, EightSums<D>& to,
                                                        Bins& to_bins) {
  const Region region = given;
  EightSums<D> lanes{};
  lanes.take(to);
  Bins bins = to_bins;
  std::size_t next = 0;
  add_ordinary<T, D, task, form, waits_in_registers<D, task>>(
      region, most, reader_of_eights<T, D, boxed>(region, rows, ahead), next, n, lanes, bins);
  to.take(lanes), to_bins = bins;
  return next;
}

// From row i on, of all rows or of those that are made step by step, until one is exceptional or less than eight are
// left; `most`: the radius in their units.
template <class T, int D, Task task, Form form>
static void add_all_eights(const Region& region, const Batch& batch, std::size_t& i, double most,
                           const EightsAhead& ahead, EightSums<D>& to, Bins& bins) {
  while (i + vec_lanes <= batch.n) {
    const LyingRows rows = lying_rows<T>(batch, i, vec_lanes);
    const std::size_t n = rows.end - i;
    const auto add = [&] {
      if constexpr (may_be_boxed<task, form>)
        if (region.lower)
          return add_eights<T, D, task, form, true>(region, rows, n, most, ahead, to, bins);
      return add_eights<T, D, task, form, false>(region, rows, n, most, ahead, to, bins);
    };
    const std::size_t done = add();
    i += done;
    if (done + vec_lanes <= n) break;
  }
}

// Eights with holes, `careful_eights` of them at most; were there so many? What is used more than once is held as
// soon as it is read (read_eight, move).
constexpr std::size_t careful_eights = 64;
template <class T, int D, Task task>
__attribute__((noinline)) static bool add_careful_eights(const Region& region, const Batch& batch,
                                                         std::size_t& i, ShortSums& sums) {
  const std::size_t first = i, last = first + careful_eights * vec_lanes;
  EightSums<D> lanes{};
  add_ordinary<T, D, task, Form::ellipsoid, false, true>(
      region, region.radius,
      [&](std::size_t row, Vec(&y)[D]) {
        load_columns<T>(rows_from<T>(batch, row, vec_lanes), y);
        if (region.lower) move_eight(region, y);
      },
      i, last < batch.n ? last : batch.n, lanes, sums.bins);
  add_lanes<D, task>(lanes, i - first, sums);
  sums.counts.nonfinite += lanes.counts.nonfinite;
  for (int j = 0; j < D; ++j) sums.absent[j] += std::int64_t(total_of(lanes.absent[j]));
  return i == last;
}

// Eight rows that are not all ordinary are taken as if they had not been read.
template <class T, int D, Task task>
static void short_rows_of(const Region& region, const Batch& batch, std::size_t i,
                          const Arrangement& arrangement, ShortSums& sums) {
  const bool made = batch.made && batch.made->ahead;
  const EightsAhead ahead = made ? EightsAhead{0, made_ahead} : eights_ahead(arrangement);
  while (i < batch.n) {
    EightSums<D> lanes{};
    const std::size_t first = i;
    with_form<T, task>(sums.units.form, [&](auto form) {
      const double scale = is_unscaled<T, task, form> ? sums.units.scale : 1;
      add_all_eights<T, D, task, form>(region, batch, i, region.radius / scale, ahead, lanes,
                                       sums.bins);
    });
    add_lanes<D, task>(lanes, i - first, sums);
    if (add_careful_eights<T, D, task>(region, batch, i, sums)) continue;
    for (int r = 0; r < vec_lanes && i < batch.n; ++r, ++i)
      short_row<T, task>(region, batch, i, sums);
  }
}

template <class T, Task task>
static void short_rows(const Region& region, const Batch& batch, std::size_t i,
                       const Arrangement& arrangement, ShortSums& sums) {
  switch (batch.d) {
    case 1:
      return short_rows_of<T, 1, task>(region, batch, i, arrangement, sums);
    case 2:
      return short_rows_of<T, 2, task>(region, batch, i, arrangement, sums);
    case 3:
      return short_rows_of<T, 3, task>(region, batch, i, arrangement, sums);
    case 4:
      return short_rows_of<T, 4, task>(region, batch, i, arrangement, sums);
    case 5:
      return short_rows_of<T, 5, task>(region, batch, i, arrangement, sums);
    case 6:
      return short_rows_of<T, 6, task>(region, batch, i, arrangement, sums);
    case 7:
      return short_rows_of<T, 7, task>(region, batch, i, arrangement, sums);
    case 8:
      return short_rows_of<T, 8, task>(region, batch, i, arrangement, sums);
  }
}
