// The only bridge between NumPy arrays and the core's views: check, then view.
#pragma once
#include <pybind11/numpy.h>

#include <cstdint>
#include <optional>
#include <string>

#include "batch.hpp"
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

// The type of native numbers, or truth values; of others none.
inline std::optional<ellipsum::Dtype> known_dtype(const pybind11::array& a) {
  using ellipsum::Dtype;
  // NumPy may also say the machine's own order by its name, as after `newbyteorder`.
  constexpr char own = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
  const char order = a.dtype().byteorder();
  if (order != '=' && order != '|' && order != own) return std::nullopt;
  const pybind11::ssize_t size = a.itemsize();
  switch (a.dtype().kind()) {
    case 'f':
      if (size == 4) return Dtype::float32;
      if (size == 8) return Dtype::float64;
      break;
    case 'i':
      return size == 1   ? Dtype::int8
             : size == 2 ? Dtype::int16
             : size == 4 ? Dtype::int32
                         : Dtype::int64;
    case 'u':
      return size == 1   ? Dtype::uint8
             : size == 2 ? Dtype::uint16
             : size == 4 ? Dtype::uint32
                         : Dtype::uint64;
    case 'b':
      return Dtype::boolean;
    default:
      break;
  }
  return std::nullopt;
}

// Is there one, and do its numbers lie where such do?
inline bool is_ready(const pybind11::array& a) {
  return (a.flags() & pybind11::detail::npy_api::NPY_ARRAY_ALIGNED_) && known_dtype(a);
}

inline ellipsum::Dtype dtype_of(const pybind11::array& a, const char* what) {
  const std::optional<ellipsum::Dtype> dtype = known_dtype(a);
  if (!dtype) bad_view(what);
  return *dtype;
}

inline ellipsum::Batch batch_view(const pybind11::array& rows) {
  if (rows.ndim() != 2) bad_view("rows must have two dimensions");
  const ellipsum::Dtype dtype = dtype_of(rows, "rows must be native numbers up to 64 bits");
  return {rows.data(),     dtype,          std::size_t(rows.shape(0)), std::size_t(rows.shape(1)),
          rows.strides(0), rows.strides(1)};
}

inline ellipsum::Batch float_view(const pybind11::array& rows) {
  if (!is_float(rows)) bad_view("rows must be float32 or float64");
  return batch_view(rows);
}

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
