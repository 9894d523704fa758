// Slow path of the rounded Gaussian: 128 random bits, fixed point of 2^-125, proven bound.
#pragma once
#include <cstdint>

namespace ellipsum {

// Sets `sample` to the nearest integer to sigma * z(U), U = 0.(high)(low)..., where these 128
// bits decide it, and returns whether they do. Time depends on the bits.
bool resolve_gaussian(std::uint64_t high, std::uint64_t low, double sigma, std::int64_t& sample);

}  // namespace ellipsum
