#include <pybind11/numpy.h>

#include "bindings.hpp"
#include "keys/key_table.hpp"
#include "numpy_view.hpp"

namespace py = pybind11;
using ellipsum::KeyTable;
using ellipsum::Strings;

static Strings strings_view(const py::array& data, const py::array& starts, const py::array& ends) {
  const std::size_t n = std::size_t(starts.size()), size = std::size_t(data.size());
  return {input_view<std::uint8_t>(data, size, "data"), size,
          input_view<std::int64_t>(starts, n, "starts"), input_view<std::int64_t>(ends, n, "ends"),
          n};
}

// `state` is (number of strings, seed).
static KeyTable table_view(py::array& slots, py::array& arena, py::array& ends,
                           const py::array& state) {
  const std::size_t slot_count = std::size_t(slots.size()), size = std::size_t(arena.size());
  const std::size_t capacity = std::size_t(ends.size()) - 1;
  const std::uint64_t* counted = input_view<std::uint64_t>(state, 2, "state");
  if (slot_count == 0 || slot_count & (slot_count - 1)) bad_view("slots");
  if (ends.size() == 0 || counted[0] > capacity) bad_view("table");
  std::int64_t* until = output_view<std::int64_t>(ends, capacity + 1, "ends");
  if (until[counted[0]] < 0 || std::uint64_t(until[counted[0]]) > size) bad_view("ends");
  return {output_view<std::uint64_t>(slots, slot_count, "slots"),
          slot_count,
          output_view<std::uint8_t>(arena, size, "arena"),
          size,
          until,
          capacity,
          std::size_t(counted[0]),
          counted[1]};
}

static std::size_t find_strings(const py::array& data, const py::array& starts,
                                const py::array& ends, py::array slots, py::array arena,
                                py::array known, py::array state, bool add, py::array places) {
  const Strings strings = strings_view(data, starts, ends);
  KeyTable table = table_view(slots, arena, known, state);
  std::int64_t* to = output_view<std::int64_t>(places, strings.n, "places");
  std::uint64_t* counted = output_view<std::uint64_t>(state, 2, "state");
  py::gil_scoped_release nogil;
  const std::size_t done = ellipsum::find_strings(strings, table, add, to);
  counted[0] = table.count;
  return done;
}

static void seat_strings(py::array slots, py::array arena, py::array known,
                         const py::array& state) {
  KeyTable table = table_view(slots, arena, known, state);
  py::gil_scoped_release nogil;
  ellipsum::seat_strings(table);
}

static void string_digests(const py::array& data, const py::array& starts, const py::array& ends,
                           const py::bytes& person, py::array out) {
  const Strings strings = strings_view(data, starts, ends);
  std::uint64_t* to = output_view<std::uint64_t>(out, 2 * strings.n, "out");
  const std::string_view given = person;
  std::uint64_t words[2] = {};
  if (given.size() > sizeof words) bad_view("person");
  std::memcpy(words, given.data(), given.size());
  py::gil_scoped_release nogil;
  ellipsum::string_digests(strings, words, to);
}

static void integer_digests(const py::array& words, bool is_signed, py::array out) {
  const std::size_t n = std::size_t(words.size());
  const std::uint64_t* from = input_view<std::uint64_t>(words, n, "words");
  std::uint64_t* to = output_view<std::uint64_t>(out, 2 * n, "out");
  py::gil_scoped_release nogil;
  ellipsum::integer_digests(from, n, is_signed, to);
}

void bind_keys(py::module_& m) {
  m.def("find_strings", &find_strings, py::arg("data"), py::arg("starts"), py::arg("ends"),
        py::arg("slots"), py::arg("arena"), py::arg("known"), py::arg("state"), py::arg("add"),
        py::arg("places"),
        "Write the place of each string in a table, -1 for none; return how many had room.");
  m.def("seat_strings", &seat_strings, py::arg("slots"), py::arg("arena"), py::arg("known"),
        py::arg("state"), "Put all strings of a table into its slots, which are zeros.");
  m.def("string_digests", &string_digests, py::arg("data"), py::arg("starts"), py::arg("ends"),
        py::arg("person"), py::arg("out"), "Write 128 bits of BLAKE2b of each string.");
  m.def("integer_digests", &integer_digests, py::arg("words"), py::arg("is_signed"), py::arg("out"),
        "Write 128 bits of each integer: one to one.");
}
