// centre -> scale -> clip -> quantise -> accumulate, compiled once per target.
//
// The integers of a row are a function of that row and the region alone. All arithmetic is
// IEEE double, one rounding an operation, in an order fixed here: a float32 row gives the
// integers of the same values in float64, on every target.
#include <cmath>
#include <cstring>
#include <vector>

#include "clip.hpp"
#include "dispatch.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {

#include "clip_exceptional.inl"

namespace {

// y_i = sum_k B_ik h_k in the order of k. B has 24 significant bits and h 29, so that each
// product is exact and a fused multiply-add gives the same bits as a product and a sum.
void transform(const Region& region, const double* h, double* y) {
  const std::size_t d = region.d;
  for (std::size_t i = 0; i < d; ++i) {
    const double* row = region.matrix + i * d;
    double sum = 0;
    for (std::size_t k = 0; k < d; ++k) sum += row[k] * h[k];
    y[i] = sum;
  }
}

template <class T>
void scaled_row(const Region& region, const char* row, std::ptrdiff_t stride, double* h,
                double* y) {
  const std::size_t d = region.d;
  const auto at = [&](std::size_t j) {
    T x;
    std::memcpy(&x, row + std::ptrdiff_t(j) * stride, sizeof x);
    return double(x);
  };
  if (region.matrix) {
    for (std::size_t j = 0; j < d; ++j) h[j] = round_to_29_bits(at(j) - region.center[j]);
    transform(region, h, y);
  } else {
    for (std::size_t j = 0; j < d; ++j) y[j] = (at(j) - region.center[j]) * region.scale[j];
  }
}

double squared_norm(const double* y, std::size_t d) {
  double lane[norm_lanes] = {};
  std::size_t j = 0;
  for (; j + norm_lanes <= d; j += norm_lanes)
    for (std::size_t l = 0; l < norm_lanes; ++l) lane[l] += y[j + l] * y[j + l];
  for (std::size_t l = 0; j + l < d; ++l) lane[l] += y[j + l] * y[j + l];
  return sum_lanes(lane);
}

template <class T>
bool finite_row(const char* row, std::ptrdiff_t stride, std::size_t d) {
  bool finite = true;
  for (std::size_t j = 0; j < d; ++j) {
    T x;
    std::memcpy(&x, row + std::ptrdiff_t(j) * stride, sizeof x);
    finite &= std::isfinite(x);
  }
  return finite;
}

template <class T>
ClipCounts run(const Batch& batch, const Region& region, std::int64_t* partial) {
  const std::size_t d = batch.d;
  ClipCounts counts{0, 0};
  std::vector<double> h(d), y(d);
  for (std::size_t i = 0; i < batch.n; ++i) {
    const char* row = static_cast<const char*>(batch.data) + std::ptrdiff_t(i) * batch.row_stride;
    const std::ptrdiff_t stride = batch.column_stride;
    scaled_row<T>(region, row, stride, h.data(), y.data());
    if (region.limit) {
      if (!finite_row<T>(row, stride, d)) {
        ++counts.clipped, ++counts.nonfinite;
        continue;
      }
      bool clipped = false;
      for (std::size_t j = 0; j < d; ++j) {
        const double limit = region.limit[j];
        clipped |= !(std::fabs(y[j]) <= limit);
        const double inside = y[j] > limit ? limit : (y[j] < -limit ? -limit : y[j]);
        partial[j] += quantise(inside);
      }
      counts.clipped += clipped;
      continue;
    }
    const double n2 = squared_norm(y.data(), d);
    if (!(n2 < exceptional_norm2)) {
      if (!finite_row<T>(row, stride, d)) {
        ++counts.clipped, ++counts.nonfinite;
        continue;
      }
      clip_huge_row<T>(region, row, stride, h.data(), y.data());
      ++counts.clipped;
    } else {
      const double norm = std::sqrt(n2);
      const bool clipped = norm > region.radius;
      const double factor = clipped ? region.radius / norm : 1.0;
      for (std::size_t j = 0; j < d; ++j) y[j] *= factor;
      counts.clipped += clipped;
    }
    for (std::size_t j = 0; j < d; ++j) partial[j] += quantise(y[j]);
  }
  return counts;
}

}  // namespace

ClipCounts clip_sum(const Batch& batch, const Region& region, std::int64_t* partial) {
  return batch.dtype == Dtype::float32 ? run<float>(batch, region, partial)
                                       : run<double>(batch, region, partial);
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
