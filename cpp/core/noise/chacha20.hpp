// ChaCha20 (Bernstein 2008), original layout: constant, 256-bit key, 64-bit block counter in
// words 12-13, 64-bit nonce in words 14-15. 4 * quads blocks at once, one a lane.
#pragma once
#include "simd/registers.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {
namespace chacha20 {

using simd::Words32;

constexpr std::size_t blocks_at_once = 4 * simd::quads;
constexpr std::size_t block_words = 8;  // of 64 bits
constexpr std::size_t batch_words = blocks_at_once * block_words;

inline void quarter_round(Words32& a, Words32& b, Words32& c, Words32& d) {
  using namespace simd;
  a = add_words(a, b), d = rotate_words<16>(xor_words(d, a));
  c = add_words(c, d), b = rotate_words<12>(xor_words(b, c));
  a = add_words(a, b), d = rotate_words<8>(xor_words(d, a));
  c = add_words(c, d), b = rotate_words<7>(xor_words(b, c));
}

inline void column_round(Words32* x) {
  for (int i = 0; i < 4; ++i) quarter_round(x[i], x[4 + i], x[8 + i], x[12 + i]);
}

inline void diagonal_round(Words32* x) {
  quarter_round(x[0], x[5], x[10], x[15]);
  quarter_round(x[1], x[6], x[11], x[12]);
  quarter_round(x[2], x[7], x[8], x[13]);
  quarter_round(x[3], x[4], x[9], x[14]);
}

inline void double_round(Words32* x) {
  column_round(x);
  diagonal_round(x);
}

// Lane l holds the start state of block `first + l`; the counter wraps at 2^64.
inline void start_state(const std::uint32_t* key, std::uint64_t nonce, std::uint64_t first,
                        Words32* x) {
  constexpr std::uint32_t constant[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (int i = 0; i < 4; ++i) x[i] = simd::words(constant[i]);
  for (int i = 0; i < 8; ++i) x[4 + i] = simd::words(key[i]);
  constexpr std::uint32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const auto low = std::uint32_t(first);
  x[12] = simd::add_words(simd::words(low), simd::load_words(lane));
  x[13] = simd::words(std::uint32_t(first >> 32));
  if (low > UINT32_MAX - blocks_at_once) {  // a lane may carry into the high word
    std::uint32_t high[blocks_at_once];
    for (std::size_t l = 0; l < blocks_at_once; ++l) high[l] = std::uint32_t((first + l) >> 32);
    x[13] = simd::load_words(high);
  }
  x[14] = simd::words(std::uint32_t(nonce)), x[15] = simd::words(std::uint32_t(nonce >> 32));
}

// x[i] holds word i of every block; each block becomes 64 contiguous bytes.
inline void store_blocks(const Words32* x, std::uint64_t* out) {
  using namespace simd;
  constexpr std::size_t stride = 4 * block_words;  // quad q holds blocks 4q to 4q + 3
  Words32 row[4][4];                               // [block mod 4][words 4i to 4i + 3]
  for (int i = 0; i < 4; ++i) {
    const Words32* w = x + 4 * i;
    const Words32 low01 = low_words(w[0], w[1]), high01 = high_words(w[0], w[1]);
    const Words32 low23 = low_words(w[2], w[3]), high23 = high_words(w[2], w[3]);
    row[0][i] = low_pairs(low01, low23), row[1][i] = high_pairs(low01, low23);
    row[2][i] = low_pairs(high01, high23), row[3][i] = high_pairs(high01, high23);
  }
  for (int b = 0; b < 4; ++b)
    store_quads(row[b][0], row[b][1], row[b][2], row[b][3], out + b * block_words, stride);
}

// The last step: start state added, blocks_at_once * block_words words of 64 bits stored.
inline void finish(const Words32* start, Words32* x, std::uint64_t* out) {
  for (int i = 0; i < 16; ++i) x[i] = simd::add_words(x[i], start[i]);
  store_blocks(x, out);
}

inline void batch(const std::uint32_t* key, std::uint64_t nonce, std::uint64_t first,
                  std::uint64_t* out) {
  Words32 start[16], x[16];
  start_state(key, nonce, first, start);
  for (int i = 0; i < 16; ++i) x[i] = start[i];
  for (int round = 0; round < 10; ++round) double_round(x);
  finish(start, x, out);
}

}  // namespace chacha20
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
