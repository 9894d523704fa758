// The clip rule, and what its kernels share. In words, for one row x, where c_j takes the place of
// a hole, an x_j that is no finite number:
//   y_j = (x_j - c_j) s_j, or y = B h with h_j = x_j - c_j rounded to 29 bits, or with a rank
//   y = s h + U t, where t = V' h is rounded to 29 bits, too;
//   box:  y_j clamped to +-limit_j;  ball: y_j * (C / max(C, |y|));
//   q_j = y_j rounded to the nearest integer, ties to even.
// Halves: max(q_j, 0) and max(-q_j, 0) are added apart. Distances: a row is counted in bin k if
// |y|^2 is above the squares of exactly the first k edges, all of them cut to 21 bits; the last
// edge bounds nothing.
// All of it is IEEE double, one rounding an operation, in an order fixed here (Guarantees: claims
// sum-1, sum-5, sum-6, sum-7).
// Everything here has internal linkage: the file is compiled once per target, and an inline
// function shared by the linker could carry AVX code into the baseline.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "batch.hpp"
#include "clip/arrangement.hpp"

#ifndef ELLIPSUM_TARGET
#define ELLIPSUM_TARGET compiled_once  // in sources that are no kernels
#endif

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {

// The squared norm is summed in 8 lanes (coordinate j into lane j mod 8, in the order of j),
// and the lanes as ((0+4)+(2+6)) + ((1+5)+(3+7)).
constexpr std::size_t norm_lanes = 8;

// Squared norms from here on (overflow and NaN included) go to exceptional.inl: 2^1000.
constexpr double exceptional_norm2 = 0x1p1000;

// With a matrix, |h| from 2^400 on makes a row exceptional and |h| below 2^-400 counts as 0, as
// does |t|. The entries of B, s, U and V are 0 or within 2^+-400 too, and V's below 1, so that no
// product leaves the normal numbers: 24 + 29 significant bits make it exact, and a fused
// multiply-add equals a product and a sum.
constexpr double largest_matrix_input = 0x1p400;
constexpr double smallest_matrix_input = 0x1p-400;

// Adding 1.5 * 2^52 rounds to the nearest integer, ties to even, for |y| < 2^51; |y| <= C/g
// <= 2^31 here (clip_norm_bits in ellipsoid.py).
constexpr double rounding_magic = 0x1.8p52;
constexpr std::uint64_t rounding_magic_bits = 0x4338000000000000u;

// Veltkamp's splitting: the nearest number of 29 significant bits (53 - 24).
[[maybe_unused]] inline double round_to_29_bits(double h) {
  const double shifted = h * 0x1.000001p24;
  return shifted - (shifted - h);
}

// round_to_29_bits, 0 where h is too small for exact products.
[[maybe_unused]] inline double matrix_input(double h) {
  const double rounded = round_to_29_bits(h);
  return std::fabs(h) < smallest_matrix_input ? 0.0 : rounded;
}

// Is a row's y a product, so that it goes by way of scratch?
[[maybe_unused]] inline bool is_mixed(const Region& region) { return region.matrix || region.rank; }

// Row i where it lies; or, of rows that are made, one of those that were last.
[[maybe_unused]] inline const char* lying_row(const Batch& batch, std::size_t i) {
  return static_cast<const char*>(batch.data) + std::ptrdiff_t(i) * batch.row_stride;
}
[[maybe_unused]] inline const char* row_at(const Batch& batch, std::size_t i) {
  if (batch.made) return batch.made->to + (i - batch.made->first) * batch.made->bytes;
  return lying_row(batch, i);
}

// Is number i left out? 1 or 0, and a NaN for x if it is: without a branch, as that is private.
[[maybe_unused]] inline std::uint8_t left_out(const Validity& valid, std::size_t i) {
  const std::size_t bit = valid.first + i;
  return valid.bits ? std::uint8_t(~(valid.bits[bit / 8] >> (bit % 8)) & 1) : std::uint8_t(0);
}
[[maybe_unused]] inline double or_nan(double x, std::uint8_t out) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits |= (0 - std::uint64_t(out)) & 0x7ff8000000000000u;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

[[maybe_unused]] inline Dtype type_of_column(const Batch& batch, std::size_t j) {
  return batch.types ? batch.types[j] : batch.dtype;
}

// Bytes of n numbers of column j, whole ones.
[[maybe_unused]] inline std::size_t bytes_of(const Batch& batch, std::size_t j, std::size_t n) {
  if (!batch.types) return n * std::size_t(batch.row_stride);
  return batch.types[j] == Dtype::bits ? n / 8 : n * size_of(batch.types[j]);
}

// Coordinate j of row i; of bits, the byte that it is in.
[[maybe_unused]] inline const char* number_at(const Batch& batch, std::size_t j, std::size_t i) {
  if (!batch.columns)
    return static_cast<const char*>(batch.data) + std::ptrdiff_t(j) * batch.column_stride +
           std::ptrdiff_t(i) * batch.row_stride;
  return static_cast<const char*>(batch.columns[j]) + bytes_of(batch, j, batch.first + i);
}

// A number of a column of floats, NaN where it is left out; it is read once.
[[maybe_unused]] inline double number_of(const Batch& batch, std::size_t j, std::size_t i) {
  const char* at = number_at(batch, j, i);
  double x;
  if (type_of_column(batch, j) == Dtype::float32) {
    float narrow;
    std::memcpy(&narrow, at, sizeof narrow);
    x = double(narrow);
  } else {
    std::memcpy(&x, at, sizeof x);
  }
  return batch.valid ? or_nan(x, left_out(batch.valid[j], batch.first + i)) : x;
}

// Are n numbers from the i-th on there?
[[maybe_unused]] inline bool all_valid(const Validity& valid, std::size_t i, std::size_t n) {
  if (!valid.bits || !n) return true;
  const std::size_t bit = valid.first + i, first = bit / 8, last = (bit + n - 1) / 8;
  const unsigned above = 0xffu >> (7 - (bit + n - 1) % 8), below = 0xffu << bit % 8 & 0xff;
  if (first == last) return (valid.bits[first] & above & below) == (above & below);
  unsigned all = (valid.bits[first] | (0xffu ^ below)) & (valid.bits[last] | (0xffu ^ above));
  for (std::size_t k = first + 1; k < last; ++k) all &= valid.bits[k];
  return all == 0xff;
}

// The sums of max(q, 0) and of max(-q, 0) from those of q and of max(q, 0), for coordinate j of d.
[[maybe_unused]] inline void add_halves(std::int64_t sum, std::int64_t upper, std::size_t d,
                                        std::size_t j, std::int64_t* partial) {
  partial[j] += upper;
  partial[d + j] += upper - sum;
}

// ---- how a pass is laid out ----------------------------------------------------------

[[maybe_unused]] inline std::size_t round_up(std::size_t a, std::size_t unit) {
  return (a + unit - 1) / unit * unit;
}

// Entries of what a pass adds to; a kernel's `partial` has d more, rounded up to whole vectors of 8,
// for the holes of each coordinate.
[[maybe_unused]] inline std::size_t sums_of(const Region& region) {
  return region.task == Task::distances ? region.bins
                                        : region.d * (region.task == Task::halves ? 2 : 1);
}

// Squared distances that wait to be counted, 32 bits of each: so many that adding up lanes costs little.
constexpr std::size_t waiting_distances = 1024;

// Doubles of the inputs of a product for each row of a block: matrix.inl.
[[maybe_unused]] inline std::size_t inputs_stride(std::size_t inputs) {
  return round_up(inputs, 256) / 256 * 264;
}

// Are cells of rows that lie where a pass reads them moved into their box as it reads them? Others are made.
[[maybe_unused]] inline bool boxes_on_the_way(const Region& region) {
  return region.task != Task::box && !is_mixed(region);
}

struct ClipPlan {
  bool side_by_side;    // short rows: eight of them across a vector
  std::size_t stride;   // doubles from one row of a product to the next
  bool in_place;        // rows are read where they are; if not, made a few at a time,
  bool columns;         // but for those that lie in columns, eight at a time
  std::size_t made;     // rows made at a time, if there are so many
  std::size_t block;    // rows multiplied at a time
  std::size_t doubles;  // scratch of a pass
};

// Room for whole panels of 16 outputs, and an odd number of cache lines: rows a power of two
// apart would share a cache way.
[[maybe_unused]] inline std::size_t scratch_stride(std::size_t d) { return round_up(d, 16) + 8; }

// A record of a streaming pass (stream.inl): at most four slots, and one for each row in flight. There
// are other ones for rows with holes.
constexpr std::size_t record_slots = 4;
constexpr std::size_t most_rows_in_flight = 8;
// Of short rows of float32, four or eight in flight, there are records of two groups (take_turns in
// stream.inl), which leave room for rows in a first level of 32 KB.
constexpr std::size_t most_late = 256, late_bytes = 20 << 10;

// Blocks hold 96 rows (8 tiles) with a matrix, 64 (whole cache lines of a column) without, or
// as many as fit 512 KB; at least a tile or a line of float64. With a rank tiles and groups of rows
// in flight, of half as many: what is made of them is read but once. One row from d = 2^16 on.
[[maybe_unused]] inline std::size_t rows_in_block(std::size_t d, const Region& region) {
  const std::size_t fit = (std::size_t{1} << 16) / (d > 1 ? d : 1);
  if (region.rank) return fit >= 192 ? 96 : fit >= 96 ? 48 : fit >= 1 ? 24 : 1;
  if (region.matrix) return fit >= 96 ? 96 : fit >= 24 ? fit / 12 * 12 : 12;
  return fit >= 64 ? 64 : fit >= 16 ? fit / 8 * 8 : 8;
}

// Rows made at a time: few enough for the first level of cache, and for the lines that a core can wait for; of
// columns whole lines of each, or eight where fewer are left of a pass over them.
constexpr std::size_t made_numbers = 1024;
[[maybe_unused]] inline std::size_t rows_made(const Batch& batch, const Region& region,
                                              bool rest_of_columns) {
  const std::size_t d = batch.d > 1 ? batch.d : 1, fit = made_numbers / d;
  if (rest_of_columns) return norm_lanes;
  if (batch.columns || std::abs(batch.column_stride) > std::abs(batch.row_stride))
    return rows_in_block(d, region);
  return fit >= norm_lanes ? fit / norm_lanes * norm_lanes : 1;
}

// The address as one number: else the compiler keeps each sum of its parts in a register of its own.
[[maybe_unused]] __attribute__((always_inline)) inline const char* as_one(const char* address) {
  __asm__("" : "+r"(address));
  return address;
}

// The same address, some cycles later. Lines that are asked for side by side reach the second level of cache in any
// order, and its prefetcher follows those alone that come in the order of their addresses: passes over rows took up
// to 1.5 times as long without (an Intel Xeon). So of lines that are asked for at once the address of each waits for
// the one before it.
[[maybe_unused]] __attribute__((always_inline)) inline const char* later(const char* address) {
#if defined(__x86_64__)
  __asm__("imul $1, %0, %0" : "+r"(address));  // 3 cycles, and no register beside
#endif
  return address;
}

// A pass over columns: at most so many vectors of 8 rows at a time. What slabs ask for at once: an eighth
// of the second level of cache in all.
constexpr std::size_t most_column_vectors = 4;
constexpr std::size_t column_block_bytes = std::size_t{1} << 17;
// Of more columns, lines asked to the first level push scratch out of it.
constexpr std::size_t near_columns = 128;
constexpr std::size_t column_slots = 3;  // of a record, beside a slab's y and copies

// Of so many columns rows stay in registers (short_columns.inl); of more a block begins every lane of norms.
constexpr std::size_t most_short_columns = 8;
static_assert(most_short_columns + 1 >= norm_lanes);

// Blocks of columns (column_blocks.inl): steps of a line of float32 or two of float64; runs of at
// most so many bytes, whole steps, and no more than `bytes` of what waits.
constexpr std::size_t block_step = 16, most_block_bytes = std::size_t{1} << 21;
constexpr std::size_t most_block_rows = column_run_bytes / sizeof(float);
[[maybe_unused]] inline std::size_t rows_in_column_block(std::size_t d, std::size_t size,
                                                         std::size_t waiting_size,
                                                         std::size_t bytes, std::size_t run_bytes) {
  const std::size_t fit = bytes / (waiting_size * (d > 1 ? d : 1)) / block_step * block_step;
  const std::size_t run = run_bytes / size;
  return fit < block_step ? block_step : fit < run ? fit : run;
}

// Of so many bits.
[[maybe_unused]] constexpr std::size_t words_of_bits(std::size_t n) { return (n + 63) / 64; }

[[maybe_unused]] inline ClipPlan clip_plan(const Batch& batch, const Region& region) {
  ClipPlan plan{};
  const bool floats = is_floating(batch.dtype);
  const std::ptrdiff_t size = batch.dtype == Dtype::float32 ? 4 : 8;
  plan.columns = floats && batch.row_stride == size &&
                 (batch.columns || batch.column_stride != size) && batch.d > 1 && !is_mixed(region);
  plan.in_place = floats && (!region.lower || boxes_on_the_way(region)) && !batch.columns &&
                  batch.column_stride == size &&
                  (batch.d > 8 || batch.row_stride == size * std::ptrdiff_t(batch.d));
  plan.made = rows_made(batch, region, plan.columns);
  plan.side_by_side = batch.d <= 8 && !is_mixed(region);
  plan.stride = scratch_stride(batch.d);
  plan.block = rows_in_block(batch.d, region);
  const std::size_t most_made = std::max(plan.made, most_rows_in_flight);
  const std::size_t made = plan.in_place ? 0 : most_made * batch.d + 2 * norm_lanes;
  const std::size_t inputs = inputs_stride(batch.d) + inputs_stride(region.rank);
  const std::size_t product = is_mixed(region) ? plan.block * (inputs + plan.stride + 1) + 8 : 0;
  const std::size_t records = batch.d <= most_late ? 3 : 2;
  plan.doubles =
      (records * (record_slots + most_rows_in_flight) + 6) * plan.stride + made + product;
  const auto waiting = [&](std::size_t each) {
    return rows_in_column_block(batch.d, std::size_t(size), each, most_block_bytes,
                                column_run_bytes);
  };
  const std::size_t rows = waiting(std::size_t(size)), of_y = waiting(sizeof(double));  // or kept
  const std::size_t block =
      batch.d <= most_short_columns
          ? 0
          : batch.d * std::max(rows * std::size_t(size) / sizeof(double), of_y) +
                (norm_lanes + 1) * rows + round_up(batch.d * words_of_bits(rows), 8);
  const std::size_t columns =
      plan.columns
          ? 8 * batch.d * (column_slots + 2 * most_column_vectors) + 3 * plan.stride + block
          : 0;
  if (plan.doubles < columns) plan.doubles = columns;
  if (region.task == Task::distances)
    plan.doubles += 2 * round_up(region.bins, 8) + waiting_distances / 2;
  return plan;
}

// Room for a packed matrix, or factors, on every target (panels of at most 16 outputs).
[[maybe_unused]] inline std::size_t packed_doubles(const Region& region) {
  const std::size_t d = region.d, r = region.rank;
  if (region.matrix) return round_up(d, 16) * d;
  return r ? round_up(r, 16) * d + round_up(d, 16) * (r + 1) : 0;
}

}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
