#include <pybind11/numpy.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "bindings.hpp"
#include "keys/key_table.hpp"
#include "keys/utf8.hpp"
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

// `state` is (number of strings, seed); `cache` has eight words a set, or none.
static KeyTable table_view(py::array& slots, py::array& arena, py::array& ends,
                           const py::array& state, py::array* cache = nullptr) {
  const std::size_t cached = cache ? std::size_t(cache->size()) : 0;
  constexpr std::size_t set_words = 2 * sizeof(ellipsum::CacheEntry) / sizeof(std::uint64_t);
  if (cached % set_words || cached & (cached - 1)) bad_view("cache");
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
          counted[1],
          cached ? reinterpret_cast<ellipsum::CacheEntry*>(
                       output_view<std::uint64_t>(*cache, cached, "cache"))
                 : nullptr,
          cached / set_words};
}

static std::size_t find_strings(const py::array& data, const py::array& starts,
                                const py::array& ends, py::array slots, py::array arena,
                                py::array known, py::array state, py::array cache, bool add,
                                py::array places) {
  const Strings strings = strings_view(data, starts, ends);
  KeyTable table = table_view(slots, arena, known, state, &cache);
  std::int64_t* to = output_view<std::int64_t>(places, strings.n, "places");
  std::uint64_t* counted = output_view<std::uint64_t>(state, 2, "state");
  py::gil_scoped_release nogil;
  const std::size_t done = ellipsum::find_strings(strings, table, add, to);
  counted[0] = table.count;
  return done;
}

static std::size_t find_integers(const py::array& words, bool is_signed, py::array slots,
                                 py::array arena, py::array known, py::array state, py::array cache,
                                 bool add, py::array places) {
  const std::size_t n = std::size_t(words.size());
  const std::uint64_t* from = input_view<std::uint64_t>(words, n, "words");
  KeyTable table = table_view(slots, arena, known, state, &cache);
  std::int64_t* to = output_view<std::int64_t>(places, n, "places");
  std::uint64_t* counted = output_view<std::uint64_t>(state, 2, "state");
  py::gil_scoped_release nogil;
  const std::size_t done = ellipsum::find_integers(from, n, is_signed, table, add, to);
  counted[0] = table.count;
  return done;
}

// `units`: texts by their code points, or bytes.
static std::size_t find_fixed(const py::array& units, std::size_t width, py::array slots,
                              py::array arena, py::array known, py::array state, py::array cache,
                              bool add, py::array places) {
  const std::size_t size = std::size_t(units.size());
  if (width == 0 || size % width) bad_view("units");
  KeyTable table = table_view(slots, arena, known, state, &cache);
  std::int64_t* to = output_view<std::int64_t>(places, size / width, "places");
  std::uint64_t* counted = output_view<std::uint64_t>(state, 2, "state");
  const auto found = [&](const auto* from) {
    py::gil_scoped_release nogil;
    const ellipsum::FixedStrings<std::decay_t<decltype(*from)>> strings{from, size / width, width};
    return ellipsum::find_fixed(strings, table, add, to);
  };
  const std::size_t done = units.itemsize() == 1
                               ? found(input_view<std::uint8_t>(units, size, "units"))
                               : found(input_view<std::uint32_t>(units, size, "units"));
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

namespace {

// Bytes that grow, in an array of NumPy's, which asks for huge pages: of many megabytes the pages
// would take half of the time.
struct Buffer {
  py::array_t<std::uint8_t> bytes;
  unsigned char* data = nullptr;
  std::size_t size = 0, room = 0;
  unsigned char* for_more(std::size_t more) {
    if (size + more > room) {
      const std::size_t wanted = 2 * (size + more) + 4096;
      py::array_t<std::uint8_t> longer{py::ssize_t(wanted)};
      unsigned char* const to = longer.mutable_data();
      if (size) std::memcpy(to, data, size);
      bytes = std::move(longer), data = to, room = wanted;
    }
    return data + size;
  }
};

// Appends a str as UTF-8; false for what has none of Python's three ways to hold it.
bool append_text(PyObject* text, Buffer& to) {
#if PY_VERSION_HEX < 0x030c0000
  if (!PyUnicode_IS_READY(text)) return false;
#endif
  const std::size_t n = std::size_t(PyUnicode_GET_LENGTH(text));
  const void* from = PyUnicode_DATA(text);
  const std::size_t unit = std::size_t(PyUnicode_KIND(text));
  if (PyUnicode_IS_ASCII(text)) {
    if (n) std::memcpy(to.for_more(n), from, n);
    to.size += n;
    return true;
  }
  unsigned char* start = to.for_more(n * ellipsum::utf8_most(unit));
  unsigned char* end = unit == 1   ? ellipsum::to_utf8(static_cast<const Py_UCS1*>(from), n, start)
                       : unit == 2 ? ellipsum::to_utf8(static_cast<const Py_UCS2*>(from), n, start)
                                   : ellipsum::to_utf8(static_cast<const Py_UCS4*>(from), n, start);
  if (!end) return false;
  to.size += std::size_t(end - start);
  return true;
}

// The cells of a list, a tuple, or a contiguous array of objects.
PyObject* const* cells_view(const py::object& cells, std::size_t n) {
  if (PyList_Check(cells.ptr()) || PyTuple_Check(cells.ptr())) {
    if (std::size_t(PySequence_Fast_GET_SIZE(cells.ptr())) != n) bad_view("cells");
    return PySequence_Fast_ITEMS(cells.ptr());
  }
  if (!py::isinstance<py::array>(cells)) bad_view("cells");
  const auto array = py::reinterpret_borrow<py::array>(cells);
  if (array.dtype().kind() != 'O' || std::size_t(array.size()) != n ||
      !(array.flags() & py::array::c_style))
    bad_view("cells");
  return static_cast<PyObject* const*>(array.data());
}

}  // namespace

// No code of a cell is run.
static py::object python_texts(const py::object& cells, py::array starts, py::array ends) {
  const std::size_t n = std::size_t(starts.size());
  std::int64_t* first = output_view<std::int64_t>(starts, n, "starts");
  std::int64_t* last = output_view<std::int64_t>(ends, n, "ends");
  PyObject* const* from = cells_view(cells, n);
  constexpr std::size_t ahead = 16;
  Buffer text;
  text.for_more(8 * n);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ahead < n) {  // the head, and the text behind it
      __builtin_prefetch(from[i + ahead]);
      __builtin_prefetch(reinterpret_cast<const void*>(std::uintptr_t(from[i + ahead]) + 48));
    }
    first[i] = std::int64_t(text.size);
    last[i] = -1;
    if (from[i] == nullptr || from[i] == Py_None) continue;
    if (!PyUnicode_Check(from[i]) || !append_text(from[i], text)) return py::none();
    last[i] = std::int64_t(text.size);
  }
  return text.bytes[py::slice(0, py::ssize_t(text.size), 1)];
}

void bind_keys(py::module_& m) {
  m.def("find_strings", &find_strings, py::arg("data"), py::arg("starts"), py::arg("ends"),
        py::arg("slots"), py::arg("arena"), py::arg("known"), py::arg("state"), py::arg("cache"),
        py::arg("add"), py::arg("places"),
        "Write the place of each string in a table, -1 for none; return how many had room.");
  m.def("find_integers", &find_integers, py::arg("words"), py::arg("is_signed"), py::arg("slots"),
        py::arg("arena"), py::arg("known"), py::arg("state"), py::arg("cache"), py::arg("add"),
        py::arg("places"), "The same of integers, whose strings are their digests.");
  m.def("find_fixed", &find_fixed, py::arg("units"), py::arg("width"), py::arg("slots"),
        py::arg("arena"), py::arg("known"), py::arg("state"), py::arg("cache"), py::arg("add"),
        py::arg("places"),
        "The same of strings of so many bytes, or code points, which zeros fill.");
  m.def(
      "python_texts", &python_texts, py::arg("cells"), py::arg("starts"), py::arg("ends"),
      "UTF-8 of Python's texts, with their starts and ends, -1 for None; None with another cell.");
  m.def("seat_strings", &seat_strings, py::arg("slots"), py::arg("arena"), py::arg("known"),
        py::arg("state"), "Put all strings of a table into its slots, which are zeros.");
  m.def("string_digests", &string_digests, py::arg("data"), py::arg("starts"), py::arg("ends"),
        py::arg("person"), py::arg("out"), "Write 128 bits of BLAKE2b of each string.");
  m.def("integer_digests", &integer_digests, py::arg("words"), py::arg("is_signed"), py::arg("out"),
        "Write 128 bits of each integer: one to one.");
}
