#include "keys/blake2b.hpp"

#include <cstring>

// Bytes are read as little-endian words: every target of the library is little-endian.
namespace ellipsum {
namespace {

constexpr std::size_t block_bytes = 128, block_words = 16, rounds = 12;
constexpr std::uint64_t iv[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                 0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
// Digest of 16 bytes, no key, one leaf.
constexpr std::uint64_t parameters = 16 | 1 << 16 | 1 << 24;
constexpr unsigned char order[10][block_words] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

inline std::uint64_t turned(std::uint64_t x, int bits) { return x >> bits | x << (64 - bits); }

inline void quarter(std::uint64_t& a, std::uint64_t& b, std::uint64_t& c, std::uint64_t& d,
                    std::uint64_t x, std::uint64_t y) {
  a += b + x;
  d = turned(d ^ a, 32);
  c += d;
  b = turned(b ^ c, 24);
  a += b + y;
  d = turned(d ^ a, 16);
  c += d;
  b = turned(b ^ c, 63);
}

void compress(std::uint64_t h[8], const std::uint64_t m[block_words], std::uint64_t count,
              bool last) {
  std::uint64_t v[16];
  for (int i = 0; i < 8; ++i) {
    v[i] = h[i];
    v[8 + i] = iv[i];
  }
  v[12] ^= count;
  if (last) v[14] = ~v[14];
  for (std::size_t r = 0; r < rounds; ++r) {
    const unsigned char* s = order[r % 10];
    quarter(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
    quarter(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
    quarter(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
    quarter(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
    quarter(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
    quarter(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
    quarter(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
    quarter(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
  }
  for (int i = 0; i < 8; ++i) h[i] ^= v[i] ^ v[8 + i];
}

}  // namespace

void blake2b_128(const unsigned char* data, std::size_t size, const std::uint64_t person[2],
                 std::uint64_t digest[2]) {
  std::uint64_t h[8], m[block_words];
  std::memcpy(h, iv, sizeof h);
  h[0] ^= parameters;
  h[6] ^= person[0];
  h[7] ^= person[1];
  std::size_t done = 0;
  for (; size - done > block_bytes; done += block_bytes) {
    std::memcpy(m, data + done, sizeof m);
    compress(h, m, done + block_bytes, false);
  }
  std::memset(m, 0, sizeof m);
  if (size > done) std::memcpy(m, data + done, size - done);
  compress(h, m, size, true);
  digest[0] = h[0];
  digest[1] = h[1];
}

}  // namespace ellipsum
