// SSE2, AVX2 and what the compiler vectorises. Included by gaussian.hpp inside its namespace.

// As in clip.hpp: adding 1.5 * 2^52 rounds to the nearest integer for |v| < 2^51. Beyond that
// sigma > 2^46, and every sample is ambiguous.
constexpr double magic = 0x1.8p52;
constexpr std::int64_t magic_bits = 0x4338000000000000;

// Stores the nearest integers to v and returns them as doubles.
inline F store_nearest(F v, std::int64_t* out) {
  using namespace simd;
  const F shifted = add(v, doubles(magic));
  store_integers(out, subtract(bits_of(shifted), integers(magic_bits)));
  return subtract(shifted, doubles(magic));
}

// Both halves of m as mantissas under the exponents 2^84 and 2^52; one rounding, at the end.
inline F to_double(I m) {
  using namespace simd;
  const I high = exclusive_or(shift_right<32>(m), integers(0x4530000000000000));
  const I low = low_half_of(m, integers(0x4330000000000000));
  return add(subtract(from_bits(high), doubles(0x1.00000001p84)), from_bits(low));
}

inline F quotient(F n, F d) { return simd::divide(n, d); }

// n / d for 1 + sqrt(1/2) <= d <= 1 + sqrt(2), |n/d| < 0.18.
inline F log_quotient(F n, F d) {
#ifdef __FMA__
  // A cubic of 13 bits, doubled twice: the divider is busy with the rest.
  const double(&c)[4] = gaussian_coefficients::inverse_poly;
  using namespace simd;
  F rough = multiply_add(doubles(c[3]), d, doubles(c[2]));
  rough = multiply_add(multiply_add(rough, d, doubles(c[1])), d, doubles(c[0]));
  const F r = multiply_add(rough, negative_multiply_add(d, rough, doubles(1)), rough);
  const F q = multiply(n, r);
  return multiply_add(r, negative_multiply_add(d, q, n), q);
#else
  return simd::divide(n, d);
#endif
}

// 64 - log2 m with m = 2^k * x, x in [sqrt(1/2), sqrt(2)), log2 x = f * P(f^2),
// f = (x - 1)/(x + 1).
inline void tail_bits(const F* m, F* bits) {
  using namespace simd;
  constexpr std::int64_t half_root = 0x3fe6a09e667f3bcd;  // bits of sqrt(1/2)
  constexpr std::int64_t exponent_bits = -(std::int64_t(1) << 52);
  F f[width], ff[width], p[width], whole[width];
  for (std::size_t g = 0; g < width; ++g) {
    const I shifted = subtract(bits_of(m[g]), integers(half_root));
    const I exponent = both(shifted, integers(exponent_bits));
    const F x = from_bits(subtract(bits_of(m[g]), exponent));
    const I k = inclusive_or(shift_right<52>(exponent), integers(0x4330000000000000));  // 2^52 + k
    whole[g] = subtract(doubles(0x1p52 + 64), from_bits(k));
    f[g] = log_quotient(subtract(x, doubles(1)), add(x, doubles(1)));
    ff[g] = multiply(f[g], f[g]);
  }
  horner(gaussian_coefficients::atanh_poly, ff, p);
  for (std::size_t g = 0; g < width; ++g) bits[g] = subtract(whole[g], multiply(f[g], p[g]));
}
