#include "keys/key_table.hpp"

#include <cstring>

#include "error.hpp"
#include "keys/blake2b.hpp"

namespace ellipsum {
namespace {

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

// n bytes to be looked up. Up to 16 of them are all in `first` and `last`, their first and last eight,
// and are read once; longer ones, if they change meanwhile, may get a place too many. `size` is negative without a value.
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

inline Place string_at(const Strings& s, std::size_t i) {
  const std::int64_t start = s.start[i], end = s.end[i];
  if (start < 0 || end < start || std::uint64_t(end) > s.size) return {s.data, -1};
  return {s.data + start, end - start};
}

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

// What the cache is asked for. `what`: 1 + the length of a short string, or a sort of integer; 0 of
// what is not held there.
struct Wanted {
  std::uint64_t set, first, last, what;
};

constexpr int what_shift = 32;
constexpr std::uint64_t integer = short_size + 2, negative = short_size + 3;
// Strings of the table for each entry of the cache up to which it is asked.
constexpr std::size_t most_of_an_entry = 1;

// A set of the cache. Who could choose values of one set would win what the cache saves.
inline std::uint64_t set_of(const KeyTable& t, std::uint64_t first, std::uint64_t last) {
  const Unsigned h = Unsigned(first * length_factor ^ last ^ t.seed) * set_factor;
  return std::uint64_t(h) ^ std::uint64_t(h >> 64);
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
    const std::uint64_t differs = (set[i].first ^ w.first) | (set[i].last ^ w.last) |
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
  set[0] = {w.first, w.last, w.what << what_shift | (std::uint64_t(place) + 1), 0};
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

}  // namespace

std::size_t find_strings(const Strings& s, KeyTable& t, bool add, std::int64_t* places) {
  Place place[ahead];
  const auto read = [&](std::size_t i, std::size_t k) -> Wanted {
    const Place p = place[k] = string_at(s, i);
    const std::size_t size = std::size_t(p.size);
    if (size > short_size) return {};
    const std::uint64_t last = last_word(p.from, size), first = size > word ? word_at(p.from) : 0;
    return {set_of(t, first, last), first, last, size + 1};
  };
  const auto value_of = [&](const Wanted& w, std::size_t k) -> Value {
    const Place p = place[k];
    if (p.size < 0) return {0, 0, 0, p.from, -1};
    const std::size_t size = std::size_t(p.size);
    if (w.what) return {short_hash(w.first, w.last, size, t.seed), w.first, w.last, p.from, p.size};
    return {hashed(p.from, size, t.seed), 0, 0, p.from, p.size};
  };
  return find_all(t, s.n, add, places, read, value_of);
}

std::size_t find_integers(const std::uint64_t* words, std::size_t n, bool is_signed, KeyTable& t,
                          bool add, std::int64_t* places) {
  const auto read = [&](std::size_t i, std::size_t) -> Wanted {
    const std::uint64_t value = words[i];
    return {set_of(t, value, 0), value, 0, is_signed && value >> 63 ? negative : integer};
  };
  const auto value_of = [&](const Wanted& w, std::size_t) -> Value {
    std::uint64_t digest[2];
    integer_digests(&w.first, 1, w.what == negative, digest);
    const std::uint64_t hash = short_hash(digest[0], digest[1], sizeof digest, t.seed);
    return {hash, digest[0], digest[1], nullptr, sizeof digest};
  };
  return find_all(t, n, add, places, read, value_of);
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
    const Place place = string_at(s, i);
    if (place.size < 0) continue;
    blake2b_128(place.from, std::size_t(place.size), person, out);
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
