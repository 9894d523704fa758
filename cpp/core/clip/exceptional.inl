// Rows whose squared norm is not below 2^1000: a NaN, an infinity, or finite numbers so large
// that exponents are taken out before anything is multiplied. Rare, scalar, and the one place
// where the time of a pass depends on the data. Included into each target's namespace.

// Exponents below every sum of two: marks a zero.
constexpr int no_exponent = -(1 << 30);

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
  double lane[norm_lanes] = {};
  for (std::size_t j = 0; j < d; ++j) {
    const double m = split_product(h, scale, j, &e);
    y[j] = m != 0 ? std::ldexp(m, e - top) : 0;
    lane[j % norm_lanes] += y[j] * y[j];
  }
  const double norm = std::sqrt(((lane[0] + lane[4]) + (lane[2] + lane[6])) +
                                ((lane[1] + lane[5]) + (lane[3] + lane[7])));
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

// y <- the clipped row with h_j = (x_j - c_j) / 4, all finite; h is used up.
static bool clip_huge_row(const Region& region, double* h, double* y) {
  const std::size_t d = region.d;
  if (!region.matrix) return clip_scaled(region.radius, d, h, region.scale, 2, y);
  const int exponent = prepare_matrix_input(d, h) + 2;
  for (std::size_t i = 0; i < d; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < d; ++k) sum += region.matrix[i * d + k] * h[k];
    y[i] = sum;
  }
  std::memcpy(h, y, d * sizeof *h);
  return clip_scaled(region.radius, d, h, nullptr, exponent, y);
}

// A squared distance in place of one that is no number below 2^1000: beyond every edge for a
// finite row, and 0, that of the centre, for the others.
template <class T>
static double exceptional_distance(const char* row, std::ptrdiff_t stride, std::size_t d) {
  bool finite = true;
  for (std::size_t j = 0; j < d; ++j) finite &= std::isfinite(element<T>(row, stride, j));
  return finite ? double(INFINITY) : 0.0;
}

// What counts for an exceptional row goes to y, in grid units; h is scratch. The row is read
// once: what is found finite is what is clipped, whoever else may write to it.
template <class T>
static void exceptional_row(const Region& region, const char* row, std::ptrdiff_t stride,
                            double* h, double* y, ClipCounts& counts) {
  bool finite = true;
  for (std::size_t j = 0; j < region.d; ++j) {
    h[j] = 0.25 * element<T>(row, stride, j) - 0.25 * region.center[j];  // 0.25: no overflow
    finite &= std::isfinite(h[j]);
  }
  if (finite) {
    counts.clipped += clip_huge_row(region, h, y);
    return;
  }
  ++counts.clipped, ++counts.nonfinite;
  for (std::size_t j = 0; j < region.d; ++j) y[j] = 0;
}
