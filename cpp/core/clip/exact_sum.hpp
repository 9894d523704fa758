// 128-bit totals, as two words a coordinate: what partial sums are merged into.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ellipsum {

// (low, high) += (other_low, other_high), two's complement. Exact as long as the totals stay
// below 2^127: 2^96 rows of at most 2^31 grid units.
inline void merge(std::size_t d, std::uint64_t* low, std::int64_t* high,
                  const std::uint64_t* other_low, const std::int64_t* other_high) {
  for (std::size_t j = 0; j < d; ++j) {
    const std::uint64_t sum = low[j] + other_low[j];
    const std::uint64_t carry = sum < low[j];
    low[j] = sum;
    high[j] = std::int64_t(std::uint64_t(high[j]) + std::uint64_t(other_high[j]) + carry);
  }
}

}  // namespace ellipsum
