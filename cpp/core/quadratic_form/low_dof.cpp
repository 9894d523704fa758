// With K = K+ + K0, K+ of the positive weights (of sign * Q) and Q0 the sum of all the rest,
//
//   P(Q > q) = P(Q0 > q) + (1/2 pi i) int exp(K0(t) - tq) (exp(K+(t)) - 1) dt/t,
//
// two positive numbers: no cancellation however small the dof of K+ (docs/quadratic_forms.md,
// "Low degrees of freedom"). The second is split_integral; the first is 0 where all weights are
// positive and q > 0, a normal tail where they are positive and s > 0, else such an integral.
//
// How exact: 1e-12 of the tail and 1e-11 of the density on the 528 references of
// tests/test_quadratic_form_low_dof.py, from 1e-250 to tails of e^-600.
#include "quadratic_form/low_dof.hpp"

#include <algorithm>
#include <cmath>

#include "constants.hpp"
#include "quadratic_form/normal.hpp"
#include "quadratic_form/split_integral.hpp"

namespace ellipsum {
namespace {

// The regime.
constexpr double most = 2;         // degrees of freedom, and noncentrality: the spike is gone above
constexpr double lossy_dof = 0.2;  // of one sign: the contour loses a digit to so few
constexpr double near_zero = 1e-4;  // q and s, where the contour takes thousands of nodes

// log P(Q0 > q) below which P(Q0 > q) does not count beside the integral: e^-40 = 4e-18.
constexpr double uncounted = 40;

double log_sum(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

// P(sign Q > q), q times sign by the caller.
FormTail one_side(const QuadraticForm& f, double q, double sign) {
  const SignedTerms s = signed_terms(f, sign);
  SplitIntegral whole{-infinity, 0, 0, 0, 0};
  if (!s.up.empty()) whole = split_integral(s, q);
  const double normal = s.sd > 0 ? log_normal_tail(q / s.sd)
                        : q < 0  ? 0
                                 : -infinity;  // >= P(Q0 > q)
  if (normal > whole.log_tail - uncounted) {
    SignedTerms others = s;
    others.up.clear();
    others.highest = 0;
    SplitIntegral rest{normal, 0, 4e-16, 0, 0};
    if (!others.down.empty()) rest = split_integral(others, q);
    if (s.up.empty()) whole.log_pdf = rest.log_pdf, whole.pdf_error = rest.pdf_error;
    const double sum = log_sum(whole.log_tail, rest.log_tail);
    whole.error =
        whole.error * std::exp(whole.log_tail - sum) + rest.error * std::exp(rest.log_tail - sum);
    whole.log_tail = sum;
    whole.nodes += rest.nodes;
  }
  if (q == 0 && s.sd == 0) whole.log_pdf = infinity, whole.pdf_error = 0;
  return {whole.log_tail, whole.log_pdf, whole.error, whole.pdf_error, sign > 0, whole.nodes};
}

// Degrees of freedom and noncentrality of the weights of one sign.
FormTerm mass(const std::vector<FormTerm>& terms) {
  FormTerm sum{0, 0, 0};
  for (const FormTerm& t : terms) sum.dof += t.dof, sum.noncentrality += t.noncentrality;
  return sum;
}

// The smaller tail, first tried on this side.
FormTail settle(const QuadraticForm& f, double q, double sign) {
  return smaller_tail(one_side(f, sign * q, sign), [&] { return one_side(f, -sign * q, -sign); });
}

// Jumps above |q| of the Levy process that ends in Q: k/2 E1(|q|/2w) for each weight of this
// sign. P(Q beyond q) is 1 - exp(-jumps) nearly, so that above ln 2 the other tail is smaller.
double expected_jumps(const std::vector<FormTerm>& terms, double q) {
  constexpr double e1 = 0.7;  // E1(x) is 0.95 to 1.43 times e^-x log(1 + e1/x)
  double jumps = 0;
  for (const FormTerm& t : terms) {
    const double x = std::fabs(0.5 * q / t.weight);
    jumps += 0.5 * t.dof * std::exp(-x) * std::log1p(e1 / x);
  }
  return jumps;
}

}  // namespace

bool has_low_dof(const QuadraticForm& f, double q) {
  if (!(f.total_dof > 0 && f.total_dof <= most) || !f.clusters.empty()) return false;
  const SignedTerms s = signed_terms(f, 1);
  const FormTerm up = mass(s.up), down = mass(s.down);
  if (up.noncentrality + down.noncentrality > most) return false;
  const bool both = !s.up.empty() && !s.down.empty(), smooth = s.sd > 0;
  if (q == 0 && !smooth && !(up.dof > 0 && down.dof > 0)) return false;
  const auto lossy = [](double dof) { return dof > 0 && dof < lossy_dof; };
  if (lossy(up.dof) || lossy(down.dof)) return true;
  return (both || smooth) && std::max(std::fabs(q), s.sd) < near_zero;
}

FormTail low_dof_tail(const QuadraticForm& f, double q) {
  if (q == 0) {
    const SignedTerms here = signed_terms(f, 1);
    return settle(f, q, mass(here.up).dof < mass(here.down).dof ? 1 : -1);
  }
  double sign = q > 0 ? 1 : -1;
  const SignedTerms s = signed_terms(f, sign);
  if (expected_jumps(s.up, q) > ln2) sign = -sign;
  return settle(f, q, sign);
}

}  // namespace ellipsum
