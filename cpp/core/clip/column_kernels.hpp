// Columns have a source of their own, which is compiled beside that of rows. Once per target.
#pragma once
#include "clip/clip.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {

using ColumnKernel = ClipCounts(const Batch& batch, const Region& region,
                                const Arrangement& arrangement, double* scratch, std::size_t& rows,
                                std::int64_t* partial);

// Adds the whole vectors of a batch in columns, from its first row on: `rows` of them.
template <class T, Task task> ColumnKernel clip_columns;

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
