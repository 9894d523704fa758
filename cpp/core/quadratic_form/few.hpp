// The regime of few degrees of freedom: a spike at 0, and tails of the size of the dof.
#pragma once
#include "quadratic_form/form.hpp"

namespace ellipsum {

// Whether q (in scaled units) belongs to it.
bool few_degrees(const QuadraticForm& form, double q);

// Both tails at q by the split integral (see docs/quadratic_forms.md).
FormTail few_tail(const QuadraticForm& form, double q);

// log P(Z > x) of a standard normal.
double log_normal_tail(double x);

// The other tail at the same q.
FormTail complement(FormTail tail);

}  // namespace ellipsum
