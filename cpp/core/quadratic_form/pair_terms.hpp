// What the per-target kernels of a pair of Gaussians read and write. Plain structs only.
#pragma once
#include <cstddef>

namespace ellipsum {

constexpr std::size_t pair_padding = 8;  // terms: a whole number of registers on every target
constexpr double pair_far = 0.5;         // |te| from here on: the second form of K (pair.hpp)

// The terms by columns; the last ones may be padding, with dof, shift and ends of 0.
struct PairColumns {
  const double* excess;      // e
  const double* kappa;       // 1 + e
  const double* half_dof;    // m/2
  const double* half_shift;  // S/2
  const double* pole;        // S kappa / (2 e^2)
  const double* defect;      // D(-e) = log kappa - e
  const double *log_end, *log_end_low;
  const double *end, *end_low;
  std::size_t n;            // a multiple of pair_padding
  double highest, largest;  // of e, and of |e|
  bool shifted;             // is any S above 0?
};

// K'(t) of the terms, its parts sorted by sign, and t K''(t) of either; the linear part of far
// terms comes apart, as two numbers that are to be added.
struct PairSlopes {
  double up, down, up_slope, down_slope, linear, linear_low;
};

// A sum and what its additions rounded away.
struct PairSum {
  double sum, lost;
};

struct PairSums {
  PairSum log_mgf;  // of K(t), without the linear part of far terms
  PairSum drift;    // K'(t) without that part and the logarithms' share, which the nodes have
  PairSum linear;   // coefficient of that part, to be subtracted
  double rest;      // slope of what was summed at t itself
  double doubt, drift_doubt;  // bounds of errors of log_mgf and drift, in units of roundoff,
  double ends;                // but for this one's share: sum |end| of far terms
  double phi2, phi3;          // derivatives of K, in the unit
};

}  // namespace ellipsum
