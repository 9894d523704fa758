// Integers and truth values as doubles: exact, but for integers beyond 2^53, which are
// rounded to the nearest, ties to even. Each number is read once, and no branch depends on one.
// Included into each target's namespace.

template <class T> static inline double as_double(T x) {
  // The halves of 64 unsigned bits are exact, their sum is rounded.
  if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>)
    return double(std::int64_t(x >> 32)) * 0x1p32 + double(std::int64_t(x & 0xffffffff));
  else return double(x);
}
struct Truth {
  std::uint8_t byte;  // 0 is false
};
static inline double as_double(Truth x) {
  return double((x.byte | (0u - x.byte)) >> 7 & 1);  // compilers make a branch of x != 0
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

// f(number) for the type of a number, which is not bits.
template <class F> static void with_type(Dtype type, const F& f) {
  switch (type) {
    // They differ in the type alone. NOLINTNEXTLINE(bugprone-branch-clone)
    case Dtype::float32:
      return f(float());
    case Dtype::float64:
      return f(double());
    case Dtype::int8:
      return f(std::int8_t());
    case Dtype::int16:
      return f(std::int16_t());
    case Dtype::int32:
      return f(std::int32_t());
    case Dtype::int64:
      return f(std::int64_t());
    case Dtype::uint8:
      return f(std::uint8_t());
    case Dtype::uint16:
      return f(std::uint16_t());
    case Dtype::uint32:
      return f(std::uint32_t());
    case Dtype::uint64:
      return f(std::uint64_t());
    case Dtype::boolean:
      return f(Truth());
    case Dtype::bits:
      return;
  }
}

template <class T> static void convert_all(const char* from, std::size_t n, double* to) {
  if constexpr (std::is_same_v<T, Truth>) convert_booleans(from, n, to);
  else convert_numbers<T>(from, n, to);
}
static void convert_numbers_of(Dtype type, const void* data, std::size_t first, std::size_t n,
                               double* to) {
  if (type == Dtype::bits)
    return convert_bits(static_cast<const std::uint8_t*>(data), first, n, to);
  const char* from = static_cast<const char*>(data) + first * size_of(type);
  with_type(type, [&](auto number) { convert_all<decltype(number)>(from, n, to); });
}
