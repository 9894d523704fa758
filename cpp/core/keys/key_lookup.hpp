// How a value is found in a table of strings: for the sources that include it, each of which reads values
// of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "keys/key_table.hpp"

namespace ellipsum {
namespace lookup {

using Unsigned = unsigned __int128;

constexpr std::size_t word = sizeof(std::uint64_t);
// Strings whose slots are asked for before the first is looked at.
constexpr std::size_t ahead = 32;
constexpr std::uint64_t place_mask = 0xffffffff;
constexpr std::uint64_t length_factor = 0xd1b54a32d192ed03, set_factor = 0x9e3779b97f4a7c15;

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

inline std::uint64_t half_at(const unsigned char* from) {
  std::uint32_t w;
  std::memcpy(&w, from, sizeof w);
  return w;
}

// The last eight bytes, or all of a shorter string: in parts that may overlap.
inline std::uint64_t last_word(const unsigned char* from, std::size_t size) {
  if (size >= word) return word_at(from + size - word);
  if (size >= word / 2) return half_at(from) | half_at(from + size - 4) << (8 * (size - 4));
  if (size == 0) return 0;
  const std::size_t middle = size / 2;
  return from[0] | std::uint64_t(from[middle]) << (8 * middle) |
         std::uint64_t(from[size - 1]) << (8 * (size - 1));
}

inline std::uint64_t hashed(const unsigned char* from, std::size_t size, std::uint64_t seed) {
  std::uint64_t h = seed + size * length_factor;
  for (std::size_t i = 0; i + word < size; i += word) h = mixed(h ^ word_at(from + i));
  return mixed(h ^ last_word(from, size));
}

inline bool same(const unsigned char* a, const unsigned char* b, std::size_t size) {
  for (std::size_t i = 0; i + word < size; i += word)
    if (word_at(a + i) != word_at(b + i)) return false;
  return last_word(a, size) == last_word(b, size);
}

// n bytes to be looked up. Up to 16 of them are all in `first` and `last`, their first and last eight (up
// to eight in `last`), and were read once; longer ones, if they change meanwhile, may get a place too
// many. `size` is negative without a value.
struct Value {
  std::uint64_t hash, first, last;
  const unsigned char* from;
  std::int64_t size;
};

constexpr std::size_t short_size = 2 * word;

inline std::uint64_t short_hash(std::uint64_t first, std::uint64_t last, std::size_t size,
                                std::uint64_t seed) {
  std::uint64_t h = seed + size * length_factor;
  if (size > word) h = mixed(h ^ first);
  return mixed(h ^ last);
}

// Where a string is; its size is negative without a value.
struct Place {
  const unsigned char* from;
  std::int64_t size;
};

inline bool is_at(const unsigned char* at, const Value& v) {
  const std::size_t size = std::size_t(v.size);
  if (size > short_size) return same(at, v.from, size);
  return (size <= word || word_at(at) == v.first) && last_word(at, size) == v.last;
}

// The slot of a string: the one that has it, or the empty one where it would be.
inline std::size_t slot_of(const KeyTable& t, const Value& v) {
  const std::size_t mask = t.slot_count - 1;
  for (std::size_t at = v.hash & mask;; at = (at + 1) & mask) {
    const std::uint64_t slot = t.slots[at];
    if (slot == 0) return at;
    if ((slot ^ v.hash) > place_mask) continue;
    const std::int64_t* ends = t.ends + (slot & place_mask) - 1;
    if (ends[1] - ends[0] == v.size && is_at(t.arena + ends[0], v)) return at;
  }
}

inline std::uint64_t slot_value(std::uint64_t hash, std::size_t place) {
  return (hash & ~place_mask) | (place + 1);
}

// Whether a string more has room.
inline bool room(const KeyTable& t, std::size_t size) {
  return 2 * (t.count + 1) <= t.slot_count && t.count < t.capacity && t.count + 1 < place_mask &&
         size <= t.arena_size - std::size_t(t.ends[t.count]);
}

inline void append(KeyTable& t, const Value& v) {
  unsigned char* to = t.arena + t.ends[t.count];
  const std::size_t size = std::size_t(v.size);
  if (size > short_size) {
    std::memcpy(to, v.from, size);
  } else if (size > word) {
    std::memcpy(to, &v.first, word);
    std::memcpy(to + size - word, &v.last, word);
  } else if (size) {
    std::memcpy(to, &v.last, size);
  }
  t.ends[t.count + 1] = t.ends[t.count] + v.size;
}

// The place of a string; -1 where it has none, and -2 where it would be new without room.
inline std::int64_t place_of(KeyTable& t, const Value& v, bool add) {
  if (v.size < 0) return -1;
  const std::size_t at = slot_of(t, v);
  if (t.slots[at] == 0) {
    if (!add) return -1;
    if (!room(t, std::size_t(v.size))) return -2;
    append(t, v);
    t.slots[at] = slot_value(v.hash, t.count++);
  }
  return std::int64_t(t.slots[at] & place_mask) - 1;
}

// What the cache is asked for: the first and the second eight bytes, zeros behind the end. `what`: 1 + the length of a short string, or a sort of integer; 0 of
// what is not held there.
struct Wanted {
  std::uint64_t set, low, high, what;
};

constexpr int what_shift = 32;
constexpr std::uint64_t integer = short_size + 2, negative = short_size + 3;
// Strings of the table for each entry of the cache up to which it is asked.
constexpr std::size_t most_of_an_entry = 1;

// A set of the cache. Who could choose values of one set would win what the cache saves.
inline std::uint64_t set_of(const KeyTable& t, std::uint64_t low, std::uint64_t high) {
  const Unsigned h = Unsigned(low * length_factor ^ high ^ t.seed) * set_factor;
  return std::uint64_t(h) ^ std::uint64_t(h >> 64);
}

// A short string of two words, zeros behind its end.
inline Wanted wanted_short(const KeyTable& t, std::uint64_t low, std::uint64_t high,
                           std::size_t size) {
  return {set_of(t, low, high), low, high, size + 1};
}

// Sixteen bytes from the place short_size - n on keep the first n.
inline constexpr unsigned char first_bytes[2 * short_size] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

// A string where it is; `readable` bytes are there from its start on. Longer ones are in no cache. No
// branch tells on which side of eight its length is: it would be guessed wrong half of the time.
inline Wanted wanted_at(const KeyTable& t, const Place& p, std::size_t readable) {
  const std::size_t size = std::size_t(p.size);
  if (size > short_size) return {};
  if (readable < short_size) {
    std::uint64_t words[2] = {};
    std::memcpy(words, p.from, size);
    return wanted_short(t, words[0], words[1], size);
  }
  const unsigned char* keep = first_bytes + short_size - size;
  return wanted_short(t, word_at(p.from) & word_at(keep),
                      word_at(p.from + word) & word_at(keep + word), size);
}

// The value of what was wanted, where it is.
inline Value value_at(const KeyTable& t, const Wanted& w, const Place& p) {
  if (w.what) {
    const std::size_t size = std::size_t(w.what - 1), beyond = size > word ? size - word : 0;
    const auto last = std::uint64_t((Unsigned(w.high) << 64 | w.low) >> (8 * beyond));
    // from where: nothing is read there of a short one
    return {short_hash(w.low, last, size, t.seed), w.low, last, t.arena, std::int64_t(size)};
  }
  if (p.size < 0) return {0, 0, 0, p.from, -1};
  return {hashed(p.from, std::size_t(p.size), t.seed), 0, 0, p.from, p.size};
}

inline CacheEntry* cache_set(const KeyTable& t, std::uint64_t set) {
  return t.cache + 2 * (set & (t.cache_sets - 1));
}
// Where values of a set go that is full: the line beside it.
inline CacheEntry* next_set(const KeyTable& t, const Wanted& w) { return cache_set(t, w.set ^ 1); }

// 1 + the place of what is in a set, 0 where it is not; no branch tells in which of the two.
inline std::uint64_t cached(const CacheEntry* set, const Wanted& w) {
  std::uint64_t found = 0;
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t differs = (set[i].low ^ w.low) | (set[i].high ^ w.high) |
                                  ((set[i].what ^ w.what << what_shift) & ~place_mask);
    found |= differs == 0 ? set[i].what & place_mask : 0;
  }
  return found;
}

// The newest comes first; an entry is never emptied, so that the last of a full set is in use.
inline bool is_full(const CacheEntry* set) { return set[1].what != 0; }

inline void keep(const KeyTable& t, const Wanted& w, std::int64_t place) {
  CacheEntry *own = cache_set(t, w.set), *next = next_set(t, w);
  CacheEntry* set = is_full(own) && !is_full(next) ? next : own;
  set[1] = set[0];
  set[0] = {w.low, w.high, w.what << what_shift | (std::uint64_t(place) + 1), 0};
}

// Asks for what most slots lead to: where the string ends, then its first bytes.
inline void fetch_likely(const KeyTable& t, const Value* values, std::size_t n) {
  std::size_t likely[ahead];
  for (std::size_t k = 0; k < n; ++k) {
    const std::uint64_t slot = t.slots[values[k].hash & (t.slot_count - 1)];
    likely[k] = slot ? std::size_t(slot & place_mask) - 1 : 0;
    __builtin_prefetch(t.ends + likely[k]);
  }
  for (std::size_t k = 0; k < n; ++k) __builtin_prefetch(t.arena + t.ends[likely[k]]);
}

// Whether the cache is worth a look: most strings are short, and it has room for many of them.
inline bool caching(const KeyTable& t) {
  return t.cache_sets && t.count <= 2 * most_of_an_entry * t.cache_sets &&
         std::size_t(t.ends[t.count]) <= short_size * t.count;
}

// Of those that their own sets do not have, the ones that those beside have not either; a place that
// was found is written.
inline std::size_t not_beside(const KeyTable& t, const Wanted* wanted, std::size_t* missed,
                              std::size_t misses, std::int64_t* places) {
  std::size_t left = 0;
  for (std::size_t m = 0; m < misses; ++m) {
    const std::size_t k = missed[m];
    const bool may = wanted[k].what && is_full(cache_set(t, wanted[k].set));
    const std::uint64_t found = may ? cached(next_set(t, wanted[k]), wanted[k]) : 0;
    places[k] = std::int64_t(found) - 1;
    missed[left] = k;
    left += found == 0;
  }
  return left;
}

// `read(i, k)`: the i-th value, k-th of its block, for the cache; `value_of(wanted, k)`: the same
// for the table.
template <class Read, class ValueOf>
inline std::size_t find_all(KeyTable& t, std::size_t n, bool add, std::int64_t* places,
                            const Read& read, const ValueOf& value_of) {
  Wanted wanted[ahead];
  Value values[ahead];
  std::size_t missed[ahead];
  for (std::size_t i = 0; i < n; i += ahead) {
    const std::size_t part = n - i < ahead ? n - i : ahead;
    const bool asked = caching(t);
    std::size_t misses = 0;
    for (std::size_t k = 0; k < part; ++k) {
      wanted[k] = read(i + k, k);
      missed[k] = k;
      if (asked) __builtin_prefetch(cache_set(t, wanted[k].set));
    }
    for (std::size_t k = 0; asked && k < part; ++k) {
      const std::uint64_t found =
          wanted[k].what ? cached(cache_set(t, wanted[k].set), wanted[k]) : 0;
      places[i + k] = std::int64_t(found) - 1;
      missed[misses] = k;
      misses += found == 0;
    }
    if (!asked) misses = part;
    else if (misses) misses = not_beside(t, wanted, missed, misses, places + i);
    for (std::size_t m = 0; m < misses; ++m) {
      values[m] = value_of(wanted[missed[m]], missed[m]);
      __builtin_prefetch(t.slots + (values[m].hash & (t.slot_count - 1)));
    }
    if (misses) fetch_likely(t, values, misses);
    for (std::size_t m = 0; m < misses; ++m) {
      const std::size_t k = missed[m];
      const std::int64_t place = place_of(t, values[m], add);
      if (place < -1) return i + k;
      places[i + k] = place;
      if (place >= 0 && asked && wanted[k].what) keep(t, wanted[k], place);
    }
  }
  return n;
}

}  // namespace lookup
}  // namespace ellipsum
