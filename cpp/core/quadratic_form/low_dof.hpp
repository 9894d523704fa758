// The regime of low degrees of freedom: a spike at 0, and tails of the size of the dof.
#pragma once
#include "quadratic_form/form.hpp"
#include "quadratic_form/sides.hpp"

namespace ellipsum {

// Whether q (in scaled units) belongs to it.
bool has_low_dof(const QuadraticForm& form, double q);

// Both tails at q by the split integral.
FormTail low_dof_tail(const QuadraticForm& form, double q);

}  // namespace ellipsum
