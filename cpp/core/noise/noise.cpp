#include "noise/noise.hpp"

#include <algorithm>
#include <cstring>

#include "dispatch.hpp"
#include "noise/gaussian_resolve.hpp"
#include "threads.hpp"

namespace ellipsum {
namespace {

constexpr std::size_t block_words = 8;  // of 64 bits: a block of ChaCha20
constexpr std::size_t chunk = 2048;     // samples: 16 KB of words, which stay in L1

// Stores that the compiler may not drop as dead.
void wipe(void* p, std::size_t size) {
  std::memset(p, 0, size);
  __asm__ __volatile__("" : : "r"(p) : "memory");
}

// Overwrites what a kernel's frame (key, stream state) left below ours.
__attribute__((noinline)) void wipe_stack() {
  unsigned char below[8192];
  wipe(below, sizeof below);
}

// A chunk's words, wiped when it goes; one block more for a start inside a block.
struct Words {
  std::uint64_t word[chunk + block_words];
  ~Words() { wipe(word, sizeof word); }
};

struct Chunk {
  Words first, second;
  std::uint32_t ambiguous[chunk];
};

// n <= chunk words from word `start`; returns where they begin in `words`.
const std::uint64_t* stream(const Kernels& kernels, const NoiseKey& key, std::uint64_t nonce,
                            std::uint64_t start, std::size_t n, Words& words) {
  const std::size_t skip = start % block_words;
  kernels.keystream(key.words(), nonce, start / block_words, words.word,
                    (skip + n + block_words - 1) / block_words);
  return words.word + skip;
}

// sigma[i mod d] for i below d + chunk: any chunk reads it contiguously.
std::vector<double> repeat(const double* sigma, std::size_t d) {
  std::vector<double> tile(d == 1 ? 1 : d + chunk);
  for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = i < d ? sigma[i] : tile[i - d];
  return tile;
}

struct Fill {
  const Kernels& kernels;
  const NoiseKey& key;
  const NoiseRequest& request;
  const std::vector<double>& tile;
};

// Resolves the ambiguous samples of out[0..]; appends to `undecided` those that stay so.
template <class Second>
void resolve(const std::uint64_t* first, Second second, const double* sigma, std::size_t step,
             std::int64_t* out, std::size_t origin, const std::uint32_t* ambiguous,
             std::size_t count, std::vector<std::uint64_t>& undecided) {
  if (!count) return;
  const std::uint64_t* more = second();
  for (std::size_t a = 0; a < count; ++a) {
    const std::size_t i = ambiguous[a];
    if (!resolve_gaussian(first[i], more[i], sigma[step * i], out[i]))
      undecided.push_back(origin + i);
  }
}

void fill_range(const Fill& fill, std::size_t begin, std::size_t end,
                std::vector<std::uint64_t>& undecided) {
  const NoiseRequest& request = fill.request;
  const std::size_t step = request.d == 1 ? 0 : 1;
  Chunk c;
  for (std::size_t i = begin, n; i < end; i += n) {
    const std::uint64_t start = request.start + i;
    const std::size_t skip = start % block_words;
    n = std::min(skip ? block_words - skip : chunk, end - i);
    const double* sigma = fill.tile.data() + (step ? i % request.d : 0);
    const auto words = [&](std::uint64_t nonce, Words& into) {
      return stream(fill.kernels, fill.key, nonce, start, n, into);
    };
    std::int64_t* out = request.out + i;
    const std::uint64_t* first = skip ? words(0, c.first) : c.first.word;
    const std::size_t count =
        skip ? fill.kernels.rounded_gaussian(first, n, sigma, step, out, c.ambiguous)
             : fill.kernels.gaussian_stream(fill.key.words(), start / block_words, n, sigma, step,
                                            c.first.word, out, c.ambiguous);
    resolve(
        first, [&] { return words(1, c.second); }, sigma, step, out, i, c.ambiguous, count,
        undecided);
  }
  wipe_stack();
}

// One thread's part: whole chunks, so that the parts differ in nothing but who fills them.
struct Part {
  std::size_t begin, end;
  std::vector<std::uint64_t> undecided;
};

std::vector<Part> split(std::size_t n, std::size_t threads) {
  const std::size_t chunks = (n + chunk - 1) / chunk;
  const std::size_t count = std::max<std::size_t>(1, std::min(threads, chunks));
  std::vector<Part> parts(count);
  for (std::size_t t = 0; t < count; ++t) {
    parts[t].begin = std::min(n, chunks * t / count * chunk);
    parts[t].end = std::min(n, chunks * (t + 1) / count * chunk);
  }
  return parts;
}

}  // namespace

NoiseKey::NoiseKey(const unsigned char* bytes) {
  for (std::size_t i = 0; i < 8; ++i) {
    const unsigned char* b = bytes + 4 * i;
    words_[i] = b[0] | b[1] << 8 | b[2] << 16 | std::uint32_t(b[3]) << 24;
  }
}

NoiseKey::~NoiseKey() { wipe(words_, sizeof words_); }

void fill_keystream(const Kernels& kernels, const NoiseKey& key, std::uint64_t nonce,
                    std::uint64_t start, std::uint64_t* out, std::size_t n) {
  const std::size_t head = std::min(n, (block_words - start % block_words) % block_words);
  Words edge;
  if (head) std::memcpy(out, stream(kernels, key, nonce, start, head, edge), head * 8);
  const std::size_t blocks = (n - head) / block_words;
  kernels.keystream(key.words(), nonce, (start + head) / block_words, out + head, blocks);
  const std::size_t done = head + blocks * block_words;
  if (done < n)
    std::memcpy(out + done, stream(kernels, key, nonce, start + done, n - done, edge),
                (n - done) * 8);
  wipe_stack();
}

std::vector<std::uint64_t> fill_gaussian(const Kernels& kernels, const NoiseKey& key,
                                         const NoiseRequest& request, std::size_t threads) {
  const std::vector<double> tile = repeat(request.sigma, request.d);
  std::vector<Part> parts = split(request.n, threads);
  const Fill fill{kernels, key, request, tile};
  run_parts(parts.size(), [&](std::size_t i) {
    fill_range(fill, parts[i].begin, parts[i].end, parts[i].undecided);
  });
  std::vector<std::uint64_t> undecided;
  for (const Part& part : parts)
    undecided.insert(undecided.end(), part.undecided.begin(), part.undecided.end());
  return undecided;
}

std::vector<std::uint64_t> gaussian_of_words(const Kernels& kernels, const std::uint64_t* first,
                                             const std::uint64_t* second,
                                             const NoiseRequest& request) {
  const std::vector<double> tile = repeat(request.sigma, request.d);
  const std::size_t step = request.d == 1 ? 0 : 1;
  std::vector<std::uint64_t> undecided;
  std::uint32_t ambiguous[chunk];
  for (std::size_t i = 0; i < request.n; i += chunk) {
    const std::size_t n = std::min(chunk, request.n - i);
    const double* sigma = tile.data() + (step ? i % request.d : 0);
    std::int64_t* out = request.out + i;
    const std::size_t count = kernels.rounded_gaussian(first + i, n, sigma, step, out, ambiguous);
    if (second)
      resolve(
          first + i, [&] { return second + i; }, sigma, step, out, i, ambiguous, count, undecided);
    else
      for (std::size_t a = 0; a < count; ++a) undecided.push_back(i + ambiguous[a]);
  }
  return undecided;
}

}  // namespace ellipsum
