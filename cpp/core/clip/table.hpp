// Rows whose coordinates are columns of a table, each in memory of its own.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "batch.hpp"

namespace ellipsum {

struct Kernels;

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

// Rows of columns of which some hold no floats, or whose cells are moved into a box: a stretch of them
// at a time, with those columns converted to doubles, which stay in the second level of cache.
class ConvertedColumns {
 public:
  ConvertedColumns() = default;
  // The region lives as long as this.
  ConvertedColumns(const Batch& batch, const Region& region);
  // Are there such columns? Otherwise there is nothing to convert.
  bool any() const { return rows_ > 0; }
  bool moves() const { return moves_; }       // all cells into the box
  std::size_t rows() const { return rows_; }  // of a stretch, at most
  // What kernels take, without its numbers.
  Batch shape(const Batch& batch) const;
  // Rows of the batch, or of a part of it, until the next call. Nothing is allocated.
  Batch stretch(const Kernels& kernels, const Batch& batch, std::size_t first, std::size_t n);

 private:
  const double* convert(const Kernels& kernels, const Batch& batch, std::size_t j, std::size_t from,
                        std::size_t n, double* to) const;
  bool moves_ = false;
  const double *lower_ = nullptr, *center_ = nullptr, *upper_ = nullptr;
  std::size_t rows_ = 0, step_ = 0;  // doubles from one converted column to the next
  std::unique_ptr<double[]> numbers_;
  std::vector<const void*> columns_;
  std::vector<Validity> valid_;
  std::vector<Dtype> types_;
};

}  // namespace ellipsum
