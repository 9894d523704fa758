// Any region and any rows: every target, thread count and layout gives the same integers, those of
// the plain model where it reaches; a row alone keeps the bound; a batch is the sum of its rows.
#include <vector>

#include "../cpp/clip_model.hpp"
#include "clip/clip.hpp"
#include "clip/clip_sum.hpp"
#include "error.hpp"
#include "input.hpp"

using namespace ellipsum;

namespace {

struct Shape {
  std::vector<double> center, scale, limit, matrix, edges, lower, upper;
  Region region{};

  explicit Shape(Input& in) {
    const Task tasks[] = {Task::ball, Task::box, Task::halves, Task::distances};
    region.task = tasks[in.between(0, 3)];
    const bool with_matrix = in.between(0, 1) && region.task != Task::box;
    const std::size_t d = region.d = in.between(0, 9) ? in.between(1, 20) : in.between(1, 300);
    region.radius = in.scale(24, 24);
    for (std::size_t j = 0; j < d; ++j) {
      const double c = in.between(0, 3) ? double(in.take<std::int8_t>()) / 16 : in.take<double>();
      center.push_back(std::isfinite(c) ? c : 0);
      scale.push_back(in.between(0, 3) ? in.scale(10, 30) : in.scale(-370, 820));
      limit.push_back(in.scale(1, 29));
    }
    for (std::size_t k = 0; with_matrix && k < d * d; ++k) matrix.push_back(entry(in));
    for (std::size_t k = 0, n = in.between(1, 24); k < n; ++k)
      edges.push_back(std::ldexp(1.0 + double(k) / 32, int(k)) * 0x1p12);
    region.center = center.data();
    (with_matrix ? region.matrix : region.scale) = with_matrix ? matrix.data() : scale.data();
    region.limit = region.task == Task::box ? limit.data() : nullptr;
    region.edges = edges.data();
    region.bins = edges.size();
    region.stretch = in.between(0, 1);
    if (in.between(0, 3)) return;
    for (double c : center) {
      lower.push_back(c - in.scale(-9, 9));
      upper.push_back(c + in.scale(-9, 9));
    }
    region.lower = lower.data(), region.upper = upper.data();
  }

  // 0, or 24 bits within 2^+-400, of either sign.
  static double entry(Input& in) {
    const std::uint64_t kind = in.between(0, 7);
    if (kind == 0) return 0;
    const double size = kind < 6 ? in.scale(10, 24) : in.scale(-399, 400);
    return kind % 2 ? size : -size;
  }
};

template <class T> std::vector<T> take_rows(Input& in, std::size_t count) {
  std::vector<T> rows(count);
  for (T& x : rows)
    x = in.between(0, 3) ? T(std::ldexp(in.take<std::int16_t>(), -12)) : in.take<T>();
  return rows;
}

Sums run(const Choice& kernels, const Batch& batch, const Region& region, int threads) {
  Sums sums;
  sums.partial.resize(compiled_once::sums_of(region));
  sums.absent.resize(region.d);
  const ClipCounts counts =
      clip_sum(kernels, batch, region, sums.partial.data(), threads, sums.absent.data());
  sums.clipped = counts.clipped, sums.nonfinite = counts.nonfinite;
  return sums;
}

template <class T> Batch batch_of(const T* data, std::size_t n, std::size_t d) {
  return {data,
          sizeof(T) == 4 ? Dtype::float32 : Dtype::float64,
          n,
          d,
          std::ptrdiff_t(d * sizeof(T)),
          sizeof(T)};
}

// docs/guarantees/sum.md: R (1 + (ceil(d / 8) / 2 + 8) 2^-53) + sqrt(d) / 2, or the box's corner.
void check_bound(const Sums& sums, const Region& region) {
  if (region.task == Task::distances) return;
  long double norm2 = 0;
  for (std::size_t j = 0; j < sums.partial.size(); ++j) {
    const long double q = static_cast<long double>(sums.partial[j]);
    norm2 += q * q;
    require(region.task != Task::box || std::fabs(q) <= std::rint(region.limit[j]), "in the box");
    require(region.task != Task::halves || q >= 0, "halves are not negative");
  }
  const double lanes = std::ceil(double(region.d) / 8);
  const long double bound = region.radius * (1 + (lanes / 2 + 8) * 0x1p-53L) +
                            std::sqrt(static_cast<long double>(region.d)) / 2;
  require(region.task == Task::box || std::sqrt(norm2) <= bound, "row bound");
}

// Is the row within the reach of the model: no square leaves the doubles, no input is flushed?
template <class T> bool in_model(const T* row, const Region& region) {
  long double most = 0, reach = 0;
  for (std::size_t j = 0; j < region.d; ++j) {
    if (!std::isfinite(double(row[j]))) continue;
    const double offset = double(row[j]) - region.center[j];
    if (!std::isfinite(offset)) return false;
    const double size = std::fabs(offset);
    if (region.matrix && size != 0 && (size < 0x1p-399 || size > 0x1p390)) return false;
    const double scale = region.matrix ? 1 : region.scale[j];
    most += static_cast<long double>(size) * scale;
  }
  reach = most;
  for (std::size_t k = 0; region.matrix && k < region.d * region.d; ++k) {
    const long double product = most * std::fabs(region.matrix[k]);
    if (product > reach) reach = product;
  }
  return reach * static_cast<long double>(region.d) < 0x1p490L;
}

// Cells in their box: the integers of rows that were moved before.
template <class T>
void check_moved(const Choice& kernels, const std::vector<T>& rows, const Region& region,
                 const Sums& wanted) {
  std::vector<double> moved(rows.begin(), rows.end());
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const std::size_t j = i % region.d;
    const double inside = std::fmin(std::fmax(moved[i], region.lower[j]), region.upper[j]);
    moved[i] = std::isfinite(moved[i]) ? inside : region.center[j];
  }
  Region plain = region;
  plain.lower = plain.upper = nullptr;
  const Batch batch = batch_of(moved.data(), rows.size() / region.d, region.d);
  require(run(kernels, batch, plain, 1) == wanted, "cells in their box");
}

template <class T>
void check_rows(const std::vector<T>& rows, std::size_t n, const Region& region) {
  static const Choice baseline("baseline"), best("");
  const Batch batch = batch_of(rows.data(), n, region.d);
  const Sums wanted = run(baseline, batch, region, 1);
  Sums total;
  total.partial.resize(wanted.partial.size());
  total.absent.resize(region.d);
  bool modelled = !region.lower;
  if (region.lower) check_moved(baseline, rows, region, wanted);
  for (std::size_t i = 0; i < n; ++i) {
    const T* row = rows.data() + i * region.d;
    const Sums alone = run(baseline, batch_of(row, 1, region.d), region, 1);
    check_bound(alone, region);
    modelled &= in_model(row, region);
    for (std::size_t j = 0; j < alone.partial.size(); ++j) total.partial[j] += alone.partial[j];
    for (std::size_t j = 0; j < region.d; ++j) total.absent[j] += alone.absent[j];
    total.clipped += alone.clipped, total.nonfinite += alone.nonfinite;
  }
  require(total == wanted, "a batch is the sum of its rows");
  if (modelled) require(clip_model(batch, region) == wanted, "the plain model");
  std::vector<T> columns(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) columns[i % region.d * n + i / region.d] = rows[i];
  Batch fortran = batch;
  fortran.data = columns.data();
  fortran.row_stride = sizeof(T), fortran.column_stride = std::ptrdiff_t(n * sizeof(T));
  for (const std::string& name : variant_names()) {
    const Choice kernels(name);
    require(run(kernels, batch, region, 1) == wanted, "the same integers:", name.c_str());
    require(run(kernels, fortran, region, 1) == wanted, "columns:", name.c_str());
  }
  require(run(best, batch, region, 2) == wanted, "two threads");
}

void check_refusals(Input& in, const Region& region) {
  Batch many = batch_of(region.center, 0, region.d);
  many.n = std::size_t(clip_rows_limit) + 1 + in.take<std::uint32_t>();
  bool refused = false;
  try {
    run(Choice("baseline"), many, region, 1);
  } catch (const Exception& e) {
    refused = e.kind() == Error::invalid_argument;
  }
  require(refused, "too many rows are refused");
  const std::string name = in.text();
  try {
    const Kernels& chosen = choose_kernels(name);
    require(name.empty() || name == chosen.name, "only a target's own name chooses it");
  } catch (const Exception& e) {
    require(e.kind() != Error::invalid_argument, "the kind of a refused name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const Shape shape(in);
  const std::size_t n = in.between(1, 20);
  if (in.between(0, 1)) check_rows(take_rows<float>(in, n * shape.region.d), n, shape.region);
  else check_rows(take_rows<double>(in, n * shape.region.d), n, shape.region);
  check_refusals(in, shape.region);
  return 0;
}
