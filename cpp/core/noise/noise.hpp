// Filling arrays with key stream and rounded Gaussian noise: chunks, threads, wiping.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ellipsum {

struct Kernels;

// A 256-bit key as little-endian words; wiped when it goes.
class NoiseKey {
 public:
  explicit NoiseKey(const unsigned char* bytes);  // 32 of them
  ~NoiseKey();
  NoiseKey(const NoiseKey&) = delete;
  NoiseKey& operator=(const NoiseKey&) = delete;
  const std::uint32_t* words() const { return words_; }

 private:
  std::uint32_t words_[8];
};

// Sample i takes word `start + i` of each stream and sigma[i mod d].
struct NoiseRequest {
  std::uint64_t start;
  const double* sigma;
  std::size_t d;
  std::int64_t* out;
  std::size_t n;
};

// Words start, start + 1, ... of the stream of this key and nonce.
void fill_keystream(const Kernels&, const NoiseKey&, std::uint64_t nonce, std::uint64_t start,
                    std::uint64_t* out, std::size_t n);

// Fills request.out; returns the indices (ascending) of samples that 128 bits do not decide.
// The output does not depend on the number of threads.
std::vector<std::uint64_t> fill_gaussian(const Kernels&, const NoiseKey&, const NoiseRequest&,
                                         std::size_t threads);

// The same from given words, first (nonce 0) and second (nonce 1), for tests of chosen bits;
// without second words the fast path's values stand, and its doubtful indices are returned.
std::vector<std::uint64_t> gaussian_of_words(const Kernels&, const std::uint64_t* first,
                                             const std::uint64_t* second, const NoiseRequest&);

}  // namespace ellipsum
