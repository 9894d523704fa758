// The whole of one call that clips rows and adds them to the sums of their groups.
#pragma once
#include <cstdint>

#include "batch.hpp"
#include "dispatch.hpp"

namespace ellipsum {

// Adds each row to the d sums of its group in `table` (groups x d), and 1 to its number of rows;
// a row of index -1 is in no group. Coordinates are contiguous; at most clip_rows_limit rows,
// to sums of zero or of rows that are that many in all.
ClipCounts group_sums(const Kernels& kernels, const Batch& batch, const Region& region,
                      const std::int64_t* index, std::size_t groups, std::int64_t* table,
                      std::int64_t* rows);

}  // namespace ellipsum
