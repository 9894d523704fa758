#include "clip/table.hpp"

namespace ellipsum {

TableRows::TableRows(const Table& table) : n_(table.n) {
  for (std::size_t j = 0; j < table.d; ++j) {
    const Column& column = table.columns[j];
    columns_.push_back(column.data);
    valid_.push_back(column.valid);
    types_.push_back(column.dtype);
    typed_ |= column.dtype != types_[0];
    gaps_ |= column.valid.bits != nullptr;
    if (column.dtype == Dtype::float64) dtype_ = Dtype::float64;
  }
}

Batch TableRows::batch() const {
  const std::size_t d = columns_.size();
  const std::ptrdiff_t size = dtype_ == Dtype::float32 ? 4 : 8;
  // One column without gaps is an array.
  if (d == 1 && !gaps_) return {columns_[0], dtype_, n_, d, size, size};
  return {nullptr,
          dtype_,
          n_,
          d,
          size,
          0,
          columns_.data(),
          0,
          gaps_ ? valid_.data() : nullptr,
          typed_ ? types_.data() : nullptr};
}

}  // namespace ellipsum
