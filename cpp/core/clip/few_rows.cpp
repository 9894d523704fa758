#include "clip/few_rows.hpp"

#include <algorithm>

#include "clip/clip.hpp"
#include "clip/clip_sum.hpp"
#include "clip/exact_sum.hpp"

namespace ellipsum {
using namespace compiled_once;
namespace {

constexpr std::size_t line = 64;

std::vector<double> copy_of(const double* from, std::size_t d) {
  return from ? std::vector<double>(from, from + d) : std::vector<double>();
}

double* aligned(double* p) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(p) % line;
  return p + (line - past) % line / sizeof(double);
}

}  // namespace

FewRows::FewRows(const Region& given)
    : center_(copy_of(given.center, given.d)),
      scale_(copy_of(given.scale, given.d)),
      limit_(copy_of(given.limit, given.d)),
      region_(as_passed(given, given.d)) {
  if (region_.task == Task::box && limit_.empty()) limit_ = {given.radius};  // on the line
  region_.center = center_.data();
  region_.scale = scale_.data();
  region_.limit = limit_.empty() ? nullptr : limit_.data();
  partial_.resize(sums_of(region_) + round_up(region_.d, norm_lanes));
}

void FewRows::add(const Choice& choice, const Batch& batch, std::uint64_t* low,
                  std::int64_t* high) {
  const std::size_t doubles = clip_plan(batch, region_).doubles + line / sizeof(double) + 1;
  if (scratch_.size() < doubles) scratch_.resize(doubles);
  std::fill(partial_.begin(), partial_.end(), 0);
  const Variant variant = choice.variant(batch, region_);
  const ClipCounts seen = variant.kernels->clip_sum(batch, region_, *variant.arrangement,
                                                    aligned(scratch_.data()), partial_.data());
  for (std::size_t j = 0; j < region_.d; ++j) {
    const std::uint64_t word = std::uint64_t(partial_[j]);
    const std::int64_t sign = partial_[j] < 0 ? -1 : 0;
    merge(1, low + j, high + j, &word, &sign);
  }
  const std::uint64_t more[counts] = {batch.n, std::uint64_t(seen.clipped),
                                      std::uint64_t(seen.nonfinite)};
  const std::int64_t nothing[counts] = {};
  merge(counts, low + region_.d, high + region_.d, more, nothing);
}

}  // namespace ellipsum
