#include "clip/table.hpp"

#include <algorithm>
#include <limits>

#include "clip/clip.hpp"

namespace ellipsum {
using namespace compiled_once;
namespace {

// A tile stays in the second level of cache; longer runs than `most_rows` gain nothing.
constexpr std::size_t tile_bytes = std::size_t{1} << 18, least_rows = 64, most_rows = 8192;
// Columns of a tile a power of two apart would share a cache way.
constexpr std::size_t padding = 16;

std::size_t size_of(Dtype dtype) { return dtype == Dtype::float32 ? 4 : 8; }

template <class From, class To>
void convert(const Column& column, std::size_t first, std::size_t n, To* to) {
  const From* from = static_cast<const From*>(column.data) + first;
  for (std::size_t i = 0; i < n; ++i) to[i] = To(from[i]);
}

// NaN where the bit is not set.
template <class T> void blank(const Validity& valid, std::size_t first, std::size_t n, T* to) {
  for (std::size_t i = 0; i < n; ++i)
    to[i] = is_valid(valid, first + i) ? to[i] : std::numeric_limits<T>::quiet_NaN();
}

}  // namespace

Tiles::Tiles(const Table& table) : table_(table), rows_(table.n), columns_(table.d) {
  for (std::size_t j = 0; j < table.d; ++j)
    if (table.columns[j].dtype == Dtype::float64) dtype_ = Dtype::float64;
  for (std::size_t j = 0; j < table.d; ++j)
    if (table.columns[j].dtype != dtype_ || (table.d == 1 && table.columns[j].valid.bits))
      copied_.push_back(j);
    else if (table.columns[j].valid.bits) valid_.resize(table.d);
  if (copied_.empty()) return;
  const std::size_t fit = tile_bytes / (copied_.size() * size_of(dtype_)) / least_rows * least_rows;
  rows_ = std::min(std::max(fit, least_rows), most_rows);
  stride_ = rows_ + padding;
  tile_.resize((copied_.size() * stride_ * size_of(dtype_) + 7) / 8);
}

template <class T> void Tiles::fill(std::size_t first, std::size_t n) {
  T* to = reinterpret_cast<T*>(tile_.data());
  for (const std::size_t j : copied_) {
    const Column& column = table_.columns[j];
    if (column.dtype == Dtype::float32) convert<float>(column, first, n, to);
    else convert<double>(column, first, n, to);
    if (!all_valid(column.valid, first, n)) blank(column.valid, first, n, to);
    columns_[j] = to;
    to += stride_;
  }
}

Batch Tiles::block(std::size_t first, std::size_t n) {
  const std::ptrdiff_t size = std::ptrdiff_t(size_of(dtype_));
  for (std::size_t j = 0; j < table_.d; ++j)
    columns_[j] = static_cast<const char*>(table_.columns[j].data) + std::ptrdiff_t(first) * size;
  for (std::size_t j = 0; j < valid_.size(); ++j) {
    valid_[j] = table_.columns[j].valid;
    valid_[j].first += first;
  }
  for (const std::size_t j : copied_)
    if (!valid_.empty()) valid_[j] = {};
  if (copies()) dtype_ == Dtype::float32 ? fill<float>(first, n) : fill<double>(first, n);
  if (table_.d == 1) return {columns_[0], dtype_, n, 1, size, size};
  return {nullptr,         dtype_, n,
          table_.d,        size,   0,
          columns_.data(), 0,      valid_.empty() ? nullptr : valid_.data()};
}

}  // namespace ellipsum
