// Rows whose squared norm is not below 2^1000 or is no number: rows with holes (cells that hold a
// NaN or an infinity), and finite numbers so large that exponents are taken out before anything is
// multiplied. With holed_rows.inl the one place where the time of a pass depends on the data. Rows
// with holes are copied, filled and scaled in vectors; huge rows are rare, and scalar. Included into
// each target's namespace.
//
// The vector passes keep no copy of the numbers that they read (but box_rows.inl, of a stretch). A row that they
// find exceptional is copied (copy_row), and all that it adds follows from the copy: where its holes are, whether
// it is exceptional at all, and its integers. What the vectors saw of it is dropped. So a row
// adds a function of one reading of its numbers, whoever else may write to them.

// Exponents below every sum of two: marks a zero.
constexpr int no_exponent = -(1 << 30);

// Scratch of a row on its own, whole vectors: what was read, offered to the matrix, added. Its
// squared norm counts `stretch` times.
struct RowScratch {
  double *x, *h, *y;
  double stretch = 1;
};

// d/k for a row with k > 0 of its d cells present, where the region says so.
static double stretch_of(const Region& region, std::int64_t holes) {
  const double d = double(region.d), present = d - double(holes);
  return region.stretch ? d / (present > 1 ? present : 1) : 1.0;
}

// Modulo 2^64: sums may hold magic numbers.
static inline void add_to(std::int64_t* counts, const VecInt& more) {
  VecInt sum = load_ints(counts);
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p)
    sum.part[p] = Mask(Words64(sum.part[p]) + Words64(more.part[p]));
  store(counts, sum);
}

// No compiler may take a copy for what it was made from, and read that again.
static inline void copied() { __asm__ volatile("" : : : "memory"); }

template <class T> static inline Vec load_some(const void* p, std::size_t count) {
  return count >= vec_lanes ? load<T>(p) : load_first<T>(p, count);
}

// x <- a row of contiguous numbers, each read once, the centre in place of its holes, which are
// counted in `absent`; how many? x and absent are whole vectors.
template <class T>
static std::int64_t copy_row(const char* row, std::size_t d, const double* center, double* x,
                             std::int64_t* absent) {
  for (std::size_t j = 0; j < d; j += vec_lanes)
    store(x + j, load_some<T>(row + j * sizeof(T), d - j));
  copied();
  VecInt all{};
  for (std::size_t j = 0; j < d; j += vec_lanes) {
    const Vec read = load<double>(x + j);
    const Holes holes = holes_of(read);
    store(x + j, fill_holes(read, holes, load_some<double>(center + j, d - j)));
    store(absent + j, count_holes(load_ints(absent + j), holes));
    all = count_holes(all, holes);
  }
  std::int64_t lanes[vec_lanes], count = 0;
  store(lanes, all);
  for (std::int64_t lane : lanes) count += lane;
  return count;
}

// Counts as doubles.
static inline Vec as_doubles(const VecInt& counts) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p)
    r.part[p] =
        Doubles(counts.part[p] + std::int64_t(rounding_magic_bits)) - broadcast(rounding_magic);
  return r;
}

// stretch_of of eight rows of d.
static inline Vec stretches_of(const Vec& holes, std::size_t d) {
  return fill(double(d)) / maximum(fill(double(d)) - holes, fill(1.0));
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

// y <- z min(1, C/|z|) for z_j = h_j s_j 2^exponent, whatever the size of z, |z|^2 counted
// `stretch` times; was it outside?
static bool clip_scaled(double radius, double stretch, std::size_t d, const double* h,
                        const double* scale, int exponent, double* y) {
  int top = no_exponent, e;
  for (std::size_t j = 0; j < d; ++j) {
    split_product(h, scale, j, &e);
    if (e > top) top = e;
  }
  for (std::size_t j = 0; j < d; ++j) {
    const double m = split_product(h, scale, j, &e);
    y[j] = m != 0 ? std::ldexp(m, e - top) : 0;
  }
  const double norm = std::sqrt(squared_norm(d, y) * stretch);
  const bool outside = norm > 0 && std::ldexp(norm, top + exponent) > radius;
  const double factor = outside ? radius / norm : std::ldexp(1.0, top + exponent);
  for (std::size_t j = 0; j < d; ++j) y[j] = norm > 0 ? y[j] * factor : 0;
  return outside;
}

// h_j <- h_j 2^-e, the largest near 1, in the 29 bits that exact products need; returns e. They are
// rounded first: so what is rounded already has the same e, and the same zeros.
static int prepare_matrix_input(std::size_t d, double* h) {
  int top = no_exponent, e;
  for (std::size_t j = 0; j < d; ++j) {
    const double m = round_to_29_bits(std::frexp(h[j], &e));  // h itself may be near 2^1024
    h[j] = std::ldexp(m, e);
    if (std::frexp(h[j], &e) != 0 && e > top) top = e;
  }
  for (std::size_t j = 0; j < d; ++j) h[j] = matrix_input(std::ldexp(h[j], -top));
  return top;
}

// to_i = from_i + B_i h, each added to in the order of k: the sums of the tiles in matrix.inl.
static void add_product(const double* matrix, std::size_t outputs, std::size_t inputs,
                        const double* h, const double* from, double* to) {
  for (std::size_t i = 0; i < outputs; ++i) {
    double sum = from ? from[i] : 0.0;
    for (std::size_t k = 0; k < inputs; ++k) sum += matrix[i * inputs + k] * h[k];
    to[i] = sum;
  }
}

// y = B h; with a rank by way of t, whose place is x.
static void multiply_one(const Region& region, const RowScratch& s) {
  const std::size_t d = region.d, rank = region.rank;
  if (!rank) return add_product(region.matrix, d, d, s.h, nullptr, s.y);
  const double *left = region.factors, *right = left + d * rank;
  for (std::size_t k = 0; k < rank; ++k) s.x[k] = 0;
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < rank; ++k) s.x[k] += right[j * rank + k] * s.h[j];
  for (std::size_t k = 0; k < rank; ++k) s.x[k] = matrix_input(s.x[k]);
  for (std::size_t j = 0; j < d; ++j) s.y[j] = region.scale[j] * s.h[j];
  add_product(left, d, rank, s.x, s.y, s.y);
}

// y <- the clipped row of matrix inputs h 2^exponent.
static bool clip_huge_input(const Region& region, const RowScratch& s, int exponent) {
  exponent += prepare_matrix_input(region.d, s.h);
  multiply_one(region, s);
  std::memcpy(s.h, s.y, region.d * sizeof *s.h);
  return clip_scaled(region.radius, s.stretch, region.d, s.h, nullptr, exponent, s.y);
}

// y <- the clipped row of numbers x, all finite, which are lost; was it outside?
static bool clip_huge_row(const Region& region, const RowScratch& s) {
  for (std::size_t j = 0; j < region.d; ++j)
    s.h[j] = 0.25 * s.x[j] - 0.25 * region.center[j];  // 0.25: no overflow
  if (is_mixed(region)) return clip_huge_input(region, s, 2);
  return clip_scaled(region.radius, s.stretch, region.d, s.h, region.scale, 2, s.y);
}
