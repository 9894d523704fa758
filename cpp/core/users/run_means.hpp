// Runs of rows, each one user's, to one row each: the correctly rounded mean or sum.
#pragma once
#include <cstddef>
#include <cstdint>

#include "batch.hpp"

namespace ellipsum {

struct Kernels;

// What is open of a user, per coordinate: the exact sum in units of 2^-1074 as `sum_limbs` signed
// limbs of 32 bits (carries wait), how many of them were touched, how many numbers there were,
// and the last one.
constexpr std::size_t sum_limbs = 68;
constexpr std::size_t state_words = sum_limbs + 4;

// Numbers of one run and coordinate that the limbs can wait for; with more the result is a NaN.
constexpr std::int64_t run_limit = std::int64_t{1} << 29;

// Run r has the rows from ends[r - 1] (or 0) to ends[r] - 1; the first continues what `state`
// (d x state_words) holds of a run before, and rows from the last end on stay in it. A finished
// run's row goes to out (runs x d): in each coordinate the sum of its finite numbers, divided by
// their number if `divide`, rounded once to the nearest double, ties to even; the largest double
// beyond it; NaN where there is no finite number.
void run_means(const Kernels& kernels, const Batch& batch, const std::int64_t* ends,
               std::size_t runs, std::int64_t* state, double* out, bool divide);

}  // namespace ellipsum
