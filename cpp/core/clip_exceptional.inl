// A finite row whose squared norm leaves the range of a double: exponents are taken out
// before anything is multiplied. Rare, scalar, included into each target's namespace.

// y_j <- m_j 2^(e_j - max e), and clipped to the radius; m_j 2^e_j = h_j s_j.
static void clip_scaled(double radius, std::size_t d, const double* h, const double* scale,
                        double* y) {
  int top = -1 << 30;
  for (std::size_t j = 0; j < d; ++j) {
    int eh, es = 0;
    const double m = std::frexp(h[j], &eh) * (scale ? std::frexp(scale[j], &es) : 1.0);
    if (m != 0 && eh + es > top) top = eh + es;
  }
  double lane[norm_lanes] = {};
  for (std::size_t j = 0; j < d; ++j) {
    int eh, es = 0;
    const double m = std::frexp(h[j], &eh) * (scale ? std::frexp(scale[j], &es) : 1.0);
    y[j] = std::ldexp(m, eh + es - top);
    lane[j % norm_lanes] += y[j] * y[j];
  }
  const double norm = std::sqrt(sum_lanes(lane));
  const double factor = norm > 0 ? radius / norm : 0;
  for (std::size_t j = 0; j < d; ++j) y[j] *= factor;
}

template <class T>
static void clip_huge_row(const Region& region, const char* row, std::ptrdiff_t stride, double* h,
                          double* y) {
  const std::size_t d = region.d;
  for (std::size_t j = 0; j < d; ++j) {
    T x;
    std::memcpy(&x, row + std::ptrdiff_t(j) * stride, sizeof x);
    h[j] = 0.25 * double(x) - 0.25 * region.center[j];  // 0.25: the difference stays finite
  }
  if (!region.matrix) return clip_scaled(region.radius, d, h, region.scale, y);
  int top = -1 << 30;
  for (std::size_t j = 0; j < d; ++j) {
    int e;
    if (std::frexp(h[j], &e) != 0 && e > top) top = e;
  }
  for (std::size_t j = 0; j < d; ++j) h[j] = round_to_29_bits(std::ldexp(h[j], -top));
  for (std::size_t i = 0; i < d; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < d; ++k) sum += region.matrix[i * d + k] * h[k];
    y[i] = sum;
  }
  for (std::size_t i = 0; i < d; ++i) h[i] = y[i];
  clip_scaled(region.radius, d, h, nullptr, y);
}
