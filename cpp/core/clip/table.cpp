#include "clip/table.hpp"

namespace ellipsum {

TableRows::TableRows(const Table& table) : n_(table.n) {
  for (std::size_t j = 0; j < table.d; ++j) {
    const Column& column = table.columns[j];
    columns_.push_back(column.data);
    valid_.push_back(column.valid);
    types_.push_back(column.dtype);
    typed_ |= column.dtype != types_[0];
    converts_ |= !is_floating(column.dtype);
    gaps_ |= column.valid.bits != nullptr;
    if (column.dtype != Dtype::float32) dtype_ = Dtype::float64;
  }
}

Batch TableRows::batch() const {
  const Validity* valid = gaps_ ? valid_.data() : nullptr;
  const std::ptrdiff_t size = std::ptrdiff_t(size_of(dtype_));
  if (columns_.size() == 1 && !gaps_ && !converts_)
    return {columns_[0], dtype_, n_, 1, size, size};  // an array
  return {
      nullptr,  dtype_,          n_, columns_.size(), size,
      0,        columns_.data(), 0,  valid,           typed_ || converts_ ? types_.data() : nullptr,
      converts_};
}

}  // namespace ellipsum
