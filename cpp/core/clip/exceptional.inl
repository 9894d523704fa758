// Rows whose squared norm is not below 2^1000: a NaN, an infinity, or finite numbers so large
// that exponents are taken out before anything is multiplied. Rare, scalar, and the one place
// where the time of a pass depends on the data. Included into each target's namespace.
//
// The vector passes keep no copy of the numbers that they read. A row that they find exceptional
// is copied (copy_row), and all that it adds follows from the copy: whether it is finite, whether
// it is exceptional at all, and its integers. What the vectors saw of it is dropped. So a row
// adds a function of one reading of its numbers, whoever else may write to them.

// Exponents below every sum of two: marks a zero.
constexpr int no_exponent = -(1 << 30);

// Scratch of a row on its own, d numbers each: what was read, offered to the matrix, added.
struct RowScratch {
  double *x, *h, *y;
};

template <class T>
static void copy_row(const char* row, std::ptrdiff_t stride, std::size_t d, double* x) {
  for (std::size_t j = 0; j < d; ++j) x[j] = element<T>(row, stride, j);
  __asm__ volatile("" : : : "memory");  // no compiler may take x for the row, and read it again
}

static bool all_finite(std::size_t d, const double* x) {
  bool finite = true;
  for (std::size_t j = 0; j < d; ++j) finite &= std::isfinite(x[j]);
  return finite;
}

static double squared_norm(std::size_t d, const double* y) {
  double lane[norm_lanes] = {};
  for (std::size_t j = 0; j < d; ++j) lane[j % norm_lanes] += y[j] * y[j];
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// h_j s_j = m 2^e with m in [1/4, 1), or 0.
static double split_product(const double* h, const double* scale, std::size_t j, int* e) {
  int eh, es = 0;
  const double m = std::frexp(h[j], &eh) * (scale ? std::frexp(scale[j], &es) : 1.0);
  *e = m != 0 ? eh + es : no_exponent;
  return m;
}

// y <- z min(1, C/|z|) for z_j = h_j s_j 2^exponent, whatever the size of z; was it outside?
static bool clip_scaled(double radius, std::size_t d, const double* h, const double* scale,
                        int exponent, double* y) {
  int top = no_exponent, e;
  for (std::size_t j = 0; j < d; ++j) {
    split_product(h, scale, j, &e);
    if (e > top) top = e;
  }
  for (std::size_t j = 0; j < d; ++j) {
    const double m = split_product(h, scale, j, &e);
    y[j] = m != 0 ? std::ldexp(m, e - top) : 0;
  }
  const double norm = std::sqrt(squared_norm(d, y));
  const bool outside = norm > 0 && std::ldexp(norm, top + exponent) > radius;
  const double factor = outside ? radius / norm : std::ldexp(1.0, top + exponent);
  for (std::size_t j = 0; j < d; ++j) y[j] = norm > 0 ? y[j] * factor : 0;
  return outside;
}

// h_j <- h_j 2^-e, the largest near 1, in the 29 bits that exact products need; returns e.
static int prepare_matrix_input(std::size_t d, double* h) {
  int top = no_exponent, e;
  for (std::size_t j = 0; j < d; ++j)
    if (std::frexp(h[j], &e) != 0 && e > top) top = e;
  for (std::size_t j = 0; j < d; ++j) h[j] = matrix_input(std::ldexp(h[j], -top));
  return top;
}

// y = B h, each y_i added to in the order of k: the sums of the tiles in matrix.inl.
static void multiply_one(const Region& region, const double* h, double* y) {
  for (std::size_t i = 0; i < region.d; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < region.d; ++k) sum += region.matrix[i * region.d + k] * h[k];
    y[i] = sum;
  }
}

// y <- the clipped row of numbers x, all finite.
static bool clip_huge_row(const Region& region, const RowScratch& s) {
  const std::size_t d = region.d;
  for (std::size_t j = 0; j < d; ++j)
    s.h[j] = 0.25 * s.x[j] - 0.25 * region.center[j];  // 0.25: no overflow
  if (!region.matrix) return clip_scaled(region.radius, d, s.h, region.scale, 2, s.y);
  const int exponent = prepare_matrix_input(d, s.h) + 2;
  multiply_one(region, s.h, s.y);
  std::memcpy(s.h, s.y, d * sizeof *s.h);
  return clip_scaled(region.radius, d, s.h, nullptr, exponent, s.y);
}

// y <- the scaled row; its squared norm, infinite for one that a matrix cannot take.
static double scale_row(const Region& region, const RowScratch& s) {
  bool inside = true;
  for (std::size_t j = 0; j < region.d; ++j) {
    const double offset = s.x[j] - region.center[j];
    inside &= !region.matrix || std::fabs(offset) < largest_matrix_input;
    if (region.matrix) s.h[j] = matrix_input(offset);
    else s.y[j] = offset * region.scale[j];
  }
  if (!inside) return double(INFINITY);
  if (region.matrix) multiply_one(region, s.h, s.y);
  return squared_norm(region.d, s.y);
}

static bool clip_to_ball(const Region& region, const RowScratch& s) {
  const double norm2 = scale_row(region, s);
  if (!(norm2 < exceptional_norm2)) return clip_huge_row(region, s);
  const double norm = std::sqrt(norm2);
  const double factor = region.radius / (norm > region.radius ? norm : region.radius);
  for (std::size_t j = 0; j < region.d; ++j) s.y[j] *= factor;
  return norm > region.radius;
}

static bool clip_to_box(const Region& region, const RowScratch& s) {
  bool changed = false;
  for (std::size_t j = 0; j < region.d; ++j) {
    const double y = (s.x[j] - region.center[j]) * region.scale[j], limit = region.limit[j];
    s.y[j] = y > limit ? limit : y < -limit ? -limit : y;
    changed |= s.y[j] != y;
  }
  return changed;
}

// y <- 0, as for the centre.
static void count_nonfinite(const Region& region, double* y, ClipCounts& counts) {
  ++counts.clipped, ++counts.nonfinite;
  for (std::size_t j = 0; j < region.d; ++j) y[j] = 0;
}

// What the row of numbers x adds goes to y, in grid units, by the whole of the rule.
template <Task task>
static void clip_alone(const Region& region, const RowScratch& s, ClipCounts& counts) {
  if (!all_finite(region.d, s.x)) return count_nonfinite(region, s.y, counts);
  counts.clipped += task == Task::box ? clip_to_box(region, s) : clip_to_ball(region, s);
}

// The squared distance that the row of numbers x is counted by: beyond every edge where it is no
// number below 2^1000, and 0, that of the centre, for a row that is not finite.
static double distance_alone(const Region& region, const RowScratch& s) {
  if (!all_finite(region.d, s.x)) return 0;
  const double norm2 = scale_row(region, s);
  return norm2 < exceptional_norm2 ? norm2 : double(INFINITY);
}
