#include "keys/key_table.hpp"

#include <cstring>

#include "error.hpp"
#include "keys/blake2b.hpp"

namespace ellipsum {
namespace {

constexpr std::size_t word = sizeof(std::uint64_t);
// Strings whose slots are asked for before the first is looked at.
constexpr std::size_t ahead = 32;
constexpr std::uint64_t place_mask = 0xffffffff;

// splitmix64: a bijection without visible structure.
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

inline std::uint64_t word_at(const unsigned char* from) {
  std::uint64_t w;
  std::memcpy(&w, from, word);
  return w;
}

// The last eight bytes, or all of a shorter string.
inline std::uint64_t last_word(const unsigned char* from, std::size_t size) {
  if (size >= word) return word_at(from + size - word);
  std::uint64_t w = 0;
  for (std::size_t i = 0; i < size; ++i) w |= std::uint64_t(from[i]) << (8 * i);
  return w;
}

std::uint64_t hashed(const unsigned char* from, std::size_t size, std::uint64_t seed) {
  std::uint64_t h = seed + size * 0xd1b54a32d192ed03;
  for (std::size_t i = 0; i + word < size; i += word) h = mixed(h ^ word_at(from + i));
  return mixed(h ^ last_word(from, size));
}

bool same(const unsigned char* a, const unsigned char* b, std::size_t size) {
  for (std::size_t i = 0; i + word < size; i += word)
    if (word_at(a + i) != word_at(b + i)) return false;
  return last_word(a, size) == last_word(b, size);
}

// A string, looked up once: the caller's memory may change. `size` is negative without a value.
struct Found {
  const unsigned char* from;
  std::int64_t size;
};

inline Found string_at(const Strings& s, std::size_t i) {
  const std::int64_t start = s.start[i], end = s.end[i];
  if (start < 0 || end < start || std::uint64_t(end) > s.size) return {s.data, -1};
  return {s.data + start, end - start};
}

// The slot of a string: the one that has it, or the empty one where it would be.
inline std::size_t slot_of(const KeyTable& t, const unsigned char* from, std::size_t size,
                           std::uint64_t hash) {
  const std::size_t mask = t.slot_count - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const std::uint64_t slot = t.slots[at];
    if (slot == 0) return at;
    if ((slot ^ hash) > place_mask) continue;
    const std::int64_t* ends = t.ends + (slot & place_mask) - 1;
    if (std::size_t(ends[1] - ends[0]) == size && same(t.arena + ends[0], from, size)) return at;
  }
}

inline std::uint64_t slot_value(std::uint64_t hash, std::size_t place) {
  return (hash & ~place_mask) | (place + 1);
}

// Whether a string more has room.
bool room(const KeyTable& t, std::size_t size) {
  return 2 * (t.count + 1) <= t.slot_count && t.count < t.capacity && t.count + 1 < place_mask &&
         size <= t.arena_size - std::size_t(t.ends[t.count]);
}

}  // namespace

std::size_t find_strings(const Strings& s, KeyTable& t, bool add, std::int64_t* places) {
  std::uint64_t hash[ahead];
  Found found[ahead];
  for (std::size_t i = 0; i < s.n; i += ahead) {
    const std::size_t part = s.n - i < ahead ? s.n - i : ahead;
    for (std::size_t k = 0; k < part; ++k) {
      found[k] = string_at(s, i + k);
      if (found[k].size < 0) continue;
      hash[k] = hashed(found[k].from, std::size_t(found[k].size), t.seed);
      __builtin_prefetch(t.slots + (hash[k] & (t.slot_count - 1)));
    }
    // What most slots lead to: where the string ends, then its first bytes.
    std::size_t likely[ahead];
    for (std::size_t k = 0; k < part; ++k) {
      const std::uint64_t slot = found[k].size < 0 ? 0 : t.slots[hash[k] & (t.slot_count - 1)];
      likely[k] = slot ? std::size_t(slot & place_mask) - 1 : 0;
      __builtin_prefetch(t.ends + likely[k]);
    }
    for (std::size_t k = 0; k < part; ++k) __builtin_prefetch(t.arena + t.ends[likely[k]]);
    for (std::size_t k = 0; k < part; ++k) {
      places[i + k] = -1;
      if (found[k].size < 0) continue;
      const std::size_t size = std::size_t(found[k].size);
      const std::size_t at = slot_of(t, found[k].from, size, hash[k]);
      if (t.slots[at] == 0) {
        if (!add) continue;
        if (!room(t, size)) return i + k;
        if (size) std::memcpy(t.arena + t.ends[t.count], found[k].from, size);
        t.ends[t.count + 1] = t.ends[t.count] + std::int64_t(size);
        t.slots[at] = slot_value(hash[k], t.count++);
      }
      places[i + k] = std::int64_t(t.slots[at] & place_mask) - 1;
    }
  }
  return s.n;
}

void seat_strings(KeyTable& t) {
  if (2 * t.count > t.slot_count) throw Exception(Error::invalid_argument, "internal: slots");
  const std::size_t mask = t.slot_count - 1;
  for (std::size_t i = 0; i < t.count; ++i) {
    const std::uint64_t hash =
        hashed(t.arena + t.ends[i], std::size_t(t.ends[i + 1] - t.ends[i]), t.seed);
    std::size_t at = hash & mask;
    while (t.slots[at]) at = (at + 1) & mask;
    t.slots[at] = slot_value(hash, i);
  }
}

void string_digests(const Strings& s, const std::uint64_t person[2], std::uint64_t* out) {
  for (std::size_t i = 0; i < s.n; ++i, out += 2) {
    out[0] = out[1] = 0;
    const Found found = string_at(s, i);
    if (found.size < 0) continue;
    blake2b_128(found.from, std::size_t(found.size), person, out);
    out[1] |= 1;
  }
}

void integer_digests(const std::uint64_t* words, std::size_t n, bool is_signed,
                     std::uint64_t* out) {
  constexpr std::uint64_t minus = 0x9e3779b97f4a7c15, plus = 0xd1b54a32d192ed03;
  for (std::size_t i = 0; i < n; ++i) {
    out[2 * i] = mixed(words[i]);
    out[2 * i + 1] = mixed(out[2 * i] ^ (is_signed && words[i] >> 63 ? minus : plus)) | 1;
  }
}

}  // namespace ellipsum
