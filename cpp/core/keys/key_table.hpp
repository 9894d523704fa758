// Values as strings of bytes, and a table of the distinct ones: open addressing, linear probing; and
// a cache of short ones, which is one cache line to look at in place of three.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ellipsum {

// n strings of bytes [start, end) of `data`; one that is not within it has no value.
struct Strings {
  const unsigned char* data;
  std::size_t size;
  const std::int64_t* start;
  const std::int64_t* end;
  std::size_t n;
};

// What was found last: a string of at most 16 bytes, whole (with zeros behind its end, and its
// length), or an integer. A set of two is a cache line; what finds its own full
// goes to the one beside it.
struct CacheEntry {
  std::uint64_t low, high;
  std::uint64_t what;  // length or sort of integer, and 1 + the place; 0 where nothing is
  std::uint64_t unused;
};

// The distinct strings so far, one after the other in `arena`, and where their hashes are.
struct KeyTable {
  std::uint64_t* slots;    // 0, or the hash's upper half and 1 + the string's place
  std::size_t slot_count;  // a power of two
  unsigned char* arena;
  std::size_t arena_size;
  std::int64_t* ends;  // in the arena; capacity + 1 of them, the first is 0
  std::size_t capacity;
  std::size_t count;
  std::uint64_t seed;      // secret, so that nobody can choose strings that collide
  CacheEntry* cache;       // of no table but this one
  std::size_t cache_sets;  // a power of two, or 0
};

// Places of strings in the table, -1 for none; with `add` a new one gets the next place. Returns
// how many were done: fewer than n where the table must have more room first (half of the slots,
// all ends, or the arena are in use).
std::size_t find_strings(const Strings& strings, KeyTable& table, bool add, std::int64_t* places);

// n strings of `width` bytes each, or texts of so many code points of four bytes, one after the other;
// the zeros that fill the width are not part of them. What is no code point is no text, and has no value.
template <class Unit> struct FixedStrings {
  const Unit* data;
  std::size_t n, width;
};

// The same of these; texts as UTF-8.
template <class Unit>
std::size_t find_fixed(const FixedStrings<Unit>& strings, KeyTable& table, bool add,
                       std::int64_t* places);
extern template std::size_t find_fixed(const FixedStrings<unsigned char>&, KeyTable&, bool,
                                       std::int64_t*);
extern template std::size_t find_fixed(const FixedStrings<std::uint32_t>&, KeyTable&, bool,
                                       std::int64_t*);

// The same of integers modulo 2^64 by what integer_digests makes of them, as strings of 16 bytes.
std::size_t find_integers(const std::uint64_t* words, std::size_t n, bool is_signed,
                          KeyTable& table, bool add, std::int64_t* places);

// Puts all strings of the table into its slots, which are zeros.
void seat_strings(KeyTable& table);

// 128 bits of each string, (0, 0) for one without a value, else never: BLAKE2b, last bit set.
void string_digests(const Strings& strings, const std::uint64_t person[2], std::uint64_t* out);

// 128 bits of each integer modulo 2^64, one to one; `is_signed`: of what the words say.
void integer_digests(const std::uint64_t* words, std::size_t n, bool is_signed, std::uint64_t* out);

}  // namespace ellipsum
