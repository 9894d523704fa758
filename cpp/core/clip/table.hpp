// Rows whose coordinates are columns of a table, each in memory of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "batch.hpp"

namespace ellipsum {

struct Column {
  const void* data;
  Dtype dtype;
  Validity valid;
};

struct Table {
  const Column* columns;
  std::size_t n, d;
};

// What kernels take of a table: columns of one type, where they are. Others are copied to a tile, a
// block of rows at a time, and a single one with gaps, NaN in these; no number is read twice here.
class Tiles {
 public:
  explicit Tiles(const Table& table);
  bool copies() const { return !copied_.empty(); }
  // Of a block: all of them where nothing is copied.
  std::size_t rows() const { return rows_; }
  // Rows from `first` on, at most rows() of them; it lives until the next call.
  Batch block(std::size_t first, std::size_t n);

 private:
  template <class T> void fill(std::size_t first, std::size_t n);
  Table table_;
  Dtype dtype_ = Dtype::float32;
  std::size_t rows_, stride_ = 0;    // of the tile's columns, in numbers
  std::vector<std::size_t> copied_;  // columns
  std::vector<const void*> columns_;
  std::vector<Validity> valid_;  // empty where no column has gaps
  std::vector<double> tile_;
};

}  // namespace ellipsum
