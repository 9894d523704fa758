// The regimes, each named by its method; scaled_tail chooses. How exact each is stands with it:
// point_mass, normal_only, at_edge and far_tail to rounding, low_dof_tail and contour_tail as they estimate.
#include "quadratic_form/tail.hpp"

#include <cmath>
#include <utility>

#include "constants.hpp"
#include "quadratic_form/contour.hpp"
#include "quadratic_form/low_dof.hpp"
#include "quadratic_form/normal.hpp"

namespace ellipsum {
namespace {

FormTail outside(bool upper) { return {-infinity, -infinity, 0, 0, upper, 0}; }

FormTail point_mass(double q) {
  FormTail out = outside(q >= 0);
  if (q == 0) out.log_pdf = infinity;
  return out;
}

FormTail normal_only(double q, double sd) {
  constexpr double rounding = 4e-16;  // of erfc and of the exponential: two ulp
  const double x = q / sd, log_pdf = -0.5 * x * x - log_sqrt_2pi - std::log(sd);
  return {log_normal_tail(std::fabs(x)), log_pdf, rounding, rounding, x > 0, 0};
}

// The density at the edge q = 0 of a one-sided support, where it is a power q^(k/2 - 1).
FormTail at_edge(const QuadraticForm& f) {
  double log_pdf = f.total_dof < 2 ? infinity : -infinity;
  if (f.total_dof == 2) {
    log_pdf = -ln2;
    const auto add = [&](const FormTerm& t) {
      log_pdf -= 0.5 * t.dof * std::log(std::fabs(t.weight)) + 0.5 * t.noncentrality;
    };
    for (const FormTerm& t : f.terms) add(t);
    for (const FormCluster& c : f.clusters) {
      for (std::size_t j = c.begin; j < c.end; ++j) add(f.members[j]);
      if (c.begin != c.end) continue;
      add({c.center, 2 * c.half_dof, 2 * c.half_noncentrality});
      double series = 0;  // sum k/2 log(1 + e)
      for (std::size_t p = form_moments; p-- > 0;) series += (p % 2 ? -1 : 1) * c.dof_moments[p];
      log_pdf -= series;
    }
  }
  return {-infinity, log_pdf, 0, 0, f.highest == 0, 0};
}

// min over t of s^2 t^2/2 - t|q|, t up to the branch point 1/(2w) of the largest weight: what
// K(t) - tq is but for logarithms times the dof and roots of l.
double far_exponent(const QuadraticForm& f, double q) {
  const double highest = q > 0 ? f.highest : -f.lowest, s2 = f.normal_sd * f.normal_sd;
  const double branch = highest > 0 ? 0.5 / highest : infinity, size = std::fabs(q);
  const double x = q / f.normal_sd;
  return size / s2 <= branch ? -0.5 * x * x : branch * (0.5 * s2 * branch - size);
}

FormTail far_tail(const QuadraticForm& f, double q) {
  const double log_tail = far_exponent(f, q);
  return {log_tail, log_tail, 0, 0, q > 0, 0};
}

bool is_upper_smaller(const QuadraticForm& f, double q) {
  return q > f.mean - f.third / (6 * f.variance);  // the median, to first order
}

FormTail as_tail(const FormIntegral& i, bool upper) {
  return {i.log_value, i.log_pdf, i.error, i.pdf_error, upper, i.nodes};
}

// exp(K(t) - tq) bounds its tail (Chernoff), so a saddlepoint where it is below 1/2 proves
// the side; where neither does, both tails are moderate and the better guess is integrated.
FormTail contour_tail(const QuadraticForm& f, double q, const Kernels& kernels) {
  constexpr double pole = 1;  // its order at t = 0
  bool upper = is_upper_smaller(f, q);
  FormSaddle s = find_saddle(f, upper ? q : -q, upper ? 1 : -1, pole);
  if (s.log_factor > -ln2) {
    FormSaddle other = find_saddle(f, upper ? -q : q, upper ? -1 : 1, pole);
    if (other.log_factor < s.log_factor) {
      s = std::move(other);
      upper = !upper;
    }
  }
  const FormTail t = as_tail(integrate(f, s, upper ? q : -q, FormMoment::tail, kernels), upper);
  return smaller_tail(t, [&] {
    const double sign = upper ? -1 : 1;
    return as_tail(form_integral(f, sign * q, sign, FormMoment::tail, kernels), !upper);
  });
}

}  // namespace

// With the exponent L, the logarithms are below 350 (1 + k), the roots below sqrt(2 l L).
bool is_far(const QuadraticForm& f, double q) {
  constexpr double beside_dof = 1e20, beside_noncentrality = 1e33;  // both then below 2^-53 L
  const double size = -far_exponent(f, q);
  if (!(size > beside_dof * (1 + f.total_dof))) return false;
  double noncentrality = 0;
  for (const FormTerm& t : f.terms) noncentrality += t.noncentrality;
  for (const FormCluster& c : f.clusters) noncentrality += 2 * c.half_noncentrality;
  return size > beside_noncentrality * noncentrality;
}

// In order; each condition supposes that those above it do not hold.
FormTail scaled_tail(const QuadraticForm& f, double q, const Kernels& kernels) {
  const bool smooth = f.normal_sd > 0, weightless = f.terms.empty() && f.clusters.empty();
  if (std::isnan(q)) return {q, q, 0, 0, false, 0};
  if (std::isinf(q)) return outside(q > 0);
  if (weightless && !smooth) return point_mass(q);
  if (weightless) return normal_only(q, f.normal_sd);
  if (!smooth && f.lowest == 0 && q < 0) return outside(false);
  if (!smooth && f.highest == 0 && q > 0) return outside(true);
  if (!smooth && q == 0 && (f.lowest == 0 || f.highest == 0)) return at_edge(f);
  if (is_far(f, q)) return far_tail(f, q);
  if (has_low_dof(f, q)) return low_dof_tail(f, q);
  return contour_tail(f, q, kernels);
}

FormTail form_tail(const QuadraticForm& f, double q, const Kernels& kernels) {
  FormTail out = scaled_tail(f, std::ldexp(q, -f.exponent), kernels);
  out.log_pdf -= f.exponent * ln2;
  return out;
}

}  // namespace ellipsum
