// A prepared form Q = sum_j w_j chi2'(k_j, l_j) + s Z: what every source of this folder reads.
//
// chi2'(k, l) has k degrees of freedom and noncentrality l; w is of any sign. The cumulant
// function, along which all integrals run, is
//
//   K(t) = log E e^(tQ) = sum -k/2 log(1 - 2wt) + l wt/(1 - 2wt) + s^2 t^2/2,
//
// with branch points at the 1/(2w). Notation: docs/quadratic_forms.md.
#pragma once
#include <cstddef>
#include <vector>

#include "quadratic_form/nodes.hpp"

namespace ellipsum {

// One weight's share; equal weights are merged.
struct FormTerm {
  double weight, dof, noncentrality;
  bool counts() const { return weight != 0 && (dof > 0 || noncentrality > 0); }
};

// Many weights c(1 + e_j), |e_j| <= spread, by Taylor moments about their center c.
struct FormCluster {
  double center, spread;
  double half_dof, half_noncentrality;  // sums
  bool noncentral;
  bool shared;             // central and of one small dof: its members may be multiplied
  std::size_t begin, end;  // of QuadraticForm::members; none where degree_needed is never 0
  double dof_moments[form_moments], noncentrality_moments[form_moments];
};

// Zero weights dropped, scaled by 2^-exponent so that the largest |w| (or s) is about one,
// equal weights merged.
struct QuadraticForm {
  std::vector<FormTerm> terms;  // one by one first, then the groups
  std::size_t general = 0;      // so many are one by one
  std::vector<FormGroup> groups;
  std::vector<FormCluster> clusters;
  std::vector<FormTerm> members;  // of the clusters
  double normal_sd = 0;
  int exponent = 0;
  double lowest = 0, highest = 0;  // extreme weights; 0 where there is none of that sign
  double total_dof = 0;
  double mean = 0, variance = 0, third = 0;  // cumulants, scaled
};

// A product of factors loses the last bits of each, times k/2: only small dof may share.
inline bool may_share(const FormTerm& t) {
  constexpr double largest_shared_dof = 4;  // two ulp of the logarithm for each factor
  return t.noncentrality == 0 && t.dof <= largest_shared_dof;
}

}  // namespace ellipsum
