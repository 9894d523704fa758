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

// Texts of `width` code points, zeros at the end of which are not part of them: `data` has room for
// 4 n width bytes. One that is no text has the end -1.
void wide_texts(const std::uint32_t* words, std::size_t n, std::size_t width, unsigned char* data,
                std::int64_t* starts, std::int64_t* ends);

// Ends of n stretches of `width` bytes each, without the zeros at their ends.
void trimmed_ends(const unsigned char* data, std::size_t n, std::size_t width, std::int64_t* ends);

}  // namespace ellipsum
