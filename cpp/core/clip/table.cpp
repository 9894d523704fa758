#include "clip/table.hpp"

#include <algorithm>

#include "clip/clip.hpp"
#include "dispatch.hpp"

namespace ellipsum {
using namespace compiled_once;
namespace {

constexpr std::size_t doubles_of_line = 8;
// Numbers of a stretch. Of more columns it has so many rows that they take longer than a kernel's start,
// and of very many no more numbers than 32 MiB.
constexpr std::size_t stretch_numbers = std::size_t{1} << 16, enough_rows = 512,
                      most_numbers = std::size_t{1} << 22;

std::size_t rows_of_stretch(const Batch& batch) {
  const std::size_t d = std::max(batch.d, std::size_t{1});
  const std::size_t enough = std::min(enough_rows, most_numbers / d);
  const std::size_t rows = std::min(std::max(stretch_numbers / d, enough), batch.n);
  return (rows / doubles_of_line + 1) * doubles_of_line;
}

Dtype type_of_column(const Batch& batch, std::size_t j) {
  return batch.types ? batch.types[j] : batch.dtype;
}

// A column from a number on, `batch.first` of which are none of the batch's; bits are not told apart.
const char* column_at(const Batch& batch, std::size_t j, std::size_t from) {
  const std::size_t bytes = from * size_of(type_of_column(batch, j));
  if (batch.columns) return static_cast<const char*>(batch.columns[j]) + bytes;
  return static_cast<const char*>(batch.data) + std::ptrdiff_t(j) * batch.column_stride + bytes;
}

// The first lines of a column from a number on.
void ask_for(const Batch& batch, std::size_t j, std::size_t from) {
  constexpr std::size_t bytes = 2048, line = 64;
  const char* at = column_at(batch, j, from);
  for (std::size_t k = 0; at && k < bytes; k += line) __builtin_prefetch(at + k);
}

// What kernels take of such columns; one without gaps is an array.
Batch batch_of(Dtype dtype, std::size_t n, const std::vector<const void*>& columns,
               const Validity* valid, const Dtype* types) {
  const std::ptrdiff_t size = std::ptrdiff_t(size_of(dtype));
  if (columns.size() == 1 && !valid) return {columns[0], dtype, n, 1, size, size};
  return {nullptr, dtype, n, columns.size(), size, 0, columns.data(), 0, valid, types};
}

}  // namespace

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
  if (!converts_) return batch_of(dtype_, n_, columns_, valid, typed_ ? types_.data() : nullptr);
  return {nullptr, dtype_,          n_, columns_.size(), std::ptrdiff_t(size_of(dtype_)),
          0,       columns_.data(), 0,  valid,           types_.data(),
          true};
}

ConvertedColumns::ConvertedColumns(const Batch& batch, const Region& region)
    : moves_(region.lower && clip_plan(batch, region).columns),
      lower_(region.lower),
      center_(region.center),
      upper_(region.upper) {
  if (!batch.converts && !moves_) return;
  std::size_t converted = 0;
  for (std::size_t j = 0; j < batch.d; ++j)
    converted += moves_ || !is_floating(type_of_column(batch, j));
  rows_ = rows_of_stretch(batch);
  // An odd number of lines: columns a power of two apart would share a set of the cache.
  step_ = rows_ / doubles_of_line % 2 ? rows_ : rows_ + doubles_of_line;
  numbers_.reset(new double[converted * step_ + doubles_of_line]);
  columns_.resize(batch.d);
  if (moves_) return;
  if (batch.valid) valid_.resize(batch.d);
  types_.assign(batch.types, batch.types + batch.d);
  for (Dtype& type : types_) type = type == Dtype::float32 ? type : Dtype::float64;
}

Batch ConvertedColumns::shape(const Batch& batch) const {
  Batch shape = batch_of(Dtype::float64, batch.n, columns_, nullptr, nullptr);
  shape.converts = true;
  return shape;
}

// `to` <- n numbers of column j from number `from` on.
const double* ConvertedColumns::convert(const Kernels& kernels, const Batch& batch, std::size_t j,
                                        std::size_t from, std::size_t n, double* to) const {
  Dtype type = type_of_column(batch, j);
  const void* numbers = column_at(batch, j, from);
  if (!is_floating(type)) {
    kernels.convert_column(type, batch.columns[j], from, n, to);
    type = Dtype::float64, numbers = to;
  }
  if (!moves_) return to;
  Validity valid = batch.valid ? batch.valid[j] : Validity{};
  valid.first += from;
  kernels.move_column(type, numbers, valid, n, {lower_[j], center_[j], upper_[j]}, to);
  return to;
}

Batch ConvertedColumns::stretch(const Kernels& kernels, const Batch& batch, std::size_t first,
                                std::size_t n) {
  double* to = numbers_.get();
  while (reinterpret_cast<std::uintptr_t>(to) % (doubles_of_line * sizeof(double))) ++to;
  const std::size_t from = batch.first + first;
  const bool gaps = batch.valid && !moves_;
  bool narrow = false;
  for (std::size_t j = 0; j < batch.d; ++j) {
    if (gaps) valid_[j] = {batch.valid[j].bits, batch.valid[j].first + from};
    if (is_floating(type_of_column(batch, j)) && !moves_) {
      columns_[j] = column_at(batch, j, from);
      narrow |= batch.types[j] == Dtype::float32;
      continue;
    }
    if (j + 1 < batch.d) ask_for(batch, j + 1, from);
    columns_[j] = convert(kernels, batch, j, from, n, to);
    to += step_;
  }
  return batch_of(Dtype::float64, n, columns_, gaps ? valid_.data() : nullptr,
                  narrow ? types_.data() : nullptr);
}

}  // namespace ellipsum
