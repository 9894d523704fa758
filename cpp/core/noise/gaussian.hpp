// Fast path of the rounded Gaussian: 64 random bits -> nearest integer to sigma * z, with a
// mark where the proven error bound leaves two integers possible (claims noise-2, noise-3).
// No branch and no memory access here depends on the noise.
#pragma once
#include "noise/gaussian_coefficients.hpp"
#include "simd/registers.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {
namespace gaussian {

using simd::Doubles;
using simd::Ints;

// |computed z - z| <= 3/4 z_error + 1.3/m for tail probabilities in (m + [0,1])/2^64, m >= 1;
// the last quarter covers the rounding of the comparison itself.
constexpr double z_error = 0x1p-46;

// Bits of 2/m by integer subtraction: the mantissa of 1/m interpolated linearly from above, at
// most 1.125 times too large.
constexpr std::int64_t twice_reciprocal_bits = 0x7ff0000000000000;  // bits of 2 plus bits of 1

// Vectors in lockstep: enough independent chains to fill the arithmetic units.
constexpr std::size_t width = simd::group;
constexpr std::size_t samples_at_once = width * simd::lanes;
static_assert(samples_at_once <= 32, "a mask has a bit for each");

template <std::size_t size>
inline void horner(const double (&c)[size], const Doubles* x, Doubles* y) {
  for (std::size_t g = 0; g < width; ++g) y[g] = simd::broadcast(c[size - 1]);
  for (std::size_t i = size - 1; i-- > 0;)
    for (std::size_t g = 0; g < width; ++g)
      y[g] = simd::multiply_add(y[g], x[g], simd::broadcast(c[i]));
}

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "noise/gaussian_avx512.inl"
#else
#include "noise/gaussian_plain.inl"
#endif

// The first half: t of `samples_at_once` words. The square roots come last, so that the divider
// works on them through the second half of the group before.
struct Group {
  Doubles m[width];  // m rounded to a double; the tail probability lies in (m + [0, 1])/2^64
  Doubles root[width];
};

inline void start(const std::uint64_t* words, Group& group) {
  for (std::size_t g = 0; g < width; ++g) {
    const Ints u = simd::load_integers(words + g * simd::lanes);
    group.m[g] = to_double(simd::exclusive_or(u, simd::sign_mask(u)));
  }
  Doubles bits[width];
  tail_bits(group.m, bits);
  for (std::size_t g = 0; g < width; ++g) group.root[g] = simd::square_root(bits[g]);
}

// The second half: z = N(t)/D(t), all coefficients positive, and the rounding of sigma * z.
// Returns the mask of ambiguous samples.
template <class Sigma>
inline unsigned finish(const Group& group, const std::uint64_t* words, Sigma sigma,
                       std::int64_t* out) {
  using namespace simd;
  namespace c = gaussian_coefficients;
  Doubles t[width], numerator[width], denominator[width];
  for (std::size_t g = 0; g < width; ++g) t[g] = subtract(group.root[g], broadcast(1));
  horner(c::denominator, t, denominator);
  horner(c::numerator, t, numerator);
  unsigned mask = 0;
  for (std::size_t g = 0; g < width; ++g) {
    const Doubles s = sigma(g * lanes), z = quotient(numerator[g], denominator[g]);
    const Doubles v = multiply(sign_unless(z, load_integers(words + g * lanes)), s);
    const Doubles off = magnitude(subtract(v, store_nearest(v, out + g * lanes)));
    const Doubles two_over_m =
        from_bits(subtract(integers(twice_reciprocal_bits), bits_of(group.m[g])));
    const Doubles limit = subtract(broadcast(0.5), multiply(s, broadcast(z_error)));
    mask |= not_less(multiply_add(s, two_over_m, off), limit) << (g * lanes);
  }
  return mask;
}

}  // namespace gaussian
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
