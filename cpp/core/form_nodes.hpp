// What the per-target kernel of the quadratic form reads and writes. Plain structs only.
#pragma once
#include <cstddef>

namespace ellipsum {

// Terms seen from the saddlepoint t0: 1 - 2w(t0 + z) = (1 - 2w t0)(1 - r z).
struct FormRelative {
  const double* r;         // 2w / (1 - 2w t0)
  const double* half_dof;  // k/2
  const double* kappa;     // l / (2 (1 - 2w t0)); zero from `noncentral` on
  std::size_t noncentral;  // so many leading terms have kappa > 0
  std::size_t size;
};

constexpr std::size_t form_block = 8;  // nodes that one call evaluates

}  // namespace ellipsum
