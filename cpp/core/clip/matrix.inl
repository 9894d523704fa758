// y = B h for blocks of rows: a register-tiled product. One accumulator for each y_i, over k in
// order, so a row's y does not depend on the rows beside it; products are exact (clip.hpp).
// Cost per k of a tile, AVX-512: 24 FMA on two ports, 14 loads on two: 12 cycles.
// With a rank two such products: t = V' h, rounded, and y = s h + U t.

constexpr int panel = 2 * register_lanes;            // outputs of a tile
constexpr int tile_rows = registers == 32 ? 12 : 6;  // 24 or 12 accumulators
constexpr std::size_t depth = 256;                   // k's in one go: B's panel of them stays in L1
constexpr std::size_t h_stride = depth + 8;  // constant: a tile's inputs have one base register

// A matrix of outputs x inputs into panels of `panel` outputs: packed[(i / panel) inputs + k][i %
// panel]. `down` and `across`: from one of its entries to the next output's and the next input's.
static void pack_panels(std::size_t outputs, std::size_t inputs, const double* matrix,
                        std::size_t down, std::size_t across, double* packed) {
  for (std::size_t i0 = 0; i0 < outputs; i0 += panel)
    for (std::size_t k = 0; k < inputs; ++k)
      for (std::size_t i = i0; i < i0 + panel; ++i)
        *packed++ = i < outputs ? matrix[i * down + k * across] : 0.0;
}

static std::size_t whole_panels(std::size_t outputs) { return round_up(outputs, panel); }

// V', U and s, one after the other.
static void pack_factors(const Region& region, double* packed) {
  const std::size_t d = region.d, rank = region.rank;
  pack_panels(rank, d, region.factors + d * rank, 1, rank, packed);
  packed += whole_panels(rank) * d;
  pack_panels(d, rank, region.factors, rank, 1, packed);
  packed += whole_panels(d) * rank;
  for (std::size_t j = 0; j < whole_panels(d); ++j) packed[j] = j < d ? region.scale[j] : 0.0;
}

// Where the sums of a tile begin: at 0, at y, or at scale times the numbers `from`.
struct Start {
  bool at_zero;
  const double *scale, *from;
};

static inline Doubles begin(const Start& start, const double* y, std::size_t at, std::size_t row) {
  if (start.at_zero) return Doubles{};
  if (!start.scale) return load_doubles(y);
  return load_doubles(start.scale + at) * load_doubles(start.from + row * h_stride + at);
}

// `rows` x `panel` outputs, `length` k's: y = start + h B.
template <int rows>
static inline void tile(const double* h, const double* packed, double* y, std::size_t stride,
                        std::size_t length, const Start& start) {
  Doubles low[rows], high[rows];
  ELLIPSUM_UNROLL
  for (int r = 0; r < rows; ++r) {
    low[r] = begin(start, y + r * stride, 0, std::size_t(r));
    high[r] = begin(start, y + r * stride + register_lanes, register_lanes, std::size_t(r));
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

// The same for n rows.
static inline void tiles(const double* h, const double* packed, double* y, std::size_t stride,
                         std::size_t length, Start start, std::size_t n) {
  const auto step = [&](std::size_t rows) {
    h += rows * h_stride, y += rows * stride, n -= rows;
    if (start.from) start.from += rows * h_stride;
  };
  for (; n >= tile_rows; step(tile_rows)) tile<tile_rows>(h, packed, y, stride, length, start);
  for (; n > 0; step(1)) tile<1>(h, packed, y, stride, length, start);
}

static std::size_t depth_from(std::size_t k, std::size_t inputs) {
  return inputs - k < depth ? inputs - k : depth;
}

// y = h B for n rows. h: for every `depth` k's, `block` rows of h_stride.
static void multiply(const double* h, const double* packed, double* y, std::size_t n,
                     const ClipPlan& plan, std::size_t d) {
  for (std::size_t k = 0; k < d; k += depth, h += plan.block * h_stride)
    for (std::size_t i = 0; i < d; i += panel)
      tiles(h, packed + i * d + k * panel, y + i, plan.stride, depth_from(k, d),
            {k == 0, nullptr, nullptr}, n);
}

// t in 29 bits. V is below 1, so that |t| < 2^431 for |h| <= 2^400: U t stays far from overflow.
static void round_inputs(double* t, std::size_t rank, std::size_t chunk) {
  VecInt any{};
  for (std::size_t k = 0; k < rank; k += vec_lanes) {
    double* at = t + k / depth * chunk + k % depth;
    const Vec sums = load_some<double>(at, rank - k);  // a panel may be less than a vector
    store(at, split_29_bits(sums, smallest_matrix_input, INFINITY, any));
  }
}

// y = s h + U t with t = V' h for n rows, t laid out as h is.
static void multiply_factors(const Region& region, const double* h, double* t, double* y,
                             std::size_t n, const ClipPlan& plan) {
  const std::size_t d = region.d, rank = region.rank, chunk = plan.block * h_stride;
  const double *right = region.packed, *left = right + whole_panels(rank) * d,
               *scale = left + whole_panels(d) * rank;
  for (std::size_t k = 0; k < d; k += depth)
    for (std::size_t i = 0; i < rank; i += panel)
      tiles(h + k / depth * chunk, right + i * d + k * panel, t + i / depth * chunk + i % depth,
            h_stride, depth_from(k, d), {k == 0, nullptr, nullptr}, n);
  for (std::size_t r = 0; r < n; ++r) round_inputs(t + r * h_stride, rank, chunk);
  for (std::size_t i = 0; i < d; i += panel) {
    const Start product{false, scale + i, h + i / depth * chunk + i % depth};
    for (std::size_t k = 0; k < rank; k += depth)
      tiles(t + k / depth * chunk, left + i * rank + k * panel, y + i, plan.stride,
            depth_from(k, rank), k == 0 ? product : Start{false, nullptr, nullptr}, n);
  }
}

// h_j = x_j - c_j in 29 bits; false for a row out of range.
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
  return !any_bit(outside);
}
