// The normal distribution, far into its tails.
#pragma once

namespace ellipsum {

// log P(Z > x) of a standard normal, to a few ulp of the probability for |x| < 5, of the
// logarithm beyond.
double log_normal_tail(double x);

// u with P(Z > u) = r, from log r and log(1 - r).
double normal_quantile(double log_r, double log_other);

}  // namespace ellipsum
