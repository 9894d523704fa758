// Plain arrays that the compiler vectorises as it can (NEON, ...). Included by simd.hpp inside
// its namespace.
struct W { std::uint32_t at[4]; };
struct I { std::uint64_t at[2]; };
struct F { double at[2]; };
constexpr std::size_t quads = 1, lanes = 2, group = 2;

template <class V, class Op>
inline V each(V a, V b, Op op) {
  for (std::size_t i = 0; i < sizeof a.at / sizeof a.at[0]; ++i) a.at[i] = op(a.at[i], b.at[i]);
  return a;
}

inline W words(std::uint32_t x) { return {{x, x, x, x}}; }
inline W load_words(const std::uint32_t* p) { return {{p[0], p[1], p[2], p[3]}}; }
inline W add_words(W a, W b) { return each(a, b, [](auto x, auto y) { return x + y; }); }
inline W xor_words(W a, W b) { return each(a, b, [](auto x, auto y) { return x ^ y; }); }
template <int k>
inline W rotate_words(W a) {
  return each(a, a, [](auto x, auto) { return x << k | x >> (32 - k); });
}
inline W low_words(W a, W b) { return {{a.at[0], b.at[0], a.at[1], b.at[1]}}; }
inline W high_words(W a, W b) { return {{a.at[2], b.at[2], a.at[3], b.at[3]}}; }
inline W low_pairs(W a, W b) { return {{a.at[0], a.at[1], b.at[0], b.at[1]}}; }
inline W high_pairs(W a, W b) { return {{a.at[2], a.at[3], b.at[2], b.at[3]}}; }
// The four arguments make one row of eight little-endian 64-bit words.
inline void store_quads(W a, W b, W c, W d, std::uint64_t* p, std::size_t) {
  const W row[4] = {a, b, c, d};
  for (std::size_t i = 0; i < 8; ++i)
    p[i] = row[i / 2].at[2 * (i % 2)] | std::uint64_t(row[i / 2].at[2 * (i % 2) + 1]) << 32;
}

inline I load_integers(const std::uint64_t* p) { return {{p[0], p[1]}}; }
inline void store_integers(std::int64_t* p, I a) { std::memcpy(p, a.at, sizeof a.at); }
inline I integers(std::int64_t x) { return {{std::uint64_t(x), std::uint64_t(x)}}; }
inline I add(I a, I b) { return each(a, b, [](auto x, auto y) { return x + y; }); }
inline I subtract(I a, I b) { return each(a, b, [](auto x, auto y) { return x - y; }); }
inline I exclusive_or(I a, I b) { return each(a, b, [](auto x, auto y) { return x ^ y; }); }
inline I inclusive_or(I a, I b) { return each(a, b, [](auto x, auto y) { return x | y; }); }
inline I both(I a, I b) { return each(a, b, [](auto x, auto y) { return x & y; }); }
template <int k>
inline I shift_right(I a) { return each(a, a, [](auto x, auto) { return x >> k; }); }
inline I sign_mask(I a) { return each(a, a, [](auto x, auto) { return 0 - (x >> 63); }); }
// The low 32 bits of a over the high 32 bits of b.
inline I low_half_of(I a, I b) {
  return each(a, b, [](auto x, auto y) { return (x & 0xffffffff) | (y >> 32 << 32); });
}
inline I bits_of(F a) {
  I b;
  std::memcpy(b.at, a.at, sizeof a.at);
  return b;
}
inline F from_bits(I a) {
  F b;
  std::memcpy(b.at, a.at, sizeof a.at);
  return b;
}

inline F doubles(double x) { return {{x, x}}; }
inline F load_doubles(const double* p) { return {{p[0], p[1]}}; }
inline F add(F a, F b) { return each(a, b, [](auto x, auto y) { return x + y; }); }
inline F subtract(F a, F b) { return each(a, b, [](auto x, auto y) { return x - y; }); }
inline F multiply(F a, F b) { return each(a, b, [](auto x, auto y) { return x * y; }); }
inline F divide(F a, F b) { return each(a, b, [](auto x, auto y) { return x / y; }); }
inline F square_root(F a) { return each(a, a, [](auto x, auto) { return std::sqrt(x); }); }
inline F multiply_add(F a, F b, F c) { return add(multiply(a, b), c); }
inline F absolute(F a) { return from_bits(both(bits_of(a), integers(INT64_MAX))); }
// The sign bit of a flipped where the top bit of `sign` is clear.
inline F sign_unless(F a, I sign) {
  const I top = integers(INT64_MIN);
  return from_bits(exclusive_or(bits_of(a), both(exclusive_or(sign, top), top)));
}
// One bit a lane: not (a < b).
inline unsigned not_less(F a, F b) {
  unsigned mask = 0;
  for (std::size_t i = 0; i < lanes; ++i) mask |= unsigned(!(a.at[i] < b.at[i])) << i;
  return mask;
}
