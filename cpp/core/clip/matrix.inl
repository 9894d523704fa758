// y = B h for blocks of rows: a register-tiled product. One accumulator for each y_i, over k in
// order, so a row's y does not depend on the rows beside it; products are exact (clip.hpp).
// Cost per k of a tile, AVX-512: 24 FMA on two ports, 14 loads on two: 12 cycles.

constexpr int panel = 2 * register_lanes;                // outputs of a tile
constexpr int tile_rows = register_lanes == 8 ? 12 : 6;  // 24 or 12 accumulators
constexpr std::size_t depth = 256;           // k's in one go: B's panel of them stays in L1
constexpr std::size_t h_stride = depth + 8;  // constant: a tile's inputs have one base register

// B, row-major, into panels of `panel` outputs: packed[(i / panel) d + k][i % panel].
static void pack_panels(std::size_t d, const double* matrix, double* packed) {
  for (std::size_t i0 = 0; i0 < d; i0 += panel)
    for (std::size_t k = 0; k < d; ++k)
      for (std::size_t i = i0; i < i0 + panel; ++i) *packed++ = i < d ? matrix[i * d + k] : 0.0;
}

// `rows` x `panel` outputs, `length` k's: y += h B, or y = h B at the first.
template <int rows>
static inline void tile(const double* h, const double* packed, double* y, std::size_t stride,
                        std::size_t length, bool first) {
  Doubles low[rows], high[rows];
  ELLIPSUM_UNROLL
  for (int r = 0; r < rows; ++r) {
    low[r] = first ? Doubles{} : load_doubles(y + r * stride);
    high[r] = first ? Doubles{} : load_doubles(y + r * stride + register_lanes);
  }
  for (std::size_t k = 0; k < length; ++k) {
    const Doubles b_low = load_doubles(packed + k * panel);
    const Doubles b_high = load_doubles(packed + k * panel + register_lanes);
    ELLIPSUM_UNROLL
    for (int r = 0; r < rows; ++r) {
      const Doubles x = broadcast(h[r * h_stride + k]);
      low[r] = multiply_add(x, b_low, low[r]);
      high[r] = multiply_add(x, b_high, high[r]);
    }
  }
  ELLIPSUM_UNROLL
  for (int r = 0; r < rows; ++r) {
    std::memcpy(y + r * stride, &low[r], sizeof low[r]);
    std::memcpy(y + r * stride + register_lanes, &high[r], sizeof high[r]);
  }
}

// y = h B for n rows. h: for every `depth` k's, `block` rows of h_stride.
static void multiply(const double* h, const double* packed, double* y, std::size_t n,
                     const ClipPlan& plan, std::size_t d) {
  for (std::size_t k = 0; k < d; k += depth, h += plan.block * h_stride) {
    const std::size_t length = d - k < depth ? d - k : depth;
    for (std::size_t i = 0; i < d; i += panel) {
      const double* b = packed + i * d + k * panel;
      double* to = y + i;
      std::size_t r = 0;
      for (; r + tile_rows <= n; r += tile_rows)
        tile<tile_rows>(h + r * h_stride, b, to + r * plan.stride, plan.stride, length, k == 0);
      for (; r < n; ++r)
        tile<1>(h + r * h_stride, b, to + r * plan.stride, plan.stride, length, k == 0);
    }
  }
}

// h_j = x_j - c_j in 29 bits; false for a row out of range, which becomes NaN.
template <class T>
static bool load_matrix_input(const double* center, const char* row, std::size_t d,
                              std::size_t chunk, double* h) {
  VecInt outside{};
  for (std::size_t j = 0; j < d; j += vec_lanes) {
    const char* from = row + j * sizeof(T);
    const Vec x = load_some<T>(from, d - j);
    const Vec offset = x - load<double>(center + j);
    store(h + j / depth * chunk + j % depth,
          split_29_bits(offset, smallest_matrix_input, largest_matrix_input, outside));
  }
  const bool inside = count_nonzero(outside) == 0;
  if (!inside) h[0] = __builtin_nan("");
  return inside;
}
