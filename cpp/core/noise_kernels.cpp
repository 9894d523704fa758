// ChaCha20 key stream and the fast path of the rounded Gaussian, compiled once per target.
#include "chacha20.hpp"
#include "dispatch.hpp"
#include "gaussian.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {

void keystream(const std::uint32_t* key, std::uint64_t nonce, std::uint64_t block,
               std::uint64_t* out, std::size_t blocks) {
  using namespace chacha20;
  std::size_t done = 0;
  for (; done + blocks_at_once <= blocks; done += blocks_at_once)
    batch(key, nonce, block + done, out + done * block_words);
  if (done == blocks) return;
  std::uint64_t rest[blocks_at_once * block_words];
  batch(key, nonce, block + done, rest);
  std::memcpy(out + done * block_words, rest, (blocks - done) * block_words * 8);
}

namespace {

// Appends the indices of the set bits: only the fact of ambiguity is seen here.
std::size_t append(unsigned mask, std::size_t first, std::uint32_t* indices, std::size_t count) {
  for (; mask; mask &= mask - 1) indices[count++] = std::uint32_t(first + __builtin_ctz(mask));
  return count;
}

}  // namespace

std::size_t rounded_gaussian(const std::uint64_t* words, std::size_t n, const double* sigma,
                             std::size_t sigma_step, std::int64_t* out,
                             std::uint32_t* ambiguous) {
  using namespace simd;
  std::size_t count = 0, i = 0;
  for (; i + lanes <= n; i += lanes) {
    const F s = sigma_step ? load_doubles(sigma + i) : doubles(*sigma);
    const unsigned mask = gaussian::samples(load_integers(words + i), s, out + i);
    if (mask) count = append(mask, i, ambiguous, count);
  }
  if (i == n) return count;
  std::uint64_t last_words[lanes] = {};
  double last_sigma[lanes] = {};
  std::int64_t last_out[lanes];
  for (std::size_t l = 0; i + l < n; ++l) {
    last_words[l] = words[i + l];
    last_sigma[l] = sigma[sigma_step * (i + l)];
  }
  const unsigned mask =
      gaussian::samples(load_integers(last_words), load_doubles(last_sigma), last_out);
  std::memcpy(out + i, last_out, (n - i) * 8);
  return append(mask & ((1u << (n - i)) - 1), i, ambiguous, count);
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
