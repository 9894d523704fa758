#include "keys/utf8.hpp"

#include <cstring>

namespace ellipsum {
namespace {

constexpr std::uint32_t ascii = 0x80;

// The same in a byte each; whether all of them are ASCII.
bool narrowed(const std::uint32_t* words, std::size_t n, unsigned char* data) {
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t c = words[i];
    all |= c;
    data[i] = static_cast<unsigned char>(c);
  }
  return all < ascii;
}

}  // namespace

void trimmed_ends(const unsigned char* data, std::size_t n, std::size_t width, std::int64_t* ends) {
  constexpr std::size_t word = sizeof(std::uint64_t);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t end = (i + 1) * width;
    std::uint64_t last = 0;
    for (; end >= i * width + word; end -= word) {  // no branch for each zero
      std::memcpy(&last, data + end - word, word);
      if (last == 0) continue;
      end -= std::size_t(__builtin_clzll(last)) / 8;
      break;
    }
    while (last == 0 && end > i * width && data[end - 1] == 0) --end;
    ends[i] = std::int64_t(end);
  }
}

void wide_texts(const std::uint32_t* words, std::size_t n, std::size_t width, unsigned char* data,
                std::int64_t* starts, std::int64_t* ends) {
  if (narrowed(words, n * width, data)) {
    for (std::size_t i = 0; i < n; ++i) starts[i] = std::int64_t(i * width);
    trimmed_ends(data, n, width, ends);
    return;
  }
  unsigned char* to = data;
  for (std::size_t i = 0; i < n; ++i, words += width) {
    std::size_t size = width;
    while (size && words[size - 1] == 0) --size;
    unsigned char* const end = to_utf8(words, size, to);
    starts[i] = to - data;
    ends[i] = end ? end - data : -1;
    if (end) to = end;
  }
}

}  // namespace ellipsum
