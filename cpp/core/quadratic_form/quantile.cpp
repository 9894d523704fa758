// The searches, each named by its chart; `quantile` chooses.
//
//   normal_search   no weights: the logit of the tail against x, from a bound of Mills' ratio
//   logit_search    from where the saddlepoint approximation has the wanted tail
//   spike_search    few degrees of freedom carry the heaviest weights: the logarithm of jumps
//
// How exact: the last tail misses by 1e-7 at most and one step of the interpolation, without a
// tail, squares that; `error` adds the tail's own. Three evaluations are the rule.
#include "quadratic_form/quantile.hpp"

#include <cmath>
#include <vector>

#include "quadratic_form/search.hpp"
#include "quadratic_form/spike.hpp"

namespace ellipsum {
namespace {

double normal_search(SidedForm& s) {
  const double x = std::sqrt(std::fmax(-2 * s.log_tail - 1, 0.1)) * s.form.normal_sd;
  return logit_search(s, x, Search(s.logit()), {});
}

// Tries the saddlepoint approximation first: beside a wide rest it may be right.
double saddlepoint_or_spike_search(SidedForm& s, const Spike& spike) {
  constexpr double near = 1;  // a miss of the logit from which the logit's chart is safe
  const double x = saddlepoint_start(s);
  if (!(s.smooth() || s.highest() > 0 || x < 0)) return spike_search(s, spike, {});
  const SidedTail t = s.at(x);
  if (s.met(t)) return s.newton(t);
  if (std::fabs(t.logit() - s.logit()) < near) return logit_search(s, x, within_support(s), {t});
  return spike_search(s, spike, {t});
}

// In order; each condition supposes that those above it do not hold.
double quantile(SidedForm& s) {
  if (s.form.terms.empty() && s.form.clusters.empty()) return normal_search(s);
  const Spike spike = find_spike(s);
  if (spike.heavy.empty()) return logit_search(s, saddlepoint_start(s), within_support(s), {});
  if (spike.sd > 0) return saddlepoint_or_spike_search(s, spike);
  return spike_search(s, spike, {});
}

}  // namespace

FormQuantile form_quantile(const QuadraticForm& f, double log_tail, bool upper,
                           const Kernels& kernels) {
  SidedForm s(f, log_tail, upper, kernels);
  const double x = quantile(s);
  return {std::ldexp(s.sign * x, f.exponent) + 0.0, s.error, s.evaluations};
}

}  // namespace ellipsum
