// The clip rule in scalar form: what every vectorised kernel must reproduce bit for bit.
// Everything here has internal linkage: the file is compiled once per target, and an inline
// function shared by the linker could carry AVX code into the baseline.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ellipsum {
namespace {

// The squared norm is summed in 8 lanes (coordinate j into lane j mod 8, in the order of j).
constexpr std::size_t norm_lanes = 8;

// Squared norms from here on (overflow and NaN included) go to clip_huge_row: 2^1000.
constexpr double exceptional_norm2 = 0x1p1000;

// Adding 1.5 * 2^52 rounds to the nearest integer, ties to even, for |y| < 2^51; |y| <= C/g
// <= 2^31 here (clip_norm_bits in ellipsoid.py).
constexpr double rounding_magic = 0x1.8p52;

[[maybe_unused]] inline double sum_lanes(const double* l) {
  return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

[[maybe_unused]] inline std::int64_t quantise(double y) {
  const double shifted = y + rounding_magic;
  std::int64_t bits, magic;
  std::memcpy(&bits, &shifted, 8);
  std::memcpy(&magic, &rounding_magic, 8);
  return bits - magic;
}

// Veltkamp's splitting: the nearest number of 29 significant bits (53 - 24).
[[maybe_unused]] inline double round_to_29_bits(double h) {
  const double shifted = h * 0x1.000001p24;
  return shifted - (shifted - h);
}

}  // namespace
}  // namespace ellipsum
