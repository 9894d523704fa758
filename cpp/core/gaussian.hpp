// Fast path of the rounded Gaussian: 64 random bits -> nearest integer to sigma * z, with a
// mark where the proven error bound leaves two integers possible (docs/guarantees.md, "Noise").
// No branch and no memory access here depends on the noise.
#pragma once
#include "gaussian_coefficients.hpp"
#include "noise_simd.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {
namespace gaussian {

using simd::F;
using simd::I;

// |computed z - z| <= z_error + 1.26/m for tail probabilities (m + [0,1])/2^64, m >= m_min.
constexpr double z_error = 0x1p-45;
constexpr double m_min = 0x1p24;

// Bits of 2/m by integer subtraction: the mantissa of 1/m interpolated linearly from above, at
// most 1.125 times too large.
constexpr std::int64_t twice_reciprocal_bits = 0x7ff0000000000000;  // bits of 2 plus bits of 1

// As in clip.hpp: adding 1.5 * 2^52 rounds to the nearest integer for |v| < 2^51.
constexpr double magic = 0x1.8p52;
constexpr std::int64_t magic_bits = 0x4338000000000000;

template <std::size_t size>
inline F horner(const double (&c)[size], F x) {
  F y = simd::doubles(c[size - 1]);
  for (std::size_t i = size - 1; i-- > 0;) y = simd::multiply_add(y, x, simd::doubles(c[i]));
  return y;
}

#if defined(__AVX512F__) && defined(__AVX512DQ__)

inline F to_double(I m) { return simd::nonnegative_to_double(m); }

// 64 - log2 m: the mantissa times a tabulated reciprocal is 1 + r with |r| <= 2^-5; the tables
// sit in registers.
inline F bits_of_tail(F m) {
  namespace c = gaussian_coefficients;
  const F mantissa = _mm512_getmant_pd(m, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  const I index = _mm512_srli_epi64(simd::bits_of(m), 48);  // its low 4 bits count
  const F reciprocal = _mm512_permutex2var_pd(simd::load_doubles(c::reciprocal), index,
                                              simd::load_doubles(c::reciprocal + 8));
  const F log2_reciprocal = _mm512_permutex2var_pd(simd::load_doubles(c::log2_reciprocal), index,
                                                   simd::load_doubles(c::log2_reciprocal + 8));
  const F r = _mm512_fmsub_pd(mantissa, reciprocal, simd::doubles(1));
  const F whole = simd::subtract(log2_reciprocal, _mm512_getexp_pd(m));
  return _mm512_fnmadd_pd(r, horner(c::log_poly, r), simd::add(whole, simd::doubles(64)));
}

#else

// Both halves of m as mantissas under the exponents 2^84 and 2^52; one rounding, at the end.
inline F to_double(I m) {
  using namespace simd;
  const I high = exclusive_or(shift_right<32>(m), integers(0x4530000000000000));
  const I low = low_half_of(m, integers(0x4330000000000000));
  return add(subtract(from_bits(high), doubles(0x1.00000001p84)), from_bits(low));
}

// 64 - log2 m with m = 2^k * x, x in [sqrt(1/2), sqrt(2)), log2 x = f * P(f^2),
// f = (x - 1)/(x + 1).
inline F bits_of_tail(F m) {
  using namespace simd;
  namespace c = gaussian_coefficients;
  constexpr std::int64_t half_root = 0x3fe6a09e667f3bcd;  // bits of sqrt(1/2)
  const I shifted = subtract(bits_of(m), integers(half_root));
  const I exponent = both(shifted, integers(std::int64_t(0xfff0000000000000)));
  const F x = from_bits(subtract(bits_of(m), exponent));
  const I k_bits = inclusive_or(shift_right<52>(exponent), integers(0x4330000000000000));
  const F whole = subtract(doubles(0x1p52 + 64), from_bits(k_bits));  // 64 - k, 0 <= k <= 63
  const F f = divide(subtract(x, doubles(1)), add(x, doubles(1)));
  const F log2_x = multiply(f, horner(c::atanh_poly, multiply(f, f)));
  return subtract(whole, log2_x);
}

#endif

// Upper quantile of m/2^64: z = N(t)/D(t), all coefficients positive.
inline F quantile(F m) {
  namespace c = gaussian_coefficients;
  const F t = simd::subtract(simd::square_root(bits_of_tail(m)), simd::doubles(1));
  return simd::divide(horner(c::numerator, t), horner(c::denominator, t));
}

// `lanes` samples; returns the mask of ambiguous ones.
inline unsigned samples(I u, F sigma, std::int64_t* out) {
  using namespace simd;
  const F m = to_double(exclusive_or(u, sign_mask(u)));
  const F v = multiply(sign_unless(quantile(m), u), sigma);
  const F shifted = add(v, doubles(magic));
  store_integers(out, subtract(bits_of(shifted), integers(magic_bits)));
  const F off = absolute(subtract(v, subtract(shifted, doubles(magic))));
  const F two_over_m = from_bits(subtract(integers(twice_reciprocal_bits), bits_of(m)));
  const F reach = multiply_add(sigma, add(two_over_m, doubles(z_error)), off);
  return not_less_or_less(reach, doubles(0.5), m, doubles(m_min));
}

}  // namespace gaussian
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
