// Many weights in one pass: dense ranges of them become clusters, seen through their moments.
#pragma once
#include "quadratic_form/form.hpp"

namespace ellipsum {

struct Kernels;

// Weights as given, and the scale: two factors, since 2^-exponent may be beyond the doubles.
struct FormInput {
  const double *weights, *dof, *noncentrality;
  std::size_t n;
  double scale, rest;
  FormTerm term(std::size_t j) const {
    return {weights[j] * scale * rest, dof[j], noncentrality[j]};
  }
};

// Extreme weights that count, 0 where there is none of that sign.
struct FormRange {
  double lowest, highest;
};

// Fills terms, clusters and members. For many weights: a few dozen are terms as they are.
void cluster_terms(QuadraticForm& form, const FormInput& input, const FormRange& range,
                   const Kernels& kernels);

// How many moments do along a path through the saddlepoint where u is u0; 0: the members only.
std::size_t degree_needed(const FormCluster& cluster, double u0);

}  // namespace ellipsum
