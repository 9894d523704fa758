// Plain arrays that the compiler vectorises as it can: other processors. Included by registers.hpp
// inside its namespace.
typedef std::uint32_t Words32 __attribute__((vector_size(16)));
typedef std::uint64_t Ints __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(16)));
constexpr std::size_t quads = 1, lanes = 2, group = 2, registers = 16;
constexpr bool fused = false;

template <class V, class Op> inline V each(V a, V b, Op op) {
  for (std::size_t i = 0; i < sizeof a / sizeof a[0]; ++i) a[i] = op(a[i], b[i]);
  return a;
}

inline Words32 words(std::uint32_t x) { return Words32{x, x, x, x}; }
inline Words32 load_words(const std::uint32_t* p) { return Words32{p[0], p[1], p[2], p[3]}; }
inline Words32 add_words(Words32 a, Words32 b) {
  return each(a, b, [](auto x, auto y) { return x + y; });
}
inline Words32 xor_words(Words32 a, Words32 b) {
  return each(a, b, [](auto x, auto y) { return x ^ y; });
}
template <int k> inline Words32 rotate_words(Words32 a) {
  return each(a, a, [](auto x, auto) { return x << k | x >> (32 - k); });
}
inline Words32 low_words(Words32 a, Words32 b) { return Words32{a[0], b[0], a[1], b[1]}; }
inline Words32 high_words(Words32 a, Words32 b) { return Words32{a[2], b[2], a[3], b[3]}; }
inline Words32 low_pairs(Words32 a, Words32 b) { return Words32{a[0], a[1], b[0], b[1]}; }
inline Words32 high_pairs(Words32 a, Words32 b) { return Words32{a[2], a[3], b[2], b[3]}; }
// The four arguments make one row of eight little-endian 64-bit words.
inline void store_quads(Words32 a, Words32 b, Words32 c, Words32 d, std::uint64_t* p, std::size_t) {
  const Words32 row[4] = {a, b, c, d};
  for (std::size_t i = 0; i < 8; ++i)
    p[i] = row[i / 2][2 * (i % 2)] | std::uint64_t(row[i / 2][2 * (i % 2) + 1]) << 32;
}

inline Ints load_integers(const std::uint64_t* p) { return Ints{p[0], p[1]}; }
inline void store_integers(std::int64_t* p, Ints a) { std::memcpy(p, &a, sizeof a); }
inline Ints integers(std::int64_t x) { return Ints{std::uint64_t(x), std::uint64_t(x)}; }
inline Ints add(Ints a, Ints b) {
  return each(a, b, [](auto x, auto y) { return x + y; });
}
inline Ints subtract(Ints a, Ints b) {
  return each(a, b, [](auto x, auto y) { return x - y; });
}
inline Ints exclusive_or(Ints a, Ints b) {
  return each(a, b, [](auto x, auto y) { return x ^ y; });
}
inline Ints inclusive_or(Ints a, Ints b) {
  return each(a, b, [](auto x, auto y) { return x | y; });
}
inline Ints both(Ints a, Ints b) {
  return each(a, b, [](auto x, auto y) { return x & y; });
}
template <int k> inline Ints shift_right(Ints a) {
  return each(a, a, [](auto x, auto) { return x >> k; });
}
inline Ints sign_mask(Ints a) {
  return each(a, a, [](auto x, auto) { return 0 - (x >> 63); });
}
// The low 32 bits of a over the high 32 bits of b.
inline Ints low_half_of(Ints a, Ints b) {
  return each(a, b, [](auto x, auto y) { return (x & 0xffffffff) | (y >> 32 << 32); });
}
inline Ints bits_of(Doubles a) { return (Ints)a; }
inline Doubles from_bits(Ints a) { return (Doubles)a; }

inline Doubles broadcast(double x) { return Doubles{x, x}; }
inline Doubles load_doubles(const double* p) { return Doubles{p[0], p[1]}; }
inline Doubles add(Doubles a, Doubles b) {
  return each(a, b, [](auto x, auto y) { return x + y; });
}
inline Doubles subtract(Doubles a, Doubles b) {
  return each(a, b, [](auto x, auto y) { return x - y; });
}
inline Doubles multiply(Doubles a, Doubles b) {
  return each(a, b, [](auto x, auto y) { return x * y; });
}
inline Doubles divide(Doubles a, Doubles b) {
  return each(a, b, [](auto x, auto y) { return x / y; });
}
inline Doubles square_root(Doubles a) {
  return each(a, a, [](auto x, auto) { return std::sqrt(x); });
}
inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return add(multiply(a, b), c); }
inline Doubles negative_multiply_add(Doubles a, Doubles b, Doubles c) {
  return subtract(c, multiply(a, b));
}
inline Doubles clamp(Doubles y, Doubles low, Doubles high) {
  const Ints above = (Ints)(y > low);
  const Doubles raised = (Doubles)((above & (Ints)y) | (~above & (Ints)low));
  const Ints below = (Ints)(raised < high);
  return (Doubles)((below & (Ints)raised) | (~below & (Ints)high));
}
// `lanes` float32 as doubles, and those of a register.
typedef float Floats __attribute__((vector_size(16)));
inline Doubles widen(const float* p) {
  float x[2];
  std::memcpy(x, p, sizeof x);
  return Doubles{x[0], x[1]};
}
inline void widen_all(Floats a, Doubles* to) {
  to[0] = Doubles{a[0], a[1]}, to[1] = Doubles{a[2], a[3]};
}
// a[0] + a[1], b[0] + b[1].
inline Doubles sums_of_pairs(Doubles a, Doubles b) { return Doubles{a[0] + a[1], b[0] + b[1]}; }
// a[i], b[j].
template <int i, int j> inline Doubles one_of_each(Doubles a, Doubles b) {
  return Doubles{a[i], b[j]};
}
// The sign bit of a flipped where the top bit of `sign` is clear.
inline Doubles sign_unless(Doubles a, Ints sign) {
  const Ints top = integers(INT64_MIN);
  return from_bits(exclusive_or(bits_of(a), both(exclusive_or(sign, top), top)));
}
// One bit a lane: not (a < b); a > b; any bit of a; its sign.
inline unsigned not_less(Doubles a, Doubles b) {
  unsigned mask = 0;
  for (std::size_t i = 0; i < lanes; ++i) mask |= unsigned(!(a[i] < b[i])) << i;
  return mask;
}
inline unsigned above(Doubles a, Doubles b) {
  unsigned mask = 0;
  for (std::size_t i = 0; i < lanes; ++i) mask |= unsigned(a[i] > b[i]) << i;
  return mask;
}
inline unsigned signs(Ints a) {
  unsigned mask = 0;
  for (std::size_t i = 0; i < lanes; ++i) mask |= unsigned(std::uint64_t(a[i]) >> 63) << i;
  return mask;
}
inline unsigned nonzero(Ints a) {
  unsigned mask = 0;
  for (std::size_t i = 0; i < lanes; ++i) mask |= unsigned(a[i] != 0) << i;
  return mask;
}
