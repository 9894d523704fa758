// Cells moved into a box, and holes to the centre (Region: lower, upper). A number is read once, and what
// follows is of that reading. Included into each target's namespace.

static ELLIPSUM_INLINE Vec moved(Vec x, const Vec& lower, const Vec& center, const Vec& upper) {
  hold(x);
  const Vec inside = clamp(x, lower, upper);
  return fill_holes(inside, holes_of(x), center);
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

// Rows of contiguous coordinates, to doubles one after the other.
template <class T> static void move_rows(const Batch& batch, const CellBox& box, double* to) {
  const std::size_t d = batch.d;
  const bool whole = batch.row_stride == std::ptrdiff_t(d * sizeof(T));
  const std::size_t step = whole ? box.rows : 1;
  for (std::size_t i = 0; i < batch.n; i += step) {
    const std::size_t rows = batch.n - i < step ? batch.n - i : step;
    move_line<T>(row_at(batch, i), rows * d, box, to + i * d);
  }
}
