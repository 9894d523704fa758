#include "clip/table.hpp"

#include <algorithm>
#include <limits>

namespace ellipsum {
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

// Are these bits set, all of them?
bool all_set(const std::uint8_t* valid, std::size_t bit, std::size_t n) {
  if (!n) return true;
  const std::size_t first = bit / 8, last = (bit + n - 1) / 8;
  const unsigned above = 0xffu >> (7 - (bit + n - 1) % 8), below = 0xffu << bit % 8 & 0xff;
  if (first == last) return (valid[first] & above & below) == (above & below);
  unsigned all = (valid[first] | (0xffu ^ below)) & (valid[last] | (0xffu ^ above));
  for (std::size_t i = first + 1; i < last; ++i) all &= valid[i];
  return all == 0xff;
}

// NaN where the bit is not set.
template <class T> void blank(const std::uint8_t* valid, std::size_t bit, std::size_t n, T* to) {
  for (std::size_t i = 0; i < n;) {
    const std::size_t at = bit + i;
    const unsigned byte = valid[at / 8];
    if (byte == 0xff && at % 8 == 0 && n - i >= 8) {
      i += 8;
      continue;
    }
    to[i] = byte >> (at % 8) & 1 ? to[i] : std::numeric_limits<T>::quiet_NaN();
    ++i;
  }
}

}  // namespace

Tiles::Tiles(const Table& table) : table_(table), rows_(table.n), columns_(table.d) {
  for (std::size_t j = 0; j < table.d; ++j)
    if (table.columns[j].dtype == Dtype::float64) dtype_ = Dtype::float64;
  for (std::size_t j = 0; j < table.d; ++j)
    if (table.columns[j].dtype != dtype_ || table.columns[j].valid) copied_.push_back(j);
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
    const bool gaps = column.valid && !all_set(column.valid, column.first_bit + first, n);
    if (!gaps && column.dtype == dtype_) continue;  // this block needs no copy
    if (column.dtype == Dtype::float32) convert<float>(column, first, n, to);
    else convert<double>(column, first, n, to);
    if (gaps) blank(column.valid, column.first_bit + first, n, to);
    columns_[j] = to;
    to += stride_;
  }
}

Batch Tiles::block(std::size_t first, std::size_t n) {
  const std::ptrdiff_t size = std::ptrdiff_t(size_of(dtype_));
  for (std::size_t j = 0; j < table_.d; ++j)
    columns_[j] = static_cast<const char*>(table_.columns[j].data) + std::ptrdiff_t(first) * size;
  if (copies()) dtype_ == Dtype::float32 ? fill<float>(first, n) : fill<double>(first, n);
  if (table_.d == 1) return {columns_[0], dtype_, n, 1, size, size};
  return {nullptr, dtype_, n, table_.d, size, 0, columns_.data(), 0};
}

}  // namespace ellipsum
