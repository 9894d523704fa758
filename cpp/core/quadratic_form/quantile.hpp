// Quantiles: the choice of the search.
#pragma once
#include "quadratic_form/form.hpp"

namespace ellipsum {

struct Kernels;

// The q beyond which (upper) or below which lies exp(log_tail) <= 1/2 of the probability.
struct FormQuantile {
  double q;
  double error;     // the last miss of the log tail, and the tail's own error
  int evaluations;  // of the tail
};
FormQuantile form_quantile(const QuadraticForm& form, double log_tail, bool upper,
                           const Kernels& kernels);

}  // namespace ellipsum
