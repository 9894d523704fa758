#include "users/row_ranks.hpp"

#include <vector>

#include "dispatch.hpp"
#include "error.hpp"
#include "keys/key_lookup.hpp"

namespace ellipsum {

void row_ranks(const Kernels& kernels, const Batch& batch, const std::uint64_t* words,
               const std::int64_t* which, std::size_t n, std::uint64_t* ranks) {
  if (batch.d > 1 && batch.column_stride != std::ptrdiff_t(size_of(batch.dtype)))
    throw Exception(Error::invalid_argument, "internal: rows");
  for (std::size_t k = 0; k < n; ++k) {
    if (which[k] < 0 || which[k] >= std::int64_t(batch.n))
      throw Exception(Error::invalid_argument, "internal: which");
    const std::uint64_t* of_user = words + 2 * which[k];
    ranks[k] = lookup::mixed(of_user[0] ^ lookup::mixed(of_user[1]));
  }
  // A number counts with its column, so that rows of the same numbers elsewhere have another hash.
  std::vector<std::uint64_t> places(batch.d);
  for (std::size_t j = 0; j < batch.d; ++j) places[j] = lookup::mixed(j);
  kernels.row_ranks(batch, which, n, places.data(), ranks);
}

}  // namespace ellipsum
