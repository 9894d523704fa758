// Cells moved into a box, and holes to the centre (Region: lower, upper). A number is read once, and what
// follows is of that reading. Included into each target's namespace.

// In place: a copy of what is held goes by pieces on AVX2, from which no register can be forwarded (GCC 12).
static ELLIPSUM_INLINE void move(Vec& x, const Vec& lower, const Vec& center, const Vec& upper) {
  hold(x);
  x = fill_holes(clamp(x, lower, upper), holes_of(x), center);
}

static ELLIPSUM_INLINE Vec moved(Vec x, const Vec& lower, const Vec& center, const Vec& upper) {
  move(x, lower, center, upper);
  return x;
}

static inline Vec moved(const Vec& x, const CellBox& box, std::size_t at) {
  return moved(x, load<double>(box.lower + at), load<double>(box.center + at),
               load<double>(box.upper + at));
}

// n numbers in a line of the box; up to 7 more are written beyond them.
template <class T>
static void move_line(const char* from, std::size_t n, const CellBox& box, double* to) {
  std::size_t j = 0;
  for (; j + vec_lanes <= n; j += vec_lanes)
    store(to + j, moved(load<T>(from + j * sizeof(T)), box, j));
  if (j < n) store(to + j, moved(load_first<T>(from + j * sizeof(T), n - j), box, j));
}

// n numbers of a column.
template <class T>
static void move_numbers(const char* from, const Validity& valid, std::size_t n,
                         const CellEnds& ends, double* to) {
  const Vec lower = fill(ends.lower), center = fill(ends.center), upper = fill(ends.upper);
  const Gaps gaps = gaps_from(valid, 0);
  std::size_t i = 0;
  for (; i + vec_lanes <= n; i += vec_lanes) {
    Vec x = load<T>(from + i * sizeof(T));
    hold(x);
    Holes holes = holes_of(x);
    if (gaps.at) holes = with_gaps(holes, gaps, i / vec_lanes);
    store(to + i, fill_holes(clamp(x, lower, upper), holes, center));
  }
  for (; i < n; ++i) {
    double number[vec_lanes];
    Vec x = load_first<T>(from + i * sizeof(T), 1);
    hold(x);
    const Holes holes = with_gone(holes_of(x), left_out(valid, i));
    store(number, fill_holes(clamp(x, lower, upper), holes, center));
    to[i] = number[0];
  }
}

// What is left to do with rows whose cells are moved already. Twice is not once: a hole's centre may lie outside
// of the box. So whoever moves cells hands their rows on with a region that has no box.
static Region without_box(const Region& region) {
  Region rest = region;
  rest.lower = rest.upper = nullptr, rest.box = nullptr;
  return rest;
}

// copy_row, with cells moved into the region's box if it has one: then there are no holes.
template <class T>
static std::int64_t read_row(const char* row, const Region& region, double* x,
                             std::int64_t* absent) {
  const std::size_t d = region.d;
  if (!region.lower) return copy_row<T>(row, d, region.center, x, absent);
  for (std::size_t j = 0; j < d; j += vec_lanes) {
    const auto ends = [&](const double* of) { return load_some<double>(of + j, d - j); };
    store(x + j, moved(load_some<T>(row + j * sizeof(T), d - j), ends(region.lower),
                       ends(region.center), ends(region.upper)));
  }
  copied();
  return 0;
}

// Eight rows side by side, D <= 14 coordinates.
template <int D> static ELLIPSUM_INLINE void move_eight(const Region& region, Vec (&x)[D]) {
  ELLIPSUM_UNROLL
  for (int j = 0; j < D; ++j)
    move(x[j], fill(region.lower[j]), fill(region.center[j]), fill(region.upper[j]));
}

// n rows of contiguous coordinates, to doubles one after the other: by lines, or where a row is longer, by columns,
// whose ends are loaded once.
template <class T>
static void move_rows(const char* from, std::ptrdiff_t stride, std::size_t n, const Region& region,
                      double* to) {
  const std::size_t d = region.d;
  const CellBox& box = *region.box;
  if (box.rows > 1) {
    const std::size_t step = stride == std::ptrdiff_t(d * sizeof(T)) ? box.rows : 1;
    for (std::size_t i = 0; i < n; i += step) {
      const std::size_t rows = n - i < step ? n - i : step;
      move_line<T>(from + std::ptrdiff_t(i) * stride, rows * d, box, to + i * d);
    }
    return;
  }
  for (std::size_t j = 0; j < d; j += vec_lanes) {
    const Vec lower = load<double>(box.lower + j), center = load<double>(box.center + j),
              upper = load<double>(box.upper + j);
    const char* at = from + j * sizeof(T);
    double* row = to + j;
    if (j + vec_lanes <= d) {
      for (std::size_t i = 0; i < n; ++i, at += stride, row += d)
        store(row, moved(load<T>(at), lower, center, upper));
      continue;
    }
    double last[vec_lanes];
    for (std::size_t i = 0; i < n; ++i, at += stride, row += d) {
      store(last, moved(load_first<T>(at, d - j), lower, center, upper));
      std::copy_n(last, d - j, row);
    }
  }
}
