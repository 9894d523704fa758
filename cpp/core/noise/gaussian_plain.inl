// SSE2, AVX2 and what the compiler vectorises. Included by gaussian.hpp inside its namespace.

// As in clip.hpp: adding 1.5 * 2^52 rounds to the nearest integer for |v| < 2^51. Beyond that
// sigma > 2^46, and every sample is ambiguous.
constexpr double magic = 0x1.8p52;
constexpr std::int64_t magic_bits = 0x4338000000000000;

// Stores the nearest integers to v and returns them as doubles.
inline Doubles store_nearest(Doubles v, std::int64_t* out) {
  using namespace simd;
  const Doubles shifted = add(v, broadcast(magic));
  store_integers(out, subtract(bits_of(shifted), integers(magic_bits)));
  return subtract(shifted, broadcast(magic));
}

// Both halves of m as mantissas under the exponents 2^84 and 2^52; one rounding, at the end.
inline Doubles to_double(Ints m) {
  using namespace simd;
  const Ints high = exclusive_or(shift_right<32>(m), integers(0x4530000000000000));
  const Ints low = low_half_of(m, integers(0x4330000000000000));
  return add(subtract(from_bits(high), broadcast(0x1.00000001p84)), from_bits(low));
}

inline Doubles quotient(Doubles n, Doubles d) { return simd::divide(n, d); }

// n / d for 1 + sqrt(1/2) <= d <= 1 + sqrt(2), |n/d| < 0.18.
inline Doubles log_quotient(Doubles n, Doubles d) {
  using namespace simd;
  if constexpr (!fused) return divide(n, d);
  // A cubic of 13 bits, doubled twice: the divider is busy with the rest.
  const double (&c)[4] = gaussian_coefficients::inverse_poly;
  Doubles rough = multiply_add(broadcast(c[3]), d, broadcast(c[2]));
  rough = multiply_add(multiply_add(rough, d, broadcast(c[1])), d, broadcast(c[0]));
  const Doubles r = multiply_add(rough, negative_multiply_add(d, rough, broadcast(1)), rough);
  const Doubles q = multiply(n, r);
  return multiply_add(r, negative_multiply_add(d, q, n), q);
}

// 64 - log2 m with m = 2^k * x, x in [sqrt(1/2), sqrt(2)), log2 x = f * P(f^2),
// f = (x - 1)/(x + 1).
inline void tail_bits(const Doubles* m, Doubles* bits) {
  using namespace simd;
  constexpr std::int64_t half_root = 0x3fe6a09e667f3bcd;  // bits of sqrt(1/2)
  constexpr std::int64_t exponent_bits = -(std::int64_t(1) << 52);
  Doubles f[width], ff[width], p[width], whole[width];
  for (std::size_t g = 0; g < width; ++g) {
    const Ints shifted = subtract(bits_of(m[g]), integers(half_root));
    const Ints exponent = both(shifted, integers(exponent_bits));
    const Doubles x = from_bits(subtract(bits_of(m[g]), exponent));
    const Ints k =
        inclusive_or(shift_right<52>(exponent), integers(0x4330000000000000));  // 2^52 + k
    whole[g] = subtract(broadcast(0x1p52 + 64), from_bits(k));
    f[g] = log_quotient(subtract(x, broadcast(1)), add(x, broadcast(1)));
    ff[g] = multiply(f[g], f[g]);
  }
  horner(gaussian_coefficients::atanh_poly, ff, p);
  for (std::size_t g = 0; g < width; ++g) bits[g] = subtract(whole[g], multiply(f[g], p[g]));
}
