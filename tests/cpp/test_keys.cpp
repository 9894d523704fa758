// Keys against std::map, from memory that ends with the last of them: the sanitizers see a byte that is
// read behind it.
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "keys/key_table.hpp"
#include "keys/utf8.hpp"

namespace {

using namespace ellipsum;

int failures = 0;
void expect(bool holds, const char* what, std::size_t width) {
  if (holds) return;
  std::printf("FAILED: %s, width %zu\n", what, width);
  ++failures;
}

struct Random {
  std::uint64_t state;
  std::uint64_t operator()(std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  }
};

// A table with room, and a cache of so many sets.
struct Room {
  std::vector<std::uint64_t> slots = std::vector<std::uint64_t>(1 << 14);
  std::vector<unsigned char> arena = std::vector<unsigned char>(1 << 20);
  std::vector<std::int64_t> ends = std::vector<std::int64_t>((1 << 13) + 1);
  std::vector<CacheEntry> cache;
  KeyTable table;
  explicit Room(std::size_t sets) : cache(2 * sets) {
    table = {slots.data(),
             slots.size(),
             arena.data(),
             arena.size(),
             ends.data(),
             ends.size() - 1,
             0,
             0x123456789abcdef,
             cache.data(),
             sets};
  }
};

std::vector<std::int64_t> model(const std::vector<std::string>& keys) {
  std::map<std::string, std::int64_t> known;
  std::vector<std::int64_t> places;
  places.reserve(keys.size());
  for (const std::string& key : keys)
    places.push_back(known.emplace(key, std::int64_t(known.size())).first->second);
  return places;
}

template <class Unit> std::string as_utf8(const Unit* from, std::size_t width) {
  while (width && from[width - 1] == 0) --width;
  if (sizeof(Unit) == 1) return std::string(from, from + width);
  std::vector<unsigned char> to(4 * width + 1);
  unsigned char* const end = to_utf8(from, width, to.data());
  return std::string(to.data(), end);
}

// Memory that ends with the data.
template <class T> std::unique_ptr<T[]> exact(const std::vector<T>& from) {
  std::unique_ptr<T[]> to(new T[from.size()]);
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i];
  return to;
}

template <class Unit>
void test_fixed(std::size_t width, std::size_t sets, const std::vector<Unit>& letters) {
  Random random{width * 31 + sets};
  for (const std::size_t n : {std::size_t(1), std::size_t(5), std::size_t(33), std::size_t(700)}) {
    std::vector<Unit> drawn(n * width);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t size = random(width + 1), odd = random(3);
      for (std::size_t j = 0; j < size; ++j)
        drawn[i * width + j] = letters[random(odd ? 2 : letters.size())];
    }
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < n; ++i) keys.push_back(as_utf8(&drawn[i * width], width));
    const std::vector<std::int64_t> expected = model(keys);
    const auto data = exact(drawn);
    Room room(sets);
    std::vector<std::int64_t> places(n);
    for (const bool add : {true, false}) {
      const std::size_t done =
          find_fixed<Unit>({data.get(), n, width}, room.table, add, places.data());
      expect(done == n && places == expected, "strings of one width", width);
    }
    std::string joined;
    std::vector<std::int64_t> starts, ends;
    for (const std::string& key : keys) {
      starts.push_back(std::int64_t(joined.size()));
      joined += key;
      ends.push_back(std::int64_t(joined.size()));
    }
    const auto bytes = exact(std::vector<unsigned char>(joined.begin(), joined.end()));
    const Strings strings{bytes.get(), joined.size(), starts.data(), ends.data(), n};
    const std::size_t done = find_strings(strings, room.table, false, places.data());
    expect(done == n && places == expected, "the same, one after the other", width);
  }
}

}  // namespace

int main() {
  const std::vector<unsigned char> bytes{'a', 'b', 0, 255};
  const std::vector<std::uint32_t> texts{'a', 'b', 0, 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10ffff};
  for (std::size_t width = 1; width < 50; ++width) {
    for (const std::size_t sets : {0, 1, 16}) {
      test_fixed(width, sets, bytes);
      test_fixed(width, sets, texts);
    }
  }
  if (!failures) std::printf("keys: what std::map says, of 49 widths\n");
  return failures != 0;
}
