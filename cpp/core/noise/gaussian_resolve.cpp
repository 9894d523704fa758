// z solves Q(z) = p. With x = j/8 near z, h = z - x and S(h) = int_0^h exp(-x s - s^2/2) ds:
//   Q(x + h) = Q(x) - phi(x) S(h),  so  S(h) = Q(x)/phi(x) - p/phi(x) =: y.
// One corrected Newton step from h0 (|h - h0| <= 2^-42, checked) leaves |error| < 2^-117:
// docs/guarantees/noise.md counts the units (claim noise-4).
#include "noise/gaussian_resolve.hpp"

#include <cmath>

#define ELLIPSUM_GAUSSIAN_NODES
#include "noise/gaussian_coefficients.hpp"

namespace ellipsum {
namespace {

namespace c = gaussian_coefficients;

using Signed = __int128;
using Unsigned = unsigned __int128;

constexpr int fraction = 125;       // fixed point of h, y, S
constexpr int z_fraction = 120;     // fixed point of z < 16
constexpr int start_fraction = 58;  // h0 is a multiple of 2^-58
constexpr Signed one = Signed(1) << fraction;
constexpr Signed small_step = one >> 42;
constexpr Unsigned newton_error = 10;  // 2^-117 and one truncation, in units of 2^-120
constexpr int node_count = sizeof(c::nodes) / sizeof(c::nodes[0]);

// a 2^by; << is not defined for negative numbers in C++17.
constexpr Signed shifted(Signed a, int by) { return a * (Signed(1) << by); }

struct Wide {
  Unsigned high, low;
};

Wide multiply(Unsigned a, Unsigned b) {
  const Unsigned mask = ~std::uint64_t(0);
  const Unsigned a0 = a & mask, a1 = a >> 64, b0 = b & mask, b1 = b >> 64;
  const Unsigned p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
  const Unsigned middle = (p00 >> 64) + (p01 & mask) + (p10 & mask);
  return {a1 * b1 + (p01 >> 64) + (p10 >> 64) + (middle >> 64), middle << 64 | (p00 & mask)};
}

// floor(a / 2^by), 0 < by < 256; the caller knows that it fits.
Unsigned shift_right(Wide a, int by) {
  if (by >= 128) return a.high >> (by - 128);
  return a.high << (128 - by) | a.low >> by;
}

Unsigned magnitude(Signed a) { return a < 0 ? -Unsigned(a) : Unsigned(a); }

// a * b / 2^by, truncated towards zero.
Signed product(Signed a, Signed b, int by = fraction) {
  const Signed p = Signed(shift_right(multiply(magnitude(a), magnitude(b)), by));
  return (a < 0) != (b < 0) ? -p : p;
}

constexpr int most_terms = 40;  // |x h| <= 0.61: the 34th term is below 2^-127
struct Reciprocals {
  Signed of[most_terms + 2];  // 1/n in units of 2^-126
  constexpr Reciprocals() : of{} {
    for (int n = 1; n < most_terms + 2; ++n) of[n] = (Signed(1) << 126) / n;
  }
};
constexpr Reciprocals reciprocal;

struct Series {
  Signed value, slope;  // S(h), S'(h)
};

// exp(-x s - s^2/2) = sum b_n s^n with b_{n+1} = -(x b_n + b_{n-1})/(n + 1); u = b_n h^n.
Series integral(int j, Signed h) {
  const Signed xh = h / 8 * j, hh = product(h, h);
  Signed before = 0, u = one, slope = one, mean = one;
  for (int n = 0; n < most_terms && (magnitude(u) > 1 || magnitude(before) > 1); ++n) {
    const Signed next = -product(product(xh, u) + product(hh, before), reciprocal.of[n + 1], 126);
    before = u, u = next;
    slope += u;
    mean += product(u, reciprocal.of[n + 2], 126);
  }
  return {product(h, mean), slope};
}

// y for p = tail / 2^128.
Signed target(const c::GaussianNode& node, Unsigned tail) {
  const Unsigned over_phi = Unsigned(node.fraction_high) << 64 | node.fraction_low;
  const Signed mills = Signed(Unsigned(node.mills_high) << 64 | node.mills_low);
  return mills - Signed(shift_right(multiply(tail, over_phi), 130 - node.exponent));
}

// residual / slope, |residual| <= slope / 4: a double reciprocal, then its remainder.
Signed quotient(Signed residual, Signed slope) {
  const Signed inverse =
      shifted(Signed(std::ldexp(1.0 / std::ldexp(double(slope), -fraction), 60)), 65);
  const Signed first = product(residual, inverse);
  const Signed second = product(residual - product(first, slope), inverse);
  const Signed rest = residual - product(first + second, slope);
  return first + second + product(rest, inverse);
}

double first_guess(Unsigned tail) {
  const double t = std::sqrt(128 - std::log2(double(tail))) - 1;
  double numerator = 0, denominator = 0;
  for (int i = sizeof(c::numerator) / sizeof(double); i-- > 0;)
    numerator = numerator * t + c::numerator[i];
  for (int i = sizeof(c::denominator) / sizeof(double); i-- > 0;)
    denominator = denominator * t + c::denominator[i];
  return numerator / denominator;
}

// z in units of 2^-120 within newton_error, for tail >= 2^64; false if Newton's method strays.
bool upper_quantile(Unsigned tail, Unsigned& z) {
  double guess = first_guess(tail);
  for (int step = 0; step < 8; ++step) {
    const int j = int(std::lrint(guess * 8));
    if (j < 0 || j >= node_count) return false;
    const Signed start = Signed(std::llrint(std::ldexp(guess, start_fraction)));
    const Signed h =
        shifted(start - (Signed(j) << (start_fraction - 3)), fraction - start_fraction);
    const Series s = integral(j, h);
    const Signed residual = target(c::nodes[j], tail) - s.value;
    if (magnitude(residual) > magnitude(s.slope) / 4) return false;
    const Signed q = quotient(residual, s.slope);
    if (magnitude(q) <= Unsigned(small_step)) {
      // S'' = -z S', so that S'(h0) d - z S' d^2/2 = residual has d = q + z q^2/2 + O(z^2 q^3).
      const Signed z0 = shifted(start, 121 - start_fraction);  // units of 2^-121
      const Signed curved = product(product(q, q), z0, 122);
      const Signed sum = shifted(start, z_fraction - start_fraction) + ((q + curved) >> 5);
      z = sum < 0 ? 0 : Unsigned(sum);
      return true;
    }
    guess = std::fmax(0, guess + std::ldexp(double(q), -fraction));
  }
  return false;
}

// Nearest integer to z * mantissa * 2^-shift.
std::int64_t nearest(Unsigned z, std::uint64_t mantissa, int shift) {
  if (shift > 177) return 0;  // z * mantissa < 2^177
  const Wide v = multiply(z, mantissa);
  const Unsigned doubled = shift_right(v, shift - 1);
  return std::int64_t((doubled + 1) >> 1);
}

int top_bit(Unsigned a) {
  const std::uint64_t high = std::uint64_t(a >> 64);
  return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(std::uint64_t(a));
}

}  // namespace

bool resolve_gaussian(std::uint64_t high, std::uint64_t low, double sigma, std::int64_t& sample) {
  const bool positive = high >> 63;
  const Unsigned u = Unsigned(high) << 64 | low;
  const Unsigned tail = positive ? ~u : u;  // p lies in (tail + [0, 1]) / 2^128
  if (!(tail >> 64)) return false;
  Unsigned z;
  if (!upper_quantile(tail, z)) return false;
  // dz = dp/phi(z) <= 1.26 dp/p, and 1.26/tail <= 2 * 2^-top_bit.
  const int top = top_bit(tail);
  const Unsigned error = newton_error + (top < 121 ? Unsigned(1) << (121 - top) : 1);
  int exponent;
  const auto mantissa = std::uint64_t(std::ldexp(std::frexp(sigma, &exponent), 53));
  const int shift = z_fraction + 53 - exponent;
  const std::int64_t upper = nearest(z + error, mantissa, shift);
  const std::int64_t lower =
      z >= error ? nearest(z - error, mantissa, shift) : -nearest(error - z, mantissa, shift);
  sample = positive ? upper : -upper;
  return upper == lower;
}

}  // namespace ellipsum
