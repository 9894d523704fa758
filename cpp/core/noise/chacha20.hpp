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

// Four words of every block. Named, not counted: an array stays in memory from round to round.
struct Row {
  Words32 w0, w1, w2, w3;
};
struct State {
  Row a, b, c, d;  // words 0-3, 4-7, 8-11, 12-15
};

#if defined(__AVX2__) && !defined(__AVX512F__)
#include "noise/chacha20_avx2.inl"
#else
inline void quarter_round(Words32& a, Words32& b, Words32& c, Words32& d) {
  using namespace simd;
  a = add_words(a, b), d = rotate_words<16>(xor_words(d, a));
  c = add_words(c, d), b = rotate_words<12>(xor_words(b, c));
  a = add_words(a, b), d = rotate_words<8>(xor_words(d, a));
  c = add_words(c, d), b = rotate_words<7>(xor_words(b, c));
}

inline void two_quarter_rounds(Words32& a0, Words32& b0, Words32& c0, Words32& d0, Words32& a1,
                               Words32& b1, Words32& c1, Words32& d1) {
  quarter_round(a0, b0, c0, d0);
  quarter_round(a1, b1, c1, d1);
}
#endif

inline void column_round(Row& a, Row& b, Row& c, Row& d) {
  two_quarter_rounds(a.w0, b.w0, c.w0, d.w0, a.w1, b.w1, c.w1, d.w1);
  two_quarter_rounds(a.w2, b.w2, c.w2, d.w2, a.w3, b.w3, c.w3, d.w3);
}

inline void diagonal_round(Row& a, Row& b, Row& c, Row& d) {
  two_quarter_rounds(a.w0, b.w1, c.w2, d.w3, a.w1, b.w2, c.w3, d.w0);
  two_quarter_rounds(a.w2, b.w3, c.w0, d.w1, a.w3, b.w0, c.w1, d.w2);
}

inline void double_round(Row& a, Row& b, Row& c, Row& d) {
  column_round(a, b, c, d);
  diagonal_round(a, b, c, d);
}

inline Row fill(const std::uint32_t* w) {
  return {simd::words(w[0]), simd::words(w[1]), simd::words(w[2]), simd::words(w[3])};
}

// Lane l holds the start state of block `first + l`; the counter wraps at 2^64.
inline State start_state(const std::uint32_t* key, std::uint64_t nonce, std::uint64_t first) {
  constexpr std::uint32_t constant[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  constexpr std::uint32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const auto low = std::uint32_t(first);
  Row d;
  d.w0 = simd::add_words(simd::words(low), simd::load_words(lane));
  d.w1 = simd::words(std::uint32_t(first >> 32));
  if (low > UINT32_MAX - blocks_at_once) {  // a lane may carry into the high word
    std::uint32_t high[blocks_at_once];
    for (std::size_t l = 0; l < blocks_at_once; ++l) high[l] = std::uint32_t((first + l) >> 32);
    d.w1 = simd::load_words(high);
  }
  d.w2 = simd::words(std::uint32_t(nonce)), d.w3 = simd::words(std::uint32_t(nonce >> 32));
  return {fill(constant), fill(key), fill(key + 4), d};
}

// Word by word: GCC copies a struct by halves of a register, from which no whole one is forwarded.
inline Row copy(const Row& x) { return {x.w0, x.w1, x.w2, x.w3}; }

inline Row add(const Row& x, const Row& y) {
  using simd::add_words;
  return {add_words(x.w0, y.w0), add_words(x.w1, y.w1), add_words(x.w2, y.w2),
          add_words(x.w3, y.w3)};
}

// The same words, of one block mod 4 in each.
inline Row turned(const Row& w) {
  using namespace simd;
  const Words32 low01 = low_words(w.w0, w.w1), high01 = high_words(w.w0, w.w1);
  const Words32 low23 = low_words(w.w2, w.w3), high23 = high_words(w.w2, w.w3);
  return {low_pairs(low01, low23), high_pairs(low01, low23), low_pairs(high01, high23),
          high_pairs(high01, high23)};
}

// The last step: start state added, blocks_at_once * block_words words of 64 bits stored, 64
// contiguous bytes a block.
inline void finish(const State& start, const Row& a, const Row& b, const Row& c, const Row& d,
                   std::uint64_t* out) {
  constexpr std::size_t stride = 4 * block_words;  // quad q holds blocks 4q to 4q + 3
  const Row e = turned(add(a, start.a)), f = turned(add(b, start.b));
  const Row g = turned(add(c, start.c)), h = turned(add(d, start.d));
  simd::store_quads(e.w0, f.w0, g.w0, h.w0, out, stride);
  simd::store_quads(e.w1, f.w1, g.w1, h.w1, out + block_words, stride);
  simd::store_quads(e.w2, f.w2, g.w2, h.w2, out + 2 * block_words, stride);
  simd::store_quads(e.w3, f.w3, g.w3, h.w3, out + 3 * block_words, stride);
}

inline void batch(const std::uint32_t* key, std::uint64_t nonce, std::uint64_t first,
                  std::uint64_t* out) {
  const State start = start_state(key, nonce, first);
  Row a = copy(start.a), b = copy(start.b), c = copy(start.c), d = copy(start.d);
  for (int round = 0; round < 10; ++round) double_round(a, b, c, d);
  finish(start, a, b, c, d, out);
}

}  // namespace chacha20
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
