#include "table_view.hpp"

#include <cstring>

#include "numpy_view.hpp"

namespace py = pybind11;
using ellipsum::Dtype;

namespace {

// Arrow's C data interface: what two libraries of one process hand each other.
struct ArrowSchema {
  const char *format, *name, *metadata;
  std::int64_t flags, n_children;
  ArrowSchema **children, *dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray **children, *dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

template <class T> const T& in_capsule(const py::object& capsule, const char* name) {
  const void* held = PyCapsule_GetPointer(capsule.ptr(), name);
  if (!held) throw py::error_already_set();
  return *static_cast<const T*>(held);
}

// Where an array may begin: beyond that no memory reaches.
bool is_place(std::int64_t offset) { return offset >= 0 && offset < std::int64_t{1} << 46; }

Dtype type_of(const ArrowSchema& column) {
  if (column.dictionary || std::strlen(column.format) != 1) bad_view("column");
  switch (column.format[0]) {
    case 'f':
      return Dtype::float32;
    case 'g':
      return Dtype::float64;
    case 'c':
      return Dtype::int8;
    case 's':
      return Dtype::int16;
    case 'i':
      return Dtype::int32;
    case 'l':
      return Dtype::int64;
    case 'C':
      return Dtype::uint8;
    case 'S':
      return Dtype::uint16;
    case 'I':
      return Dtype::uint32;
    case 'L':
      return Dtype::uint64;
    case 'b':
      return Dtype::bits;
    default:
      bad_view("column");
  }
}

}  // namespace

ColumnViews::ColumnViews(const py::object& block) {
  n_ = block.attr("n").cast<std::size_t>();
  if (py::hasattr(block, "c_array")) add_batch(block.attr("c_array")());
  else add_arrays(block);
}

void ColumnViews::add_arrays(const py::object& block) {
  const py::list columns = block.attr("columns"), valid = block.attr("valid");
  const py::list bits = block.attr("first_bits");
  if (columns.size() != valid.size() || columns.size() != bits.size()) bad_view("columns");
  columns_.reserve(columns.size());
  for (std::size_t j = 0; j < columns.size(); ++j) add_array(columns[j], valid[j], bits[j]);
}

void ColumnViews::add_array(const py::object& column, const py::object& valid,
                            const py::object& bit) {
  if (!py::isinstance<py::array>(column)) bad_view("column");
  const auto numbers = py::reinterpret_borrow<py::array>(column);
  if (numbers.ndim() != 1 || std::size_t(numbers.shape(0)) != n_) bad_view("column");
  const std::size_t first = bit.cast<std::size_t>();
  const std::uint8_t* bitmap = nullptr;
  if (!valid.is_none()) {
    using Bytes = py::array_t<std::uint8_t, py::array::c_style>;
    if (!py::isinstance<Bytes>(valid)) bad_view("valid");
    const auto bytes = py::reinterpret_borrow<py::array>(valid);
    if (std::size_t(bytes.size()) < (first + n_ + 7) / 8) bad_view("valid");
    bitmap = static_cast<const std::uint8_t*>(bytes.data());
  }
  constexpr int lies = py::detail::npy_api::NPY_ARRAY_ALIGNED_ | py::array::c_style;
  if ((numbers.flags() & lies) != lies) bad_view("column");
  columns_.push_back({numbers.data(), dtype_of(numbers, "column"), {bitmap, first}});
}

// The capsules say nothing of how far a buffer reaches: pyarrow has looked at that (rows/arrow.py).
void ColumnViews::add_batch(const py::tuple& capsules) {
  batch_ = capsules;
  const auto& schema = in_capsule<ArrowSchema>(capsules[0], "arrow_schema");
  const auto& batch = in_capsule<ArrowArray>(capsules[1], "arrow_array");
  if (std::strcmp(schema.format, "+s") || schema.n_children != batch.n_children ||
      std::size_t(batch.length) != n_ || (batch.null_count && batch.n_buffers && batch.buffers[0]))
    bad_view("batch");
  columns_.reserve(std::size_t(batch.n_children));
  for (std::int64_t j = 0; j < batch.n_children; ++j) {
    const ArrowArray& column = *batch.children[j];
    const Dtype type = type_of(*schema.children[j]);
    if (column.n_buffers != 2 || column.length < batch.offset + batch.length) bad_view("column");
    if (!is_place(column.offset) || !is_place(batch.offset))
      throw py::type_error(
          "data is not readable as Arrow data, it begins outside of its buffers: make it anew");
    const auto first = std::size_t(batch.offset + column.offset);
    const auto* bits = static_cast<const std::uint8_t*>(column.buffers[0]);
    if (!column.null_count) bits = nullptr;  // -1: nobody has counted them
    const ellipsum::Validity valid{bits, bits ? first : 0};
    columns_.push_back({numbers_at(column.buffers[1], type, first), type, valid});
  }
}

// Bits from the first one on, in whole bytes.
const void* ColumnViews::bits_at(const std::uint8_t* bits, std::size_t first) {
  bits += first / 8;
  const unsigned shift = first % 8;
  if (!shift || !n_) return bits;
  copies_.push_back(std::make_unique<double[]>(n_ / (8 * sizeof(double)) + 1));
  auto* to = reinterpret_cast<std::uint8_t*>(copies_.back().get());
  const std::size_t last = (shift + n_ - 1) / 8;  // byte of the last bit
  for (std::size_t k = 0; 8 * k < n_; ++k) {
    const unsigned above = k < last ? unsigned(bits[k + 1]) << (8 - shift) : 0;
    to[k] = std::uint8_t(bits[k] >> shift | above);
  }
  return to;
}

// A column's numbers, or truth values, from the first one on: copied where they begin within a byte, or
// at an odd address.
const void* ColumnViews::numbers_at(const void* buffer, Dtype type, std::size_t first) {
  const auto* bytes = static_cast<const char*>(buffer);
  if (type == Dtype::bits) return bits_at(static_cast<const std::uint8_t*>(buffer), first);
  const std::size_t size = ellipsum::size_of(type);
  const char* numbers = bytes + first * size;
  if (reinterpret_cast<std::uintptr_t>(numbers) % size == 0) return numbers;
  copies_.push_back(std::make_unique<double[]>(n_));
  return std::memcpy(copies_.back().get(), numbers, n_ * size);
}
