#include "keys/key_table.hpp"

#include "error.hpp"
#include "keys/blake2b.hpp"
#include "keys/key_lookup.hpp"

namespace ellipsum {

namespace {

lookup::Place string_at(const Strings& s, std::size_t i) {
  const std::int64_t start = s.start[i], end = s.end[i];
  if (start < 0 || end < start || std::uint64_t(end) > s.size) return {s.data, -1};
  return {s.data + start, end - start};
}

}  // namespace

std::size_t find_strings(const Strings& s, KeyTable& t, bool add, std::int64_t* places) {
  using namespace lookup;
  Place place[ahead];
  const auto read = [&](std::size_t i, std::size_t k) -> Wanted {
    const Place p = place[k] = string_at(s, i);
    return wanted_at(t, p, s.size - std::size_t(p.from - s.data));
  };
  const auto value_of = [&](const Wanted& w, std::size_t k) { return value_at(t, w, place[k]); };
  return find_all(t, s.n, add, places, read, value_of);
}

std::size_t find_integers(const std::uint64_t* words, std::size_t n, bool is_signed, KeyTable& t,
                          bool add, std::int64_t* places) {
  using namespace lookup;
  const auto read = [&](std::size_t i, std::size_t) -> Wanted {
    const std::uint64_t value = words[i];
    return {set_of(t, value, 0), value, 0, is_signed && value >> 63 ? negative : integer};
  };
  const auto value_of = [&](const Wanted& w, std::size_t) -> Value {
    std::uint64_t digest[2];
    integer_digests(&w.low, 1, w.what == negative, digest);
    const std::uint64_t hash = short_hash(digest[0], digest[1], sizeof digest, t.seed);
    return {hash, digest[0], digest[1], nullptr, sizeof digest};
  };
  return find_all(t, n, add, places, read, value_of);
}

void seat_strings(KeyTable& t) {
  using namespace lookup;
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
    const lookup::Place place = string_at(s, i);
    if (place.size < 0) continue;
    blake2b_128(place.from, std::size_t(place.size), person, out);
    out[1] |= 1;
  }
}

void integer_digests(const std::uint64_t* words, std::size_t n, bool is_signed,
                     std::uint64_t* out) {
  constexpr std::uint64_t minus = 0x9e3779b97f4a7c15, plus = 0xd1b54a32d192ed03;
  for (std::size_t i = 0; i < n; ++i) {
    out[2 * i] = lookup::mixed(words[i]);
    out[2 * i + 1] = lookup::mixed(out[2 * i] ^ (is_signed && words[i] >> 63 ? minus : plus)) | 1;
  }
}

}  // namespace ellipsum
