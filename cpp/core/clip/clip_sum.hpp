// The whole of one clip-and-sum call: scratch, threads, and the target's kernel.
#pragma once
#include <cstdint>

#include "batch.hpp"
#include "clip/table.hpp"
#include "dispatch.hpp"

namespace ellipsum {

// Rows that one call may add to a partial sum of zero: |q| <= 2^30, so that 2^31 of them, and
// sum |q| + sum q of the halves, fit int64.
constexpr std::int64_t clip_rows_limit = std::int64_t{1} << 31;

// Adds what region.task makes of the rows to partial (d entries; 2 d of halves: d of positive
// numbers, d of negative ones; for distances one a bin), and the rows that have a hole in a
// coordinate to absent (d entries; may be null). `threads` >= 1 share the rows, each with sums of
// its own: the result is the same for any number of them, and for any variant.
ClipCounts clip_sum(const Choice& choice, const Batch& batch, const Region& region,
                    std::int64_t* partial, int threads, std::int64_t* absent = nullptr);
// The same of the rows of a table.
ClipCounts clip_sum(const Choice& choice, const Table& table, const Region& region,
                    std::int64_t* partial, int threads, std::int64_t* absent = nullptr);

// One thread's rows, by a variant; those of stretches of which many have holes by the widest kernels,
// whatever was fastest without: their walk over such rows takes half the time (AVX-512 beside AVX2,
// bench/README.md). The region as passed; scratch and partial as of Kernels::clip_sum.
ClipCounts clip_rows(const Variant& variant, const Kernels& widest, const Batch& rows,
                     const Region& region, double* scratch, std::int64_t* partial);

// What all coordinates of a region share.
inline Form form_of(const Region& region) {
  if (region.matrix || region.rank) return Form::ellipsoid;
  bool at_zero = true;
  for (std::size_t j = 0; j < region.d; ++j) {
    if (region.scale[j] != region.scale[0] ||
        (region.task == Task::box && region.limit[j] != region.limit[0]))
      return Form::ellipsoid;
    at_zero &= region.center[j] == 0;
  }
  return at_zero ? Form::ball_at_zero : Form::ball;
}

// The region as kernels take it: its form is known, and on the line, where ball and box are one set,
// it is clamped, which is the simpler rule. It points into `given`.
inline Region as_passed(const Region& given, std::size_t d) {
  Region region = given;
  if (d == 1 && !region.matrix && !region.rank && region.task == Task::ball) {
    region.task = Task::box;
    region.limit = &given.radius;
  }
  region.form = form_of(region);
  return region;
}

}  // namespace ellipsum
