// The columns of a ColumnBlock (rows/columns.py) as the core's table: checked, then viewed.
#pragma once
#include <pybind11/numpy.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "clip/table.hpp"

class ColumnViews {
 public:
  // Arrays and bitmaps that the block keeps alive, or a batch of Arrow's, which is kept here.
  explicit ColumnViews(const pybind11::object& block);
  ellipsum::Table table() const { return {columns_.data(), n_, columns_.size()}; }

 private:
  void add_arrays(const pybind11::object& block);
  void add_array(const pybind11::object& column, const pybind11::object& valid,
                 const pybind11::object& bit);
  void add_batch(const pybind11::tuple& capsules);
  const void* numbers_at(const void* buffer, ellipsum::Dtype type, std::size_t first);
  const void* bits_at(const std::uint8_t* bits, std::size_t first);

  std::size_t n_ = 0;
  std::vector<ellipsum::Column> columns_;
  pybind11::object batch_;
  std::vector<std::unique_ptr<double[]>> copies_;  // of columns at odd addresses, and of bits
};
