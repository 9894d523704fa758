#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <memory>

#include "keys/key_lookup.hpp"
#include "keys/utf8.hpp"

namespace ellipsum {
namespace lookup {

constexpr std::size_t narrow = short_size;  // units that are read at once
constexpr std::uint32_t ascii = 0x80;
// Long ones are asked for so many units before they are read: 6 KiB of text, three blocks of short keys.
constexpr std::size_t far_ahead = 1536;

// Sixteen units of which some are kept, as bytes, and zeros behind; how many there are without the zeros
// at their end. False where one is not ASCII and units are wider than bytes.
#if defined(__SSE2__)
inline __m128i sixteen(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

inline std::size_t size_of(const unsigned char* bytes) {
  const int zeros = _mm_movemask_epi8(_mm_cmpeq_epi8(sixteen(bytes), _mm_setzero_si128()));
  return 31 - std::size_t(__builtin_clz((unsigned(zeros) ^ 0xffff) << 1 | 1));
}

inline bool narrowed(const std::uint32_t* from, const std::uint32_t* keep, unsigned char* to) {
  __m128i x[4];
  for (int i = 0; i < 4; ++i) x[i] = _mm_and_si128(sixteen(from + 4 * i), sixteen(keep + 4 * i));
  const __m128i all = _mm_or_si128(_mm_or_si128(x[0], x[1]), _mm_or_si128(x[2], x[3]));
  const __m128i wide = _mm_andnot_si128(_mm_set1_epi32(int(ascii - 1)), all);
  const __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(x[0], x[1]), _mm_packs_epi32(x[2], x[3]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  return _mm_movemask_epi8(_mm_cmpeq_epi32(wide, _mm_setzero_si128())) == 0xffff;
}
#else
inline std::size_t size_of(const unsigned char* bytes) {
  const std::uint64_t low = word_at(bytes), high = word_at(bytes + word);
  const std::uint64_t top = high ? high : low;
  const std::size_t size = (71 - std::size_t(__builtin_clzll(top | 1))) / 8;
  return top ? size + (high ? word : 0) : 0;
}

inline bool narrowed(const std::uint32_t* from, const std::uint32_t* keep, unsigned char* to) {
  std::uint32_t all = 0;
  for (std::size_t j = 0; j < narrow; ++j) {
    const std::uint32_t unit = from[j] & keep[j];
    all |= unit;
    to[j] = static_cast<unsigned char>(unit);
  }
  return all < ascii;
}
#endif

inline bool narrowed(const unsigned char* from, const unsigned char* keep, unsigned char* to) {
  for (std::size_t j = 0; j < narrow; ++j) to[j] = from[j] & keep[j];
  return true;
}

// The bytes up to the last that is not zero; no branch for each of them.
inline std::size_t trimmed(const void* data, std::size_t size) {
  const unsigned char* from = static_cast<const unsigned char*>(data);
  while (size >= word) {
    const std::uint64_t last = word_at(from + size - word);
    if (last) return size - std::size_t(__builtin_clzll(last)) / 8;
    size -= word;
  }
  while (size && from[size - 1] == 0) --size;
  return size;
}

// Reads strings of one width. Texts that are not read at once are written as UTF-8, beside the others of
// their block. What counts of a short string was read once, whoever changes it meanwhile; where its zeros
// begin is told by what was read.
template <class Unit> class FixedReader {
 public:
  FixedReader(const FixedStrings<Unit>& s, const KeyTable& t) : s_(s), t_(t) {
    for (std::size_t j = 0; j < narrow; ++j) kept_[j] = j < s.width ? Unit(~Unit(0)) : Unit(0);
    const std::size_t beyond = (narrow + s.width - 1) / s.width;
    whole_ = s.n > beyond ? s.n - beyond : 0;
    if (sizeof(Unit) > 1) text_.reset(new unsigned char[std::min(s.n, ahead) * room()]);
  }

  Wanted wanted(std::size_t i, std::size_t k) {
    const Unit* from = s_.data + i * s_.width;
    if (s_.width > narrow) return long_one(from, k);
    if (i >= whole_) {
      for (std::size_t j = 0; j < s_.width; ++j) last_[j] = from[j];
      from = last_;
    }
    __builtin_prefetch(from + 3 * ahead * s_.width);  // hardware loses the thread between blocks
    unsigned char bytes[narrow];
    if (!narrowed(from, kept_, bytes)) return long_one(from, k);
    return wanted_short(t_, word_at(bytes), word_at(bytes + word), size_of(bytes));
  }

  Value value(const Wanted& w, std::size_t k) const { return value_at(t_, w, place_[k]); }

 private:
  std::size_t room() const { return utf8_most(sizeof(Unit)) * s_.width + short_size; }

  Wanted long_one(const Unit* from, std::size_t k) {
    const std::size_t size = trimmed(from, s_.width * sizeof(Unit));
    if constexpr (sizeof(Unit) == 1) {
      place_[k] = {from, std::int64_t(size)};
      if (size > short_size) return {};
      unsigned char bytes[narrow];
      for (std::size_t j = 0; j < narrow; ++j) bytes[j] = from[j] & first_bytes[narrow - size + j];
      return wanted_short(t_, word_at(bytes), word_at(bytes + word), size_of(bytes));
    } else {
      unsigned char* to = text_.get() + k * room();
      return written(to, as_text(from, (size + sizeof(Unit) - 1) / sizeof(Unit), to), k);
    }
  }

  // Where the text of so many units ends; nullptr for what is none.
  const unsigned char* as_text(const Unit* from, std::size_t units, unsigned char* to) const {
    return s_.width > narrow && units > narrow && all_narrowed(from, units, to)
               ? to + units
               : to_utf8(from, units, to);
  }

  Wanted written(unsigned char* to, const unsigned char* end, std::size_t k) {
    place_[k] = {to, end ? std::int64_t(trimmed(to, std::size_t(end - to))) : -1};
    const std::size_t size = std::size_t(place_[k].size);
    if (size > short_size) return {};
    std::memset(to + size, 0, short_size);
    return wanted_short(t_, word_at(to), word_at(to + word), size);
  }

  // More than sixteen units, sixteen at a time; the last of them lie over others.
  bool all_narrowed(const Unit* from, std::size_t units, unsigned char* to) const {
    const std::size_t last = units - narrow;
    bool fits = true;
    for (std::size_t j = 0; j < last; j += narrow) {
      __builtin_prefetch(from + j + far_ahead);
      fits &= narrowed(from + j, kept_, to + j);
    }
    return fits & narrowed(from + last, kept_, to + last);
  }

  const FixedStrings<Unit> s_;
  const KeyTable& t_;
  Unit kept_[narrow], last_[narrow] = {};
  std::size_t whole_;  // from the others sixteen units would be too many
  Place place_[ahead];
  std::unique_ptr<unsigned char[]> text_;
};

}  // namespace lookup

template <class Unit>
std::size_t find_fixed(const FixedStrings<Unit>& s, KeyTable& t, bool add, std::int64_t* places) {
  lookup::FixedReader<Unit> reader(s, t);
  const auto read = [&](std::size_t i, std::size_t k) { return reader.wanted(i, k); };
  const auto value_of = [&](const lookup::Wanted& w, std::size_t k) { return reader.value(w, k); };
  return lookup::find_all(t, s.n, add, places, read, value_of);
}

template std::size_t find_fixed(const FixedStrings<unsigned char>&, KeyTable&, bool, std::int64_t*);
template std::size_t find_fixed(const FixedStrings<std::uint32_t>&, KeyTable&, bool, std::int64_t*);

}  // namespace ellipsum
