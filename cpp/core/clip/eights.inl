// Eight rows side by side, one coordinate of all of them in a vector: of short rows and of few columns. Lane l of
// the norm then holds one row, and the sum over the coordinates is one for all of them.

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
