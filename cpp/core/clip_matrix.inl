// y = B h for blocks of rows: a register-tiled product. One accumulator for each y_i, over k in
// order, so a row's y does not depend on the rows beside it; products are exact (clip.hpp).

constexpr int panel = 2 * register_lanes;  // outputs in a tile
constexpr int tile_rows = register_lanes == 8 ? 12 : 4;  // 24 or 8 accumulators
constexpr std::size_t depth = 256;  // k's in one go: panel * depth doubles stay in L1

// B, row-major, into panels of `panel` outputs: packed[(i / panel) d + k][i % panel].
static void pack_panels(std::size_t d, const double* matrix, double* packed) {
  for (std::size_t i0 = 0; i0 < d; i0 += panel)
    for (std::size_t k = 0; k < d; ++k)
      for (std::size_t i = i0; i < i0 + panel; ++i)
        *packed++ = i < d ? matrix[i * d + k] : 0.0;
}

// rows x panel outputs, k in [0, length): y += h B, or y = h B.
template <int rows>
static inline void tile(const double* h, const double* packed, double* y, std::size_t stride,
                        std::size_t length, bool first) {
  Doubles sum[rows][2];
  ELLIPSUM_UNROLL
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < 2; ++v)
      if (first) sum[r][v] = Doubles{};
      else std::memcpy(&sum[r][v], y + r * stride + v * register_lanes, sizeof(Doubles));
  for (std::size_t k = 0; k < length; ++k) {
    Doubles b[2];
    std::memcpy(b, packed + k * panel, sizeof b);
    ELLIPSUM_UNROLL
    for (int r = 0; r < rows; ++r) {
      const Doubles x = broadcast(h[r * stride + k]);
      sum[r][0] = multiply_add(x, b[0], sum[r][0]);
      sum[r][1] = multiply_add(x, b[1], sum[r][1]);
    }
  }
  ELLIPSUM_UNROLL
  for (int r = 0; r < rows; ++r)
    std::memcpy(y + r * stride, sum[r], sizeof sum[r]);
}

// y = h B for n rows; stride: doubles from row to row of both.
static void multiply(const double* h, const double* packed, double* y, std::size_t n,
                     std::size_t d, std::size_t stride) {
  for (std::size_t k = 0; k < d; k += depth) {
    const std::size_t length = d - k < depth ? d - k : depth;
    for (std::size_t i = 0; i < d; i += panel) {
      const double* b = packed + i * d + k * panel;
      std::size_t r = 0;
      for (; r + tile_rows <= n; r += tile_rows)
        tile<tile_rows>(h + r * stride + k, b, y + r * stride + i, stride, length, k == 0);
      for (; r < n; ++r) tile<1>(h + r * stride + k, b, y + r * stride + i, stride, length, k == 0);
    }
  }
}

// h_j = x_j - c_j in 29 bits; a row out of range becomes NaN, which makes it exceptional.
template <class T>
static void load_matrix_input(const Region& region, const char* row, std::ptrdiff_t stride,
                              double* h) {
  std::int64_t outside = 0;
  for (std::size_t j = 0; j < region.d; ++j) {
    const double x = element<T>(row, stride, j) - region.center[j];
    outside += !(std::fabs(x) < largest_matrix_input);
    h[j] = matrix_input(x);
  }
  if (outside) h[0] = __builtin_nan("");
}
