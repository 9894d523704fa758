// Columns of integers and truth values as doubles: exact, but for integers beyond 2^53, which are
// rounded to the nearest, ties to even. Each number is read once, and no branch depends on one.
// Included into each target's namespace.

template <class T> static inline double as_double(T x) {
  // The halves of 64 unsigned bits are exact, their sum is rounded.
  if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>)
    return double(std::int64_t(x >> 32)) * 0x1p32 + double(std::int64_t(x & 0xffffffff));
  else return double(x);
}

// By whole registers, where there are operations for it. A run is read right after it was made, and a load of
// a whole register would wait for stores of its parts, which compilers' own loops make.
template <class T> static void convert_numbers(const char* from, std::size_t n, double* to) {
  std::size_t i = 0;
  if constexpr (register_lanes >= 4)
    for (; i + vec_lanes <= n; i += vec_lanes) store(to + i, load<T>(from + i * sizeof(T)));
  for (; i < n; ++i) {
    T x;
    std::memcpy(&x, from + i * sizeof(T), sizeof x);
    to[i] = as_double(x);
  }
}

// Bytes, of which 0 is false.
static inline Vec load_booleans(const char* from) {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  std::uint64_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  __asm__("" : "+r"(bytes));  // or it may be read twice
  bytes = (((bytes & 0x7f * ones) + 0x7f * ones) | bytes) >> 7 & ones;
  return load<std::uint8_t>(&bytes);
}
static void convert_booleans(const char* from, std::size_t n, double* to) {
  std::size_t i = 0;
  for (; i + vec_lanes <= n; i += vec_lanes) store(to + i, load_booleans(from + i));
  if (i == n) return;
  char rest[vec_lanes] = {};  // compilers make branches of single ones
  double numbers[vec_lanes];
  std::copy(from + i, from + n, rest);
  store(numbers, load_booleans(rest));
  std::copy_n(numbers, n - i, to + i);
}

// Eight bits, the lowest of a byte first, from bit `first` of a byte on.
static inline Vec load_bits(const std::uint8_t* from, unsigned first) {
  const unsigned eight = there({from, first, first ? 1u : 0u}, 0);
  return fill_holes(fill(0.0), with_gone(Holes{}, std::uint8_t(eight)), fill(1.0));
}

// The same of n bits, from bit `first` on.
static void convert_bits(const std::uint8_t* bits, std::size_t first, std::size_t n, double* to) {
  std::size_t i = 0;
  for (; i + vec_lanes <= n; i += vec_lanes)
    store(to + i, load_bits(bits + (first + i) / 8, unsigned(first % 8)));
  for (; i < n; ++i) to[i] = double(1 - left_out({bits, first}, i));
}

static void convert_numbers_of(Dtype type, const void* data, std::size_t first, std::size_t n,
                               double* to) {
  const char* from = static_cast<const char*>(data) + first * size_of(type);
  switch (type) {
    case Dtype::int8:
      return convert_numbers<std::int8_t>(from, n, to);
    case Dtype::int16:
      return convert_numbers<std::int16_t>(from, n, to);
    case Dtype::int32:
      return convert_numbers<std::int32_t>(from, n, to);
    case Dtype::int64:
      return convert_numbers<std::int64_t>(from, n, to);
    case Dtype::uint8:
      return convert_numbers<std::uint8_t>(from, n, to);
    case Dtype::uint16:
      return convert_numbers<std::uint16_t>(from, n, to);
    case Dtype::uint32:
      return convert_numbers<std::uint32_t>(from, n, to);
    case Dtype::uint64:
      return convert_numbers<std::uint64_t>(from, n, to);
    case Dtype::boolean:
      return convert_booleans(from, n, to);
    case Dtype::bits:
      return convert_bits(static_cast<const std::uint8_t*>(data), first, n, to);
    case Dtype::float32:
    case Dtype::float64:
      return;  // as they lie
  }
}
