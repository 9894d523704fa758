// Short contiguous rows (d <= 8; those of 9 to 14 in rows.inl): eight side by side, one coordinate of all of them
// in a vector. Lane l of the norm then holds one coordinate, and the sum over the lanes is one for all rows.

constexpr int short_ahead = 4096;  // bytes asked of the memory ahead of use

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

// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)) of the squares of D coordinates, of more than eight two in some
// lanes; the others are 0, which no norm feels. An `exact` square needs no rounding of its own.
template <int first, int size, int D, bool exact>
static ELLIPSUM_INLINE Vec sum_of_squares(const Vec (&y)[D]) {
  constexpr int half = size / 2, other = first + norm_lanes / size;
  if constexpr (size == 1 && first + norm_lanes < D) {
    const Vec sum = y[first] * y[first], &more = y[first + norm_lanes];
    return exact ? multiply_add(more, more, sum) : sum + more * more;
  } else if constexpr (size == 1) {
    return y[first] * y[first];
  } else {
    const Vec sum = sum_of_squares<first, half, D, exact>(y);
    if constexpr (other >= D) return sum;
    else if constexpr (exact && half == 1 && other + norm_lanes >= D)
      return multiply_add(y[other], y[other], sum);
    else return sum + sum_of_squares<other, half, D, exact>(y);
  }
}

// The sums of runs of eight rows, in one register each: which rows a lane has is nobody's matter.
template <int D> struct EightSums {
  Mask sum[D], upper[D];  // upper: of those above 0, for the halves
  Mask absent[D];         // holes
  ClipCounts counts;
  // What ordinary rows change, by whole registers: compilers copy others by pieces.
  ELLIPSUM_INLINE void take(const EightSums& from) {
    ELLIPSUM_UNROLL
    for (int j = 0; j < D; ++j) sum[j] = from.sum[j], upper[j] = from.upper[j];
    counts.clipped = from.counts.clipped;
  }
};

// Reads eight rows, whose columns `read` gives, to y (clamped, in a box), and their squared norms, as a Group has
// them; false, and nothing counted, if one of them is exceptional. Holes are filled where `holes` says so: then
// only a huge row is.
template <class T, int D, Task task, bool holes, Form form, class Read>
static ELLIPSUM_INLINE bool read_eight(const Region& region, const Read& read, Vec (&y)[D],
                                       Vec& norm2, EightSums<D>& to) {
  read(y);
  VecInt missing{};
  Holes hole[D];
  Vec outside[D];
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    Vec& x = y[j];
    if (holes) {
      hold(x);
      hole[j] = holes_of(x);
      missing = count_holes(missing, hole[j]);
      x = fill_holes(x, hole[j], fill(region.center[j]));
    }
    x = scaled<T, task, form>(x, fill(region.center[j]), fill(region.scale[j]));
    if (task == Task::box) outside[j] = bring_inside(x, fill(region.limit[j]));
  }
  if constexpr (task == Task::box) norm2 = sum_of_squares<0, norm_lanes, D, false>(outside);
  else norm2 = sum_of_squares<0, norm_lanes, D, squares_are_exact<T, task, form>>(y);
  if (holes && region.stretch) norm2 = norm2 * stretches_of(as_doubles(missing), D);
  if (!all_below(norm2, fill(exceptional_norm2))) return false;
  if (!holes) return true;
  to.counts.nonfinite += count_nonzero(missing);
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) to.absent[j] = count_holes(to.absent[j], hole[j]);
  return true;
}

// The factors of eight rows, `most` the radius in their units; exactly 1, or the scale, for a row inside.
template <Task task, int D>
static ELLIPSUM_INLINE Vec factors_of_eight(const Region& region, double most, const Vec& norm2,
                                            EightSums<D>& to, Bins& bins) {
  if (task == Task::distances) count_distances(bins, norm2);
  if (task == Task::box) to.counts.clipped += count_above(norm2, fill(0.0));
  if (task == Task::distances || task == Task::box) return fill(1.0);
  const Vec norm = square_root(norm2), radius = fill(most);
  to.counts.clipped += count_above(norm, radius);
  return fill(region.radius) / maximum(norm, radius);
}

template <int D, Task task>
static ELLIPSUM_INLINE void add_eight_rows(const Vec (&y)[D], const Vec& factor, EightSums<D>& to) {
  if (task == Task::distances) return;
  const Vec magic = fill(rounding_magic);
  const auto add = [](Mask& sum, const Vec& more) {
    sum = Mask(Words64(sum) + Words64(folded_bits(more)));
  };
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j) {
    const Vec rounded = (task == Task::box ? y[j] : y[j] * factor) + magic;
    add(to.sum[j], rounded);
    if (task == Task::halves) add(to.upper[j], maximum(rounded, magic));
  }
}

// Runs of eight ordinary rows, from row `next` on, to before `end`, where `read_at` reads them; with `holes` also
// those that have some. Where what waits costs less than that (`few`: it has registers, too), each is added while the
// next one is read: nothing waits for its factors, a square root and a division after the last of its norms.
template <class T, int D, Task task, Form form, bool few, bool holes = false, class ReadAt>
static ELLIPSUM_INLINE void add_ordinary(const Region& region, double most, const ReadAt& read_at,
                                         std::size_t& next, std::size_t end, EightSums<D>& to,
                                         Bins& bins) {
  constexpr bool late = few && (task == Task::ball || task == Task::halves);
  Vec waiting[D], factor = fill(0.0);
  // Nothing waits at first: it adds the magic number.
  const Words64 magic = Words64(folded_bits(fill(rounding_magic)));
  ELLIPSUM_UNROLL
  for (int j = 0; late && j < D; ++j) {
    waiting[j] = fill(0.0);
    to.sum[j] = Mask(Words64(to.sum[j]) - magic), to.upper[j] = Mask(Words64(to.upper[j]) - magic);
  }
  for (; next + vec_lanes <= end; next += vec_lanes) {
    Vec y[D], norm2;
    const auto read = [&](Vec(&columns)[D]) { read_at(next, columns); };
    if (!read_eight<T, D, task, holes, form>(region, read, y, norm2, to)) break;
    if (late) add_eight_rows<D, task>(waiting, factor, to);
    factor = factors_of_eight<task>(region, most, norm2, to, bins);
    if (!late) add_eight_rows<D, task>(y, factor, to);
    ELLIPSUM_UNROLL
    for (int j = 0; late && j < D; ++j) waiting[j] = y[j];
  }
  if (late) add_eight_rows<D, task>(waiting, factor, to);
}

// The sum of the lanes, modulo 2^64.
static inline std::uint64_t total_of(const Mask& sum) {
  std::uint64_t lanes[register_lanes], all = 0;
  std::memcpy(lanes, &sum, sizeof lanes);
  for (std::uint64_t lane : lanes) all += lane;
  return all;
}
static inline std::uint64_t total_of(const VecInt& sum) {
  std::uint64_t all = 0;
  for (const Mask& part : sum.part) all += total_of(part);
  return all;
}
static inline void add_total(std::int64_t& to, const Mask& sum) {
  to = std::int64_t(std::uint64_t(to) + total_of(sum));
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

// Are there cells that a pass moves into a box? (Else its rows are made: boxes_on_the_way, units_of.)
template <Task task, Form form>
constexpr bool may_be_boxed = form == Form::ellipsoid && task != Task::box;

// How eights are asked for: so many bytes ahead, to the first level of cache or to the second.
struct EightsAhead {
  std::ptrdiff_t bytes;
  bool far;
};

// Reads eight rows that follow each other, the row-th of them and on, moves their cells into the box if there is one,
// and asks for others.
template <class T, int D, bool boxed>
static ELLIPSUM_INLINE auto reader_of_eights(const Region& region, const LyingRows& rows,
                                             const EightsAhead& ahead) {
  const char *const from = rows.from, *const asked = rows.asked + ahead.bytes;
  const std::ptrdiff_t stride = rows.stride, asked_stride = rows.asked_stride;
  return
      [&region, from, asked, stride, asked_stride, far = ahead.far](std::size_t row, Vec(&y)[D]) {
        constexpr int line = 64, eight = D * vec_lanes * int(sizeof(T));
        const char* next = asked + std::ptrdiff_t(row) * asked_stride;
        if (far) {
          ELLIPSUM_UNROLL
          for (int at = 0; at < eight; at += line) __builtin_prefetch(next + at, 0, 2);
        } else {
          ELLIPSUM_UNROLL
          for (int at = 0; at < eight; at += line) __builtin_prefetch(next + at);
        }
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
                          ShortSums& sums) {
  while (i < batch.n) {
    EightSums<D> lanes{};
    const std::size_t first = i;
    const bool made = batch.made && batch.made->ahead;
    with_form<T, task>(sums.units.form, [&](auto form) {
      const double scale = is_unscaled<T, task, form> ? sums.units.scale : 1;
      add_all_eights<T, D, task, form>(region, batch, i, region.radius / scale,
                                       {made ? std::ptrdiff_t(made_ahead) : short_ahead, made},
                                       lanes, sums.bins);
    });
    add_lanes<D, task>(lanes, i - first, sums);
    if (add_careful_eights<T, D, task>(region, batch, i, sums)) continue;
    for (int r = 0; r < vec_lanes && i < batch.n; ++r, ++i)
      short_row<T, task>(region, batch, i, sums);
  }
}

template <class T, Task task>
static void short_rows(const Region& region, const Batch& batch, std::size_t i, ShortSums& sums) {
  switch (batch.d) {
    case 1:
      return short_rows_of<T, 1, task>(region, batch, i, sums);
    case 2:
      return short_rows_of<T, 2, task>(region, batch, i, sums);
    case 3:
      return short_rows_of<T, 3, task>(region, batch, i, sums);
    case 4:
      return short_rows_of<T, 4, task>(region, batch, i, sums);
    case 5:
      return short_rows_of<T, 5, task>(region, batch, i, sums);
    case 6:
      return short_rows_of<T, 6, task>(region, batch, i, sums);
    case 7:
      return short_rows_of<T, 7, task>(region, batch, i, sums);
    case 8:
      return short_rows_of<T, 8, task>(region, batch, i, sums);
  }
}
