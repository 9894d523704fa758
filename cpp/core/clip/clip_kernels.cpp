// centre -> scale -> clip -> quantise -> accumulate, compiled once per target.
//
// The integers of a row are a function of that row and the region alone (the rule: clip.hpp):
// a float32 row gives the integers of the same values in float64, on every target, in any
// place of a batch. Here: short rows go side by side (short_rows.inl, rows.inl), longer ones stream
// (stream.inl), those with a matrix by way of a block of scratch; what cannot be read where it lies is made
// first (made_rows.inl). Columns: column_kernels.cpp.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "clip/clip.hpp"
#include "clip/column_kernels.hpp"
#include "dispatch.hpp"
#include "simd/eight_rows.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {

using namespace simd;

// The norms of eight rows fit the registers of AVX-512 alone. On AVX2 they are added to in memory,
// and a group of eight still wins for short rows: one square root and one division for all of them.
constexpr int most_in_flight = register_lanes >= 4 ? 8 : 4;
constexpr int most_in_groups = register_lanes == 8 ? 8 : 4;

#include "clip/scratch.inl"
#include "clip/holes.inl"
#include "clip/exceptional.inl"
#include "clip/cell_box.inl"
#include "clip/convert.inl"
#include "clip/column_runs.inl"
#include "clip/distances.inl"
#include "clip/numbers.inl"
#include "clip/made_rows.inl"
#include "clip/eights.inl"
#include "clip/ahead.inl"
#include "clip/short_rows.inl"
#include "clip/matrix.inl"
#include "clip/stream.inl"
#include "clip/holed_rows.inl"
#include "clip/box_rows.inl"
#include "clip/rows.inl"
#include "clip/groups.inl"

// Zeros of a row that was added at once must have finite y (Stream::keeps).
bool has_finite_zeros(const Region& region) {
  for (std::size_t j = 0; j < region.d; ++j)
    if (!std::isfinite(region.center[j] * region.scale[j])) return false;
  return true;
}

// `size`: bytes of a number of the batch; so many rows wait in each record.
Stream make_stream(const Region& region, const Arrangement& arrangement, std::size_t size,
                   std::int64_t* absent, Scratch& scratch, const Units& units,
                   std::size_t waiting) {
  const std::size_t d = region.d, chunks = round_up(d, vec_lanes) / vec_lanes;
  Stream s{};
  s.d = d, s.form = units.form, s.absent = absent;
  const bool boxed = s.boxed = region.lower;
  s.keeps = arrangement.keeps && size == 4 && !is_mixed(region) && clips(region) &&
            has_finite_zeros(region);
  s.center = scratch.padded(is_mixed(region) ? nullptr : region.center, 0.0, d);
  const bool scaled = units.scale == 1 && !is_mixed(region);
  s.scale = scratch.padded(scaled ? region.scale : nullptr, 1.0, d);
  s.stride = y_slot(region.task) - (s.form == Form::ellipsoid ? 0 : sum_slot) +
             waiting * vec_lanes * (s.keeps ? size : sizeof(double)) / sizeof(double) +
             (boxed ? ends_slots : 0);
  s.radius = region.radius / units.scale, s.numerator = region.radius;
  s.limit = region.task == Task::box ? region.limit[0] : 0;
  s.alone = {scratch.take(d), scratch.take(d), scratch.take(d), 1.0};
  const auto records = [&] {
    double* of = scratch.take(chunks * s.stride + sum_slot);
    const std::size_t first = s.form == Form::ellipsoid ? 0 : sum_slot;  // the walks begin with y
    for (std::size_t c = 0; c < chunks; ++c)
      std::fill_n(of + c * s.stride + first, y_slot(region.task) - first, 0.0);
    for (std::size_t j = 0; j < d; ++j) {
      double* record = of + j / vec_lanes * s.stride + j % vec_lanes;
      if (s.form == Form::ellipsoid)
        record[center_slot] = s.center[j], record[scale_slot] = s.scale[j];
      if (region.task == Task::box) record[limit_slot] = region.limit[j];
    }
    for (std::size_t j = 0; boxed && j < chunks * vec_lanes; ++j) {
      double* end = of + (j / vec_lanes + 1) * s.stride - ends_slots + j % vec_lanes;
      end[0] = j < d ? region.lower[j] : 0, end[vec_lanes] = j < d ? region.upper[j] : 0;
    }
    return of;
  };
  s.records = records();
  const std::size_t twice = 2 * chunks * s.stride * sizeof(double);
  if (size == sizeof(float) && clips(region) && !is_mixed(region) && arrangement.rows >= 4 &&
      d <= most_late && twice <= late_bytes && arrangement.fetch != Fetch::hardware)
    s.late = records();
  if (!is_mixed(region) && region.task != Task::distances && !boxed)  // whose records are longer
    s.spare = scratch.take(chunks * (y_slot(region.task) + holed_in_flight * vec_lanes));
  s.bins = make_bins(region, scratch);
  return s;
}

struct MatrixScratch {
  const double* center;
  double *h, *y, *t;
  double* stretch;  // of each row of a block, and seven more
};

MatrixScratch make_matrix_scratch(const Region& region, const ClipPlan& plan, Scratch& scratch) {
  const std::size_t chunks = round_up(region.d, depth) / depth;
  return {scratch.padded(region.center, 0.0, region.d),
          scratch.take(chunks * plan.block * h_stride), scratch.take(plan.block * plan.stride),
          scratch.take(plan.block * inputs_stride(region.rank)),
          region.stretch ? scratch.take(plan.block + vec_lanes) : nullptr};
}

// As many of those in flight as fit 36 KB of the first level of cache with all that each number of theirs has: itself,
// what it is made of and its y, a record, its ends in a box. (A Zen 5, 500 int64: two in flight 0.27 ns, four 0.46.)
std::size_t rows_made_in_flight(const Region& region, std::size_t rows) {
  constexpr std::size_t most = (36 << 10) / sizeof(double);
  const std::size_t fixed = region.lower ? 6 : 3;
  while (rows > 1 && region.d <= made_numbers && (3 * rows + fixed) * region.d > most) rows /= 2;
  return rows;
}

// Those of a batch from row `first` on, none of which are made yet.
template <class T>
MadeRows make_none(const Batch& batch, const Region& region, const ClipPlan& plan,
                   std::size_t in_flight, std::size_t first, Scratch& scratch) {
  if (plan.in_place) return {batch, region, nullptr, 0, 0, first, first, 0};
  const std::size_t most = std::max(plan.made, most_rows_in_flight), bytes = batch.d * sizeof(T);
  double* to = scratch.take(most * batch.d + norm_lanes);
  const bool asked = !is_mixed(region) && are_asked_evenly(batch);
  return {batch,
          region,
          reinterpret_cast<char*>(to),
          plan.made,
          bytes,
          first,
          first,
          asked ? std::max(plan.made, in_flight) * batch.d * size_of(batch.dtype) + made_ahead : 0};
}

// The rows of a batch where they lie, or to be made.
template <class T> Batch readable_rows(const Batch& batch, const ClipPlan& plan, MadeRows& made) {
  if (plan.in_place) return batch;
  constexpr Dtype dtype = std::is_same_v<T, float> ? Dtype::float32 : Dtype::float64;
  Batch rows{made.to, dtype, batch.n, batch.d, std::ptrdiff_t(made.bytes), sizeof(T)};
  rows.made = &made;
  return rows;
}

// Inputs of a row that is exceptional as it was read, from a copy: 0 in its holes. A huge row adds
// its integers at once, and leaves zeros in its place; with distances, the NaN that marks it.
template <class T, Task task>
__attribute__((noinline)) void load_exceptional(Stream& s, const Region& region,
                                                const double* center, const char* row,
                                                std::size_t chunk, double* h, double* stretch) {
  const std::int64_t holes = copy_row<T>(row, s.d, region.center, s.alone.x, s.absent);
  s.counts.nonfinite += holes > 0;
  s.alone.stretch = stretch_of(region, holes);
  if (stretch) *stretch = s.alone.stretch;
  const char* copy = reinterpret_cast<const char*>(s.alone.x);
  if (load_matrix_input<double>(center, copy, s.d, chunk, h)) return;
  if (task == Task::distances) {
    h[0] = __builtin_nan("");
    return;
  }
  s.counts.clipped += clip_huge_row(region, s.alone);
  for (std::size_t j = 0; j < s.d; ++j) {
    const std::int64_t q = std::int64_t(std::rint(s.alone.y[j]));
    const auto add = [&](std::size_t slot, std::int64_t more) {
      std::int64_t& sum = *integers_at(s.records + j / vec_lanes * s.stride + slot + j % vec_lanes);
      sum = std::int64_t(std::uint64_t(sum) + std::uint64_t(more));
    };
    add(sum_slot, q);
    if (task == Task::halves) add(limit_slot, q < 0 ? 0 : q);
    h[j / depth * chunk + j % depth] = 0;
  }
}

// Hands blocks of B h to `pass`, with where they came from and the index of their first row; before
// that `huge` is told of each row that may have added its integers to the sums already.
template <class T, Task task, class Huge, class Pass>
void matrix_products(Stream& s, const Batch& rows, const Region& region, const ClipPlan& plan,
                     const MatrixScratch& scratch, const Huge& huge, const Pass& pass) {
  if (!scratch.h) return;  // there is no matrix
  const std::size_t chunk = plan.block * h_stride;
  for (std::size_t start = 0; start < rows.n; start += plan.block) {
    const std::size_t n = rows.n - start < plan.block ? rows.n - start : plan.block;
    for (std::size_t i = 0; scratch.stretch && i < n + vec_lanes; ++i) scratch.stretch[i] = 1.0;
    for (std::size_t i = 0; i < n; ++i) {
      const char* row = rows_from<T>(rows, start + i, 1);
      double* h = scratch.h + i * h_stride;
      if (load_matrix_input<T>(scratch.center, row, rows.d, chunk, h)) continue;
      load_exceptional<T, task>(s, region, scratch.center, row, chunk, h,
                                scratch.stretch ? scratch.stretch + i : nullptr);
      huge(start + i);
    }
    if (region.rank) multiply_factors(region, scratch.h, scratch.t, scratch.y, n, plan);
    else multiply(scratch.h, region.packed, scratch.y, n, plan, rows.d);
    const Batch product{
        scratch.y,     Dtype::float64, n, rows.d, std::ptrdiff_t(plan.stride * sizeof(double)),
        sizeof(double)};
    pass(product, Origin{region, product, scratch.h, chunk, scratch.stretch}, start);
  }
}

// Contiguous rows, by way of blocks of B h.
template <class T, Task task>
void matrix_rows(Stream& s, const Batch& rows, const Region& region, const ClipPlan& plan,
                 const MatrixScratch& scratch, const Arrangement& arrangement) {
  matrix_products<T, task>(
      s, rows, region, plan, scratch, [](std::size_t) {},
      [&](const Batch& product, const Origin& from, std::size_t) {
        stream<double, task>(s, product, from, arrangement);
      });
}

template <Task task> void add_sums(const Stream& s, std::int64_t* partial) {
  const std::uint64_t magic = s.quantised * rounding_magic_bits;
  for (std::size_t j = 0; j < s.d; ++j) {
    double* record = s.records + j / vec_lanes * s.stride + j % vec_lanes;
    const auto exact = [&](std::size_t slot) {
      return std::int64_t(std::uint64_t(*integers_at(record + slot)) - magic);
    };
    const std::int64_t sum = exact(sum_slot);
    if (task == Task::halves) add_halves(sum, exact(limit_slot), s.d, j, partial);
    else partial[j] += sum;
  }
}

template <class T, Task task>
ClipCounts run(const Batch& batch, const Region& region, const Arrangement& given, double* memory,
               std::int64_t* partial) {
  const ClipPlan plan = clip_plan(batch, region);
  std::int64_t* absent = partial + sums_of(region);
  ClipCounts counts{0, 0};
  std::size_t done = 0;
  if (plan.columns) counts = clip_columns<T, task>(batch, region, given, memory, done, partial);
  Arrangement arrangement = given;
  if (arrangement.rows > most_in_flight) arrangement.rows = most_in_flight;
  // Products are in the cache already, and what is made; what that was made of is asked for below.
  if (is_mixed(region) || !plan.in_place) arrangement.fetch = Fetch::hardware;
  if (!plan.in_place) {
    arrangement.takes = Takes::all, arrangement.keeps = false;
    arrangement.rows = rows_made_in_flight(region, arrangement.rows);
  }
  const Region rest = plan.in_place ? region : without_box(region);  // what is made is moved
  if (rest.lower) arrangement.keeps = false;
  const Units units = units_of(rest, sizeof(T));
  Scratch scratch{memory};
  MadeRows made = make_none<T>(batch, region, plan, arrangement.rows, done, scratch);
  if (made.ahead) arrangement.fetch = Fetch::made, arrangement.ahead = made.ahead;
  const Batch rows = readable_rows<T>(batch, plan, made);
  if (plan.side_by_side) {
    ShortSums sums{partial, absent, units, make_bins(rest, scratch), counts};
    short_rows<T, task>(rest, rows, done, arrangement, sums);
    if (task == Task::distances) add_counts(sums.bins, batch.n - done, partial);
    return sums.counts;
  }
  Stream s = make_stream(rest, arrangement, sizeof(T), absent, scratch, units,
                         task == Task::box ? 0 : arrangement.rows);
  s.counts = counts;
  if (!is_mixed(rest)) {
    stream<T, task>(s, rows, {rest, rows, nullptr, 0, nullptr}, arrangement, done);
  } else if constexpr (task != Task::box) {  // which has no matrix
    const MatrixScratch matrix = make_matrix_scratch(rest, plan, scratch);
    matrix_rows<T, task>(s, rows, rest, plan, matrix, arrangement);
  }
  if (task == Task::distances) add_counts(s.bins, batch.n - done, partial);
  else add_sums<task>(s, partial);
  return s.counts;
}

template <class T>
ClipCounts run(const Batch& batch, const Region& region, const Arrangement& arrangement,
               double* scratch, std::int64_t* partial) {
  switch (region.task) {
    case Task::box:
      return run<T, Task::box>(batch, region, arrangement, scratch, partial);
    case Task::halves:
      return run<T, Task::halves>(batch, region, arrangement, scratch, partial);
    case Task::distances:
      return run<T, Task::distances>(batch, region, arrangement, scratch, partial);
    default:
      return run<T, Task::ball>(batch, region, arrangement, scratch, partial);
  }
}

template <class T, Task task>
ClipCounts run_groups(const Batch& rows, const Region& region, const GroupSums& to,
                      double* memory) {
  const ClipPlan plan = clip_plan(rows, region);
  Scratch scratch{memory};
  const Arrangement arrangement{"groups", most_in_groups, 0, 0, Fetch::hardware, false};
  Stream s = make_stream(region, arrangement, sizeof(T), to.absent, scratch, {Form::ellipsoid, 1},
                         most_in_groups);
  if (!is_mixed(region)) {
    all_to_groups<T, task>(s, rows, {region, rows, nullptr, 0, nullptr}, to, 0);
    return s.counts;
  }
  if constexpr (task != Task::box) {
    const MatrixScratch matrix = make_matrix_scratch(region, plan, scratch);
    matrix_products<T, task>(
        s, rows, region, plan, matrix, [&](std::size_t row) { move_sums(s, to, row); },
        [&](const Batch& product, const Origin& from, std::size_t start) {
          all_to_groups<double, task>(s, product, from, to, start);
        });
  }
  return s.counts;
}

}  // namespace

ClipCounts group_sums(const Batch& batch, const Region& region, const GroupSums& to,
                      double* scratch) {
  const UpperHalvesCleared at_the_end;
  const bool box = region.task == Task::box;
  if (batch.dtype == Dtype::float32)
    return box ? run_groups<float, Task::box>(batch, region, to, scratch)
               : run_groups<float, Task::ball>(batch, region, to, scratch);
  return box ? run_groups<double, Task::box>(batch, region, to, scratch)
             : run_groups<double, Task::ball>(batch, region, to, scratch);
}

ClipCounts clip_sum(const Batch& batch, const Region& region, const Arrangement& arrangement,
                    double* scratch, std::int64_t* partial) {
  const UpperHalvesCleared at_the_end;
  const auto of_floats = [&] {  // others are made doubles
    const ClipPlan plan = clip_plan(batch, region);
    if (region.lower) return plan.in_place;
    return plan.in_place || plan.columns || (batch.columns && is_mixed(region));
  };
  return batch.dtype == Dtype::float32 && of_floats()
             ? run<float>(batch, region, arrangement, scratch, partial)
             : run<double>(batch, region, arrangement, scratch, partial);
}

void pack_matrix(const Region& region, double* packed) {
  const UpperHalvesCleared at_the_end;
  if (region.rank) pack_factors(region, packed);
  else pack_panels(region.d, region.d, region.matrix, region.d, 1, packed);
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
