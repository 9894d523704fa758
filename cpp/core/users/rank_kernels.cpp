// Hashes of rows, compiled once per target: of each number's bits and its column's (splitmix64), added up.
// Cost per 8 numbers: 3 vector operations and a hash of 9, two of them products of 64 bits, and 2 loads.
#include <cmath>
#include <cstring>

#include "batch.hpp"
#include "simd/eight.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {

using namespace simd;

// lookup::mixed of each lane.
template <class W> ELLIPSUM_INLINE W mixed(W z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Of eight numbers with the words of their columns.
static ELLIPSUM_INLINE VecInt hashes_of(const Vec& x, const VecInt& places) {
  VecInt r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    const Doubles number = x.part[p] + Doubles{};  // -0 is 0
    const Mask is_nan = Mask(number != number);    // NOLINT(misc-redundant-expression)
    const Doubles bits = select(is_nan, broadcast(std::nan("")), number);
    r.part[p] = Mask(mixed(Words64(bits) ^ Words64(places.part[p])));
  }
  return r;
}

template <class T>
static std::uint64_t rank_of(const char* row, std::size_t d, const std::uint64_t* places,
                             std::uint64_t seed) {
  const auto* columns = reinterpret_cast<const std::int64_t*>(places);
  Words64 sums[vec_parts] = {};  // they wrap around
  std::size_t j = 0;
  for (; j + vec_lanes <= d; j += vec_lanes) {
    const VecInt hashes = hashes_of(load<T>(row + j * sizeof(T)), load_ints(columns + j));
    ELLIPSUM_UNROLL
    for (int p = 0; p < vec_parts; ++p) sums[p] += Words64(hashes.part[p]);
  }
  std::uint64_t lanes[vec_lanes];
  std::int64_t last[vec_lanes] = {}, own[vec_lanes] = {};
  if (j < d) {
    std::memcpy(last, columns + j, (d - j) * sizeof *last);
    store(own, hashes_of(load_first<T>(row + j * sizeof(T), d - j), load_ints(last)));
  }
  std::memcpy(lanes, sums, sizeof lanes);
  std::uint64_t sum = 0;
  for (std::size_t l = 0; l < vec_lanes; ++l)
    sum += lanes[l] + (j + l < d ? std::uint64_t(own[l]) : 0);
  return mixed(seed ^ sum);
}

template <class T>
static void ranks_of(const Batch& rows, const std::int64_t* which, std::size_t n,
                     const std::uint64_t* places, std::uint64_t* ranks) {
  const char* data = static_cast<const char*>(rows.data);
  for (std::size_t k = 0; k < n; ++k)
    ranks[k] =
        rank_of<T>(data + std::ptrdiff_t(which[k]) * rows.row_stride, rows.d, places, ranks[k]);
}

}  // namespace

void row_ranks(const Batch& rows, const std::int64_t* which, std::size_t n,
               const std::uint64_t* places, std::uint64_t* ranks) {
  const UpperHalvesCleared at_the_end;
  if (rows.dtype == Dtype::float32) ranks_of<float>(rows, which, n, places, ranks);
  else ranks_of<double>(rows, which, n, places, ranks);
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
