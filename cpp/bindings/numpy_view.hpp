// The only bridge between NumPy arrays and the core's views: check, then view.
#pragma once
#include <pybind11/numpy.h>

#include <cstdint>
#include <string>
#include <vector>

#include "batch.hpp"
#include "clip/table.hpp"
#include "error.hpp"

// The Python layer has checked what a user gave; these checks guard memory only, so a
// failing one is a bug in ellipsum and says so.
[[noreturn]] inline void bad_view(const char* what) {
  throw ellipsum::Exception(ellipsum::Error::invalid_argument, std::string("internal: ") + what);
}

// Native floats of 32 or 64 bits.
inline bool is_float(const pybind11::array& a) {
  return pybind11::isinstance<pybind11::array_t<double>>(a) ||
         pybind11::isinstance<pybind11::array_t<float>>(a);
}

// The same, where such lie.
inline bool is_ready(const pybind11::array& a) {
  return is_float(a) && (a.flags() & pybind11::detail::npy_api::NPY_ARRAY_ALIGNED_);
}

inline ellipsum::Dtype dtype_of(const pybind11::array& a) {
  return a.itemsize() == 4 ? ellipsum::Dtype::float32 : ellipsum::Dtype::float64;
}

inline ellipsum::Batch batch_view(const pybind11::array& rows) {
  if (rows.ndim() != 2) bad_view("rows must have two dimensions");
  if (!is_float(rows)) bad_view("rows must be float32 or float64");
  return {rows.data(),     dtype_of(rows), std::size_t(rows.shape(0)), std::size_t(rows.shape(1)),
          rows.strides(0), rows.strides(1)};
}

// The columns of a ColumnBlock: arrays that it keeps alive, each with a bitmap or without.
class ColumnViews {
 public:
  explicit ColumnViews(const pybind11::object& block) {
    const pybind11::list columns = block.attr("columns"), valid = block.attr("valid");
    const pybind11::list bits = block.attr("first_bits");
    n_ = block.attr("n").cast<std::size_t>();
    if (columns.size() != valid.size() || columns.size() != bits.size()) bad_view("columns");
    columns_.reserve(columns.size());
    for (std::size_t j = 0; j < columns.size(); ++j) add(columns[j], valid[j], bits[j]);
  }
  ellipsum::Table table() const { return {columns_.data(), n_, columns_.size()}; }

 private:
  void add(const pybind11::object& column, const pybind11::object& valid,
           const pybind11::object& bit) {
    if (!pybind11::isinstance<pybind11::array>(column)) bad_view("column");
    const auto numbers = pybind11::reinterpret_borrow<pybind11::array>(column);
    if (numbers.ndim() != 1 || std::size_t(numbers.shape(0)) != n_ || !is_ready(numbers) ||
        !(numbers.flags() & pybind11::array::c_style))
      bad_view("column");
    const std::size_t first = bit.cast<std::size_t>();
    const std::uint8_t* bitmap = nullptr;
    if (!valid.is_none()) {
      using Bytes = pybind11::array_t<std::uint8_t, pybind11::array::c_style>;
      if (!pybind11::isinstance<Bytes>(valid)) bad_view("valid");
      const auto bytes = pybind11::reinterpret_borrow<pybind11::array>(valid);
      if (std::size_t(bytes.size()) < (first + n_ + 7) / 8) bad_view("valid");
      bitmap = static_cast<const std::uint8_t*>(bytes.data());
    }
    columns_.push_back({numbers.data(), dtype_of(numbers), {bitmap, first}});
  }
  std::size_t n_ = 0;
  std::vector<ellipsum::Column> columns_;
};

// A contiguous, aligned array of exactly `size` elements of type T.
template <class T>
const T* input_view(const pybind11::array& a, std::size_t size, const char* what) {
  if (!pybind11::isinstance<pybind11::array_t<T, pybind11::array::c_style>>(a) ||
      std::size_t(a.size()) != size || reinterpret_cast<std::uintptr_t>(a.data()) % alignof(T))
    bad_view(what);
  return static_cast<const T*>(a.data());
}

// The same, writeable.
template <class T> T* output_view(pybind11::array& a, std::size_t size, const char* what) {
  input_view<T>(a, size, what);
  if (!a.writeable()) bad_view(what);
  return static_cast<T*>(a.mutable_data());
}
