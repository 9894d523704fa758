// States of 128-bit totals: merging is addition modulo 2^128, so it neither depends on order nor
// on the tree; partial sums of 64 bits enter with their sign.
#include <vector>

#include "clip/exact_sum.hpp"
#include "input.hpp"

namespace {

__extension__ typedef unsigned __int128 Wide;

struct State {
  std::vector<std::uint64_t> low;
  std::vector<std::int64_t> high;

  State(Input& in, std::size_t d) {
    for (std::size_t j = 0; j < d; ++j) {
      const bool partial = in.between(0, 1);
      low.push_back(in.take<std::uint64_t>());
      high.push_back(partial ? std::int64_t(low[j]) >> 63 : in.take<std::int64_t>());
    }
  }
  State merged(const State& other) const {
    State sum = *this;
    ellipsum::merge(low.size(), sum.low.data(), sum.high.data(), other.low.data(),
                    other.high.data());
    return sum;
  }
  Wide value(std::size_t j) const { return Wide(std::uint64_t(high[j])) << 64 | low[j]; }
  bool operator==(const State& o) const { return low == o.low && high == o.high; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const std::size_t d = in.between(1, 9);
  const State a(in, d), b(in, d), c(in, d);
  const State sum = a.merged(b);
  require(sum == b.merged(a), "merging commutes");
  require(sum.merged(c) == a.merged(b.merged(c)), "merging is associative");
  for (std::size_t j = 0; j < d; ++j)
    require(sum.value(j) == a.value(j) + b.value(j), "a merge is a sum");
  return 0;
}
