// ChaCha20 key stream and the fast path of the rounded Gaussian, compiled once per target.
#include "noise/chacha20.hpp"
#include "dispatch.hpp"
#include "noise/gaussian.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {

namespace {

void blocks_of(const std::uint32_t* key, std::uint64_t nonce, std::uint64_t block,
               std::uint64_t* out, std::size_t blocks) {
  using namespace chacha20;
  std::size_t done = 0;
  for (; done + blocks_at_once <= blocks; done += blocks_at_once)
    batch(key, nonce, block + done, out + done * block_words);
  if (done == blocks) return;
  std::uint64_t rest[batch_words];
  batch(key, nonce, block + done, rest);
  std::memcpy(out + done * block_words, rest, (blocks - done) * block_words * 8);
}

// Appends the indices of the set bits: only the fact of ambiguity is seen here.
std::size_t append(unsigned mask, std::size_t first, std::uint32_t* indices, std::size_t count) {
  for (; mask; mask &= mask - 1) indices[count++] = std::uint32_t(first + __builtin_ctz(mask));
  return count;
}

// Calls `run` with the function that gives the standard deviations of samples i, i + 1, ...
template <class Run> std::size_t with_sigma(const double* sigma, std::size_t sigma_step, Run run) {
  if (sigma_step) return run([=](std::size_t i) { return simd::load_doubles(sigma + i); });
  const simd::Doubles same = simd::broadcast(*sigma);
  return run([=](std::size_t) { return same; });
}

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

// With 16 registers the state of ChaCha20 would go to memory and back at every stage.
constexpr bool interleave = simd::lanes == 8;
constexpr std::size_t groups = chacha20::batch_words / gaussian::samples_at_once;
static_assert(!interleave ||
                  (groups == 8 && chacha20::batch_words % gaussian::samples_at_once == 0),
              "8 groups go between the 10 double rounds");

// Samples of the batch `words`, and the words of the batch after it behind them: the rounds of
// ChaCha20 run between the stages of the samples, because either alone leaves units idle.
// Stores one mask a group.
template <class Sigma>
inline void batch_and_next(const std::uint32_t* key, std::uint64_t next_block, std::uint64_t* words,
                           Sigma sigma, std::int64_t* out, unsigned* masks) {
  constexpr std::size_t step = gaussian::samples_at_once;
  const chacha20::State start = chacha20::start_state(key, 0, next_block);
  chacha20::Row a = copy(start.a), b = copy(start.b), c = copy(start.c), d = copy(start.d);
  chacha20::double_round(a, b, c, d);
  chacha20::double_round(a, b, c, d);
  gaussian::Group group, next;
  gaussian::start(words, group);
  const auto finish = [&](std::size_t g) {
    const auto here = [&](std::size_t j) { return sigma(g * step + j); };
    masks[g] = gaussian::finish(group, words + g * step, here, out + g * step);
  };
  for (std::size_t g = 0; g + 1 < groups; ++g) {
    chacha20::column_round(a, b, c, d);
    gaussian::start(words + (g + 1) * step, next);
    chacha20::diagonal_round(a, b, c, d);
    finish(g);
    group = next;
  }
  chacha20::double_round(a, b, c, d);
  finish(groups - 1);
  chacha20::finish(start, a, b, c, d, words + chacha20::batch_words);
}

// `batches` whole batches from block `block` on.
template <class Sigma>
std::size_t whole_batches(const std::uint32_t* key, std::uint64_t block, std::size_t batches,
                          std::uint64_t* words, Sigma sigma, std::int64_t* out,
                          std::uint32_t* ambiguous) {
  using namespace chacha20;
  if (!batches) return 0;
  batch(key, 0, block, words);
  std::size_t count = 0, at = 0;
  for (; at + batch_words < batches * batch_words; at += batch_words) {
    unsigned masks[groups], any = 0;
    const auto here = [&](std::size_t j) { return sigma(at + j); };
    block += blocks_at_once;
    batch_and_next(key, block, words + at, here, out + at, masks);
    for (unsigned mask : masks) any |= mask;
    if (!any) continue;
    for (std::size_t g = 0; g < groups; ++g)
      count = append(masks[g], at + g * gaussian::samples_at_once, ambiguous, count);
  }
  const auto here = [&](std::size_t j) { return sigma(at + j); };
  const std::size_t last = whole_groups(words + at, batch_words, here, out + at, ambiguous + count);
  for (std::size_t a = count; a < count + last; ++a) ambiguous[a] += std::uint32_t(at);
  return count + last;
}

std::size_t samples_of(const std::uint64_t* words, std::size_t n, const double* sigma,
                       std::size_t sigma_step, std::int64_t* out, std::uint32_t* ambiguous) {
  constexpr std::size_t step = gaussian::samples_at_once;
  const std::size_t count = with_sigma(
      sigma, sigma_step, [&](auto s) { return whole_groups(words, n, s, out, ambiguous); });
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

}  // namespace

void keystream(const std::uint32_t* key, std::uint64_t nonce, std::uint64_t block,
               std::uint64_t* out, std::size_t blocks) {
  const simd::UpperHalvesCleared at_the_end;
  blocks_of(key, nonce, block, out, blocks);
}

std::size_t rounded_gaussian(const std::uint64_t* words, std::size_t n, const double* sigma,
                             std::size_t sigma_step, std::int64_t* out, std::uint32_t* ambiguous) {
  const simd::UpperHalvesCleared at_the_end;
  return samples_of(words, n, sigma, sigma_step, out, ambiguous);
}

std::size_t gaussian_stream(const std::uint32_t* key, std::uint64_t block, std::size_t n,
                            const double* sigma, std::size_t sigma_step, std::uint64_t* words,
                            std::int64_t* out, std::uint32_t* ambiguous) {
  const simd::UpperHalvesCleared at_the_end;
  using namespace chacha20;
  const std::size_t batches = interleave ? n / batch_words : 0, done = batches * batch_words;
  const std::size_t count = with_sigma(sigma, sigma_step, [&](auto s) {
    return whole_batches(key, block, batches, words, s, out, ambiguous);
  });
  if (done == n) return count;
  blocks_of(key, 0, block + done / block_words, words + done,
            (n - done + block_words - 1) / block_words);
  const std::size_t rest = samples_of(words + done, n - done, sigma + sigma_step * done, sigma_step,
                                      out + done, ambiguous + count);
  for (std::size_t a = count; a < count + rest; ++a) ambiguous[a] += std::uint32_t(done);
  return count + rest;
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
