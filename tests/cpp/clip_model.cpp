#include "clip_model.hpp"

#include <cmath>
#include <cstring>

using ellipsum::Batch;
using ellipsum::Dtype;
using ellipsum::Region;
using ellipsum::Task;

namespace {

double entry(const Batch& batch, std::size_t i, std::size_t j) {
  const char* p = static_cast<const char*>(batch.data) + std::ptrdiff_t(i) * batch.row_stride +
                  std::ptrdiff_t(j) * batch.column_stride;
  if (batch.dtype == Dtype::float32) {
    float x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  double x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

// 29 significant bits, ties to even, by way of the integer mantissa.
double to_29_bits(double h) {
  int e;
  const double mantissa = std::frexp(h, &e);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 29)), e - 29);
}

// s h + U t with t = V' h, h and t in 29 bits.
std::vector<double> scaled_by_factors(const Region& region, const std::vector<double>& x) {
  const std::size_t d = x.size(), rank = region.rank;
  std::vector<double> y(d), t(rank);
  for (std::size_t j = 0; j < d; ++j) {
    const double h = to_29_bits(x[j] - region.center[j]);
    y[j] = region.scale[j] * h;
    for (std::size_t k = 0; k < rank; ++k) t[k] += region.factors[(d + j) * rank + k] * h;
  }
  for (double& v : t) v = to_29_bits(v);
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < rank; ++k) y[j] += region.factors[j * rank + k] * t[k];
  return y;
}

std::vector<double> scaled(const Region& region, const std::vector<double>& x) {
  if (region.rank) return scaled_by_factors(region, x);
  const std::size_t d = x.size();
  std::vector<double> y(d), h(d);
  for (std::size_t k = 0; k < d; ++k) {
    h[k] = x[k] - region.center[k];
    if (region.matrix) h[k] = to_29_bits(h[k]);
    else y[k] = h[k] * region.scale[k];
  }
  for (std::size_t i = 0; region.matrix && i < d; ++i)
    for (std::size_t k = 0; k < d; ++k) {
      const double product = region.matrix[i * d + k] * h[k];
      y[i] = y[i] + product;
    }
  return y;
}

double norm2_of(const std::vector<double>& y) {
  double lane[8] = {};
  for (std::size_t j = 0; j < y.size(); ++j) lane[j % 8] += y[j] * y[j];
  const double a = lane[0] + lane[4], b = lane[1] + lane[5];
  const double c = lane[2] + lane[6], e = lane[3] + lane[7];
  return (a + c) + (b + e);
}

double stretch_of(const Region& region, std::size_t holes) {
  if (!region.stretch || holes == region.d) return 1.0;
  return double(region.d) / double(region.d - holes);
}

// Was it changed?
bool clip(const Region& region, std::vector<double>& y, double stretch) {
  bool changed = false;
  if (region.task == Task::box || (region.task == Task::ball && y.size() == 1 && !region.rank)) {
    for (std::size_t j = 0; j < y.size(); ++j) {
      const double limit = region.task == Task::box ? region.limit[j] : region.radius;
      changed |= std::fabs(y[j]) > limit;
      y[j] = std::fmin(std::fmax(y[j], -limit), limit);
    }
    return changed;
  }
  const double norm = std::sqrt(norm2_of(y) * stretch);
  if (norm <= region.radius) return false;
  const double factor = region.radius / norm;
  for (double& v : y) v *= factor;
  return true;
}

// A square as it is compared: its 21 leading bits.
double cut(double norm2) {
  int e;
  const double mantissa = std::frexp(norm2, &e);
  return std::ldexp(std::floor(std::ldexp(mantissa, 21)), e - 21);
}

std::size_t bin_of(const Region& region, double norm2) {
  for (std::size_t k = 0; k + 1 < region.bins; ++k)
    if (cut(norm2) <= cut(region.edges[k] * region.edges[k])) return k;
  return region.bins - 1;
}

std::size_t entries(const Region& region) {
  if (region.task == Task::distances) return region.bins;
  return region.task == Task::halves ? 2 * region.d : region.d;
}

}  // namespace

Sums clip_model(const Batch& batch, const Region& region) {
  Sums sums;
  sums.partial.resize(entries(region));
  sums.absent.resize(region.d);
  for (std::size_t i = 0; i < batch.n; ++i) {
    std::vector<double> x(batch.d);
    std::size_t holes = 0;
    for (std::size_t j = 0; j < batch.d; ++j) {
      x[j] = entry(batch, i, j);
      if (std::isfinite(x[j])) continue;
      x[j] = region.center[j];
      ++holes;
      ++sums.absent[j];
    }
    sums.nonfinite += holes > 0;
    const double stretch = stretch_of(region, holes);
    if (region.task == Task::distances) {
      ++sums.partial[bin_of(region, norm2_of(scaled(region, x)) * stretch)];
      continue;
    }
    std::vector<double> y = scaled(region, x);
    sums.clipped += clip(region, y, stretch);
    for (std::size_t j = 0; j < batch.d; ++j) {
      const std::int64_t q = std::llrint(y[j]);
      const bool below = region.task == Task::halves && q < 0;
      sums.partial[below ? batch.d + j : j] += below ? -q : q;
    }
  }
  return sums;
}
