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

// `sigma(i)` is the vector of standard deviations of samples i, i + 1, ...
template <class Sigma>
std::size_t whole_groups(const std::uint64_t* words, std::size_t n, Sigma sigma, std::int64_t* out,
                         std::uint32_t* ambiguous) {
  constexpr std::size_t step = gaussian::samples_at_once;
  std::size_t count = 0;
  if (n < step) return 0;
  gaussian::Group group, next;
  gaussian::start(words, group);
  for (std::size_t i = 0; i + step <= n; i += step, group = next) {
    if (i + 2 * step <= n) gaussian::start(words + i + step, next);
    const auto here = [&](std::size_t j) { return sigma(i + j); };
    const unsigned mask = gaussian::finish(group, words + i, here, out + i);
    if (mask) count = append(mask, i, ambiguous, count);
  }
  return count;
}

}  // namespace

std::size_t rounded_gaussian(const std::uint64_t* words, std::size_t n, const double* sigma,
                             std::size_t sigma_step, std::int64_t* out,
                             std::uint32_t* ambiguous) {
  using simd::F;
  constexpr std::size_t step = gaussian::samples_at_once;
  const F same = simd::doubles(*sigma);
  const std::size_t count =
      sigma_step
          ? whole_groups(words, n, [&](std::size_t i) { return simd::load_doubles(sigma + i); },
                         out, ambiguous)
          : whole_groups(words, n, [&](std::size_t) { return same; }, out, ambiguous);
  const std::size_t rest = n % step, i = n - rest;
  if (!rest) return count;
  std::uint64_t last_words[step] = {};
  double last_sigma[step] = {};
  std::int64_t last_out[step];
  for (std::size_t l = 0; l < rest; ++l) {
    last_words[l] = words[i + l];
    last_sigma[l] = sigma[sigma_step * (i + l)];
  }
  const auto at = [&](std::size_t j) { return simd::load_doubles(last_sigma + j); };
  gaussian::Group group;
  gaussian::start(last_words, group);
  const unsigned mask = gaussian::finish(group, last_words, at, last_out);
  std::memcpy(out + i, last_out, rest * 8);
  return append(mask & ((1u << rest) - 1), i, ambiguous, count);
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
