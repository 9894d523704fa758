// The rule of clip_kernels.cpp for columns: few of them side by side (short_columns.inl), more in slabs (columns.inl)
// or in blocks (column_blocks.inl). Rows that are left over, less than eight, go as rows.
#include "clip/column_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "simd/eight_rows.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {

using namespace simd;

#include "clip/scratch.inl"
#include "clip/holes.inl"
#include "clip/exceptional.inl"
#include "clip/cell_box.inl"
#include "clip/convert.inl"
#include "clip/column_runs.inl"
#include "clip/distances.inl"
#include "clip/numbers.inl"
#include "clip/eights.inl"
#include "clip/columns.inl"
#include "clip/column_blocks.inl"
#include "clip/short_columns.inl"

template <class T, Task task, Form form>
ClipCounts run_columns(const Batch& batch, const Region& region, const Arrangement& arrangement,
                       double* memory, std::size_t& rows, std::int64_t* partial) {
  Scratch scratch{memory};
  const std::size_t d = batch.d, slab = d * most_column_vectors * vec_lanes;
  double *sums = scratch.take(d * column_slots * vec_lanes), *y = scratch.take(slab);
  std::memset(sums, 0, d * column_slots * vec_lanes * sizeof *sums);
  double* copies = scratch.take(slab);
  const RowScratch alone{scratch.take(d), scratch.take(d), scratch.take(d), 1.0};
  Columns s{region, batch, sums, y, copies, alone, make_bins(region, scratch), {0, 0}, batch.first};
  s.valid = region.lower ? nullptr : batch.valid;
  s.radius = region.radius / units_of(region, sizeof(T)).scale;
  rows = 0;
  constexpr bool may_keep = sizeof(T) == 4 && task != Task::distances;
  if (d <= (arrangement.registers ? most_eights_of_columns : most_short_columns))
    add_short_columns<T, task, form>(s, rows);
  else if (arrangement.block) {
    const std::size_t size = may_keep && arrangement.keeps ? sizeof(T) : sizeof(double);
    const std::size_t most =
        rows_in_column_block(d, sizeof(T), size, arrangement.block, arrangement.run);
    double *lanes = scratch.take(norm_lanes * most), *factors = scratch.take(most);
    HoleCounts<most_block_rows> holes;
    const std::size_t ahead = arrangement.ahead / (most * sizeof(T));
    const Block block{lanes,
                      factors,
                      &holes,
                      scratch.take(d * most * size / sizeof(double)),
                      reinterpret_cast<std::uint64_t*>(scratch.take(d * words_of_bits(most))),
                      most,
                      std::min(std::max(ahead, columns_at_once), d - 1),
                      arrangement.fetch};
    if (may_keep && arrangement.keeps)
      add_blocks<T, task, form, may_keep ? Reading::kept : Reading::plain>(s, block, rows);
    else add_blocks<T, task, form>(s, block, rows);
  } else {
    if (arrangement.fetch == Fetch::beside) s.beside = arrangement.ahead / sizeof(double);
    add_slabs<T, 4, task, form>(s, rows, batch.n);
    add_slabs<T, 2, task>(s, rows, batch.n);
  }
  add_slabs<T, 1, task>(s, rows, batch.n);
  if (task == Task::distances) add_counts(s.bins, rows, partial);
  add_column_sums<task>(s, rows, partial, partial + sums_of(region));
  return s.counts;
}

}  // namespace

template <class T, Task task>
ClipCounts clip_columns(const Batch& batch, const Region& region, const Arrangement& arrangement,
                        double* scratch, std::size_t& rows, std::int64_t* partial) {
  ClipCounts counts{0, 0};
  with_form<T, task>(units_of(region, sizeof(T)).form, [&](auto form) {
    counts = run_columns<T, task, form>(batch, region, arrangement, scratch, rows, partial);
  });
  return counts;
}
template ColumnKernel clip_columns<float, Task::ball>;
template ColumnKernel clip_columns<float, Task::box>;
template ColumnKernel clip_columns<float, Task::halves>;
template ColumnKernel clip_columns<float, Task::distances>;
template ColumnKernel clip_columns<double, Task::ball>;
template ColumnKernel clip_columns<double, Task::box>;
template ColumnKernel clip_columns<double, Task::halves>;
template ColumnKernel clip_columns<double, Task::distances>;

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
