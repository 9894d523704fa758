// Rows whose coordinates are columns of a table, each in memory of its own.
#pragma once
#include <cstddef>
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

// What kernels take of a table, where it lies: float32 if all columns are, and without gaps if none
// has some. The batch lives as long as this.
class TableRows {
 public:
  explicit TableRows(const Table& table);
  Batch batch() const;

 private:
  std::size_t n_;
  Dtype dtype_ = Dtype::float32;
  bool typed_ = false, gaps_ = false, converts_ = false;
  std::vector<const void*> columns_;
  std::vector<Validity> valid_;
  std::vector<Dtype> types_;
};

}  // namespace ellipsum
