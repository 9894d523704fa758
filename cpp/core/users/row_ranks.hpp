// A hash of rows and of whose they are, by which some of a user's rows are chosen.
#pragma once
#include <cstddef>
#include <cstdint>

#include "batch.hpp"

namespace ellipsum {

struct Kernels;

// ranks[k] <- the hash of row which[k] of a batch whose rows are contiguous, and of its two words: the
// same for rows of equal numbers, where zeros of either sign are equal, and NaNs.
void row_ranks(const Kernels& kernels, const Batch& batch, const std::uint64_t* words,
               const std::int64_t* which, std::size_t n, std::uint64_t* ranks);

}  // namespace ellipsum
