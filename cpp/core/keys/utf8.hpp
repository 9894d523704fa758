// Text as UTF-8, from code points of one, two or four bytes; a surrogate by itself is written as any
// other code point ("surrogatepass" in Python).
#pragma once
#include <cstddef>
#include <cstdint>

namespace ellipsum {

// Bytes that a code point of each size takes at most.
constexpr std::size_t utf8_most(std::size_t unit) { return unit == 4 ? 4 : unit + 1; }

// Writes n code points, read once each; returns where they end, or nullptr for what is none.
template <class Unit>
inline unsigned char* to_utf8(const Unit* from, std::size_t n, unsigned char* to) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t c = from[i];
    if (c < 0x80) {
      *to++ = static_cast<unsigned char>(c);
      continue;
    }
    if (c > 0x10ffff) return nullptr;
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = static_cast<unsigned char>((0xf0 << (3 - more) & 0xff) | c >> (6 * more));
    for (int k = more - 1; k >= 0; --k)
      *to++ = static_cast<unsigned char>(0x80 | (c >> (6 * k) & 0x3f));
  }
  return to;
}

}  // namespace ellipsum
