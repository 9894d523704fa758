// From the caller's arrays to a prepared form.
#pragma once
#include "quadratic_form/form.hpp"

namespace ellipsum {

struct Kernels;

// n weights of any sign and size, their degrees of freedom and noncentralities (>= 0), s >= 0.
QuadraticForm prepare_form(const double* weights, const double* dof, const double* noncentrality,
                           std::size_t n, double normal_sd, const Kernels& kernels);

}  // namespace ellipsum
