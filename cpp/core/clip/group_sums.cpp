#include "clip/group_sums.hpp"

#include <vector>

#include "clip/clip.hpp"
#include "clip/clip_sum.hpp"
#include "error.hpp"

namespace ellipsum {
using namespace compiled_once;

ClipCounts group_sums(const Kernels& kernels, const Batch& batch, const Region& given,
                      const std::int64_t* index, std::size_t groups, std::int64_t* table,
                      std::int64_t* rows) {
  if (batch.n > std::size_t(clip_rows_limit))
    throw Exception(Error::invalid_argument, "internal: more rows than a partial sum can hold");
  for (std::size_t i = 0; i < batch.n; ++i)
    if (index[i] < -1 || index[i] >= std::int64_t(groups))
      throw Exception(Error::invalid_argument, "internal: index");
  Region region = as_passed(given, batch.d);
  std::vector<double> packed(packed_doubles(region));
  if (is_mixed(region)) {
    kernels.pack_matrix(region, packed.data());
    region.packed = packed.data();
  }
  constexpr std::size_t line = 8;  // doubles of a cache line, which the scratch begins with
  std::vector<double> scratch(clip_plan(batch, region).doubles + line);
  double* aligned = scratch.data();
  while (reinterpret_cast<std::uintptr_t>(aligned) % (line * sizeof(double))) ++aligned;
  std::vector<std::int64_t> nowhere(batch.d), absent(round_up(batch.d, norm_lanes));
  const GroupSums to{index, table, rows, nowhere.data(), absent.data()};
  return kernels.group_sums(batch, region, to, aligned);
}

}  // namespace ellipsum
