// Elementary functions of a register of doubles. Each says for which x and to how many units in
// the last place (ulp) of the exact value; tests/cpp/test_simd.cpp holds every target to that,
// against tables of tests/reference/simd_math.py. Polynomials are Taylor series, long enough for
// their range: the coefficients are fractions that a reader knows.
//
// Sources of the reductions: Cody & Waite 1980 (ln 2 and pi/2 in parts).
#pragma once
#include <cmath>

#include "constants.hpp"
#include "simd/registers.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {
namespace simd {

constexpr double ln2_high = 6.93147180369123816490e-01;  // 33 bits
constexpr double ln2_low = 1.90821492927058770002e-10;

// 2 atanh(s) = log((1+s)/(1-s)), |s| <= 0.172, where the series' remainder is below 2^-54.
inline Doubles two_atanh(const Doubles& s) {
  const Doubles q = s * s;
  Doubles p = q * (2.0 / 21) + 2.0 / 19;
  p = p * q + 2.0 / 17;
  p = p * q + 2.0 / 15;
  p = p * q + 2.0 / 13;
  p = p * q + 2.0 / 11;
  p = p * q + 2.0 / 9;
  p = p * q + 2.0 / 7;
  p = p * q + 2.0 / 5;
  p = p * q + 2.0 / 3;
  return s * (p * q) + 2 * s;
}

// log(1 + m) for m > -1 with 1 + m a normal number, also near 0. Max error: 1.5 ulp.
inline Doubles log_one_plus(const Doubles& m) {
  constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u;
  // Mantissa into [sqrt(1/2), sqrt 2): add the distance from sqrt(1/2), read the exponent.
  const Words64 shifted = (Words64)(1 + m) + (one - root_half);
  const Doubles f = (Doubles)((shifted & 0x000fffffffffffffu) + root_half);
  const Doubles biased = (Doubles)((shifted >> 52) | 0x4330000000000000u);  // 2^52 + exponent
  const Doubles e = biased - (4503599627370496.0 + 1023);
  const Doubles g = select(e == 0, m, f - 1);
  return two_atanh(g / (2 + g)) + e * ln2_low + e * ln2_high;
}

// arg(x + iy) of normal numbers whose quotient is one, y/x reduced to |tan| <= 0.199 around 0,
// pi/8 and pi/4. Max error: 2.5 ulp.
inline Doubles argument(const Doubles& x, const Doubles& y) {
  constexpr double tan_16 = 0.198912367379658006912, tan_8 = 0.414213562373095048802,
                   tan_3_16 = 0.668178637919298919998;
  const Doubles zero = {}, ax = magnitude(x), ay = magnitude(y);
  const Mask steep = ay > ax;
  const Doubles high = select(steep, ay, ax), low = select(steep, ax, ay);
  const Mask quarter = low > tan_3_16 * high, eighth = low > tan_16 * high;
  const Doubles tau = select(quarter, zero + 1, select(eighth, zero + tan_8, zero));
  const Doubles base =
      select(quarter, zero + half_pi / 2, select(eighth, zero + half_pi / 4, zero));
  const Doubles s = (low - tau * high) / (high + tau * low);
  const Doubles q = s * s;
  Doubles p = 1.0 / 19 - q * (1.0 / 21);
  p = 1.0 / 17 - p * q;
  p = 1.0 / 15 - p * q;
  p = 1.0 / 13 - p * q;
  p = 1.0 / 11 - p * q;
  p = 1.0 / 9 - p * q;
  p = 1.0 / 7 - p * q;
  p = 1.0 / 5 - p * q;
  p = 1.0 / 3 - p * q;
  Doubles angle = base + (s - s * (q * p));
  angle = select(steep, half_pi - angle, angle);
  angle = select(x < 0, pi - angle, angle);
  return select(y < 0, -angle, angle);
}

inline Doubles nearest(const Doubles& x, Mask& whole) {
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: the sum's last bits are the integer
  const Doubles shifted = x + magic;
  whole = (Mask)shifted;
  return shifted - magic;
}

// exp(x) for |x| <= 700; 0 below, exp(700) above. Max error: 1 ulp.
inline Doubles exponential(const Doubles& x) {
  const Doubles bounded = select(x < 700, select(x > -700, x, Doubles{} - 700), Doubles{} + 700);
  Mask n;
  const Doubles k = nearest(bounded * 1.44269504088896340736, n);
  const Doubles r = (bounded - k * ln2_high) - k * ln2_low;
  Doubles p = r * (1.0 / 6227020800) + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r * r + r + 1;
  const Doubles scaled = (Doubles)((Mask)p + (n << 52));
  return select(x > -700, scaled, Doubles{});
}

// Both of x, |x| < 6e6 (2^20 rotations, less some): three parts of pi/2, then Taylor series. Max
// error: 2 ulp.
inline void sine_cosine(const Doubles& x, Doubles& sine, Doubles& cosine) {
  Mask n;
  const Doubles k = nearest(x * 0.63661977236758134308, n);
  const Doubles y = ((x - k * 1.57079632673412561417) - k * 6.07710050630396597660e-11) -
                    k * 2.02226624879595063154e-21;
  const Doubles q = y * y;
  Doubles s = q * (1.0 / 355687428096000) - 1.0 / 1307674368000;
  s = s * q + 1.0 / 6227020800;
  s = s * q - 1.0 / 39916800;
  s = s * q + 1.0 / 362880;
  s = s * q - 1.0 / 5040;
  s = s * q + 1.0 / 120;
  s = s * q - 1.0 / 6;
  s = s * q * y + y;
  Doubles c = q * (1.0 / 20922789888000) - 1.0 / 87178291200;
  c = c * q + 1.0 / 479001600;
  c = c * q - 1.0 / 3628800;
  c = c * q + 1.0 / 40320;
  c = c * q - 1.0 / 720;
  c = c * q + 1.0 / 24;
  c = c * q * q - 0.5 * q + 1;
  const Mask odd = (n & 1) != 0, flip_sine = (n & 2) != 0, flip_cosine = ((n + 1) & 2) != 0;
  sine = select(odd, c, s);
  cosine = select(odd, s, c);
  sine = select(flip_sine, -sine, sine);
  cosine = select(flip_cosine, -cosine, cosine);
}

// sqrt(x^2 + y^2), not both 0, that overflows no square. Max error: 2 ulp.
inline Doubles length(const Doubles& x, const Doubles& y) {
  const Doubles ax = magnitude(x), ay = magnitude(y), top = select(ax > ay, ax, ay);
  const Doubles a = x / top, b = y / top, squares = a * a + b * b;
  Doubles root;
  for (size_t i = 0; i < lanes; ++i) root[i] = std::sqrt(squares[i]);
  return top * root;
}

}  // namespace simd
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
