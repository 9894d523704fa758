// Many q, and many probabilities, at once; the same bits for any number of threads.
#pragma once
#include "quadratic_form/quantile.hpp"
#include "quadratic_form/sides.hpp"

namespace ellipsum {

// form_tail at every q: neighbors share the nodes of one contour, out[i] belongs to q[i].
void form_tails(const QuadraticForm& form, const double* q, std::size_t n, FormTail* out,
                std::size_t threads, const Kernels& kernels);

// form_quantile of every log_tail[i], of the upper tail where upper[i] is not 0.
void form_quantiles(const QuadraticForm& form, const double* log_tail, const double* upper,
                    std::size_t n, FormQuantile* out, std::size_t threads, const Kernels& kernels);

}  // namespace ellipsum
