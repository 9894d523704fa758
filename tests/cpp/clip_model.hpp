// The clip rule as its definition reads, a row and a coordinate at a time: what every target
// must reproduce bit for bit. Written apart from the kernels; shares no line with them.
#pragma once
#include <cstdint>
#include <vector>

#include "batch.hpp"

struct Sums {
  std::vector<std::int64_t> partial, absent;
  std::int64_t clipped = 0, nonfinite = 0;
  bool operator==(const Sums& o) const {
    return partial == o.partial && absent == o.absent && clipped == o.clipped &&
           nonfinite == o.nonfinite;
  }
};

// Rows whose squared norm leaves the range of a double are not in the model: give none.
Sums clip_model(const ellipsum::Batch& batch, const ellipsum::Region& region);
