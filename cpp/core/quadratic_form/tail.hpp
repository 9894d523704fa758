// Both tails at one q: the choice of the method.
#pragma once
#include "quadratic_form/form.hpp"
#include "quadratic_form/sides.hpp"

namespace ellipsum {

struct Kernels;

// So far out that the logarithm of the tail is Chernoff's exponent to rounding.
bool is_far(const QuadraticForm& form, double q);

// q in scaled units.
FormTail scaled_tail(const QuadraticForm& form, double q, const Kernels& kernels);

// q in the caller's units.
FormTail form_tail(const QuadraticForm& form, double q, const Kernels& kernels);

}  // namespace ellipsum
