// The integral of the regime of low degrees of freedom, apart from P(Q0 > q).
#pragma once
#include "quadratic_form/form.hpp"

namespace ellipsum {

// sign * Q with its terms split by sign.
struct SignedTerms {
  std::vector<FormTerm> up, down;  // of positive and of negative weight
  double highest = 0, lowest = 0, sd = 0, dof = 0;
};
SignedTerms signed_terms(const QuadraticForm& form, double sign);

struct SplitIntegral {
  double log_tail, log_pdf, error, pdf_error;
  int nodes;
};

// P(Q > q) - P(Q0 > q) where there are positive weights, else P(Q > q); and the density at q.
SplitIntegral split_integral(const SignedTerms& terms, double q);

}  // namespace ellipsum
