// Cells moved into a box, and holes to the centre (Region: lower, upper): rows of doubles, which the
// passes then take. A number is read once, and what follows is of that reading. Included into each
// target's namespace.

static inline Vec moved(Vec x, const CellBox& box, std::size_t at) {
  hold(x);
  const Vec inside = clamp(x, load<double>(box.lower + at), load<double>(box.upper + at));
  return fill_holes(inside, holes_of(x), load<double>(box.center + at));
}

// n numbers in a line of the box; up to 7 more are written beyond them.
template <class T>
static void move_line(const char* from, std::size_t n, const CellBox& box, double* to) {
  std::size_t j = 0;
  for (; j + vec_lanes <= n; j += vec_lanes)
    store(to + j, moved(load<T>(from + j * sizeof(T)), box, j));
  if (j < n) store(to + j, moved(load_first<T>(from + j * sizeof(T), n - j), box, j));
}

// Rows whose coordinates are apart: eight columns at a time, so that their lines are read once.
template <class T> static void move_columns(const Batch& batch, const CellBox& box, double* to) {
  alignas(64) double eight[vec_lanes];
  for (std::size_t j = 0; j < batch.d; j += vec_lanes) {
    const std::size_t most = batch.d - j < vec_lanes ? batch.d - j : vec_lanes;
    for (std::size_t i = 0; i < batch.n; ++i) {
      for (std::size_t l = 0; l < vec_lanes; ++l) eight[l] = 0;
      for (std::size_t l = 0; l < most; ++l) eight[l] = number_of<T>(batch, j + l, i);
      store(eight, moved(load<double>(eight), box, j));
      std::memcpy(to + i * batch.d + j, eight, most * sizeof *to);
    }
  }
}

template <class T> static void move_rows(const Batch& batch, const CellBox& box, double* to) {
  const std::size_t d = batch.d;
  if (batch.columns || batch.column_stride != std::ptrdiff_t(sizeof(T)))
    return move_columns<T>(batch, box, to);
  const bool whole = batch.row_stride == std::ptrdiff_t(d * sizeof(T));
  const std::size_t step = whole ? box.rows : 1;
  for (std::size_t i = 0; i < batch.n; i += step) {
    const std::size_t rows = batch.n - i < step ? batch.n - i : step;
    move_line<T>(row_at(batch, i), rows * d, box, to + i * d);
  }
}
