// The only bridge between NumPy arrays and the core's views: check, then view.
#pragma once
#include <pybind11/numpy.h>

#include <cstdint>
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
