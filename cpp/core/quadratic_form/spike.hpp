// Quantiles of forms with a spike: the heaviest weights have few degrees of freedom.
#pragma once
#include <vector>

#include "quadratic_form/search.hpp"

namespace ellipsum {

// The heaviest weights, of few degrees of freedom in all, beside which the rest is narrow.
struct Spike {
  std::vector<FormTerm> heavy;  // with signs as in sign * Q; empty: there is none
  double mean = 0, sd = 0;      // of the rest
};

Spike find_spike(const SidedForm& form);

// x for a spike, whose saddlepoint approximation says nothing.
double spike_search(SidedForm& form, const Spike& spike, const std::vector<SidedTail>& known);

}  // namespace ellipsum
