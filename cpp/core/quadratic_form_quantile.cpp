#include <algorithm>
#include <cmath>
#include <limits>

#include "form_saddle.hpp"

namespace ellipsum {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int most_steps = 60;
constexpr double newton_squares = 1e-8;  // a miss below leaves, after its step, less than rounding

double log_of_tail(const FormTail& t, bool upper) {
  return t.upper == upper ? t.log_small : std::log1p(-std::exp(t.log_small));
}

// A point of the bracket (near, far) of sign * q, where Newton's step has left it.
double inside(double x, double near, double far, double sign, bool edge) {
  if (std::isinf(far)) return edge ? 0.1 * x : x + sign * std::fabs(x);
  if (std::isinf(near)) return x - sign * std::fabs(x);
  return edge ? sign * -std::sqrt(near * far) : 0.5 * sign * (near + far);
}

}  // namespace

// Newton's method on the log tail, from the saddlepoint approximation's quantile (within a
// few per cent of the tail), bracketed. At the edge of a one-sided support the tail is a
// power of q, so the step is taken in log |q|.
FormQuantile form_quantile(const QuadraticForm& f, double log_tail, bool upper,
                           const Kernels& kernels) {
  const double sign = upper ? 1 : -1;
  const bool edge = f.normal_sd == 0 && (upper ? f.highest : -f.lowest) == 0;
  double q = 0;
  if (f.terms.empty() && f.clusters.empty()) q = f.normal_sd * std::sqrt(std::fmax(-2 * log_tail - 1, 0.1));
  else saddle_of_tail(f, log_tail, sign, q);
  const bool from_zero = f.normal_sd == 0 && (upper ? f.lowest : f.highest) == 0;
  if (from_zero && !(q > 0)) q = 0.5 * sign * f.mean;
  double x = std::ldexp(sign * q, f.exponent), reach = 2;
  double near = from_zero ? 0 : -infinity, far = infinity;  // of sign * x
  FormQuantile out{x, 1, 0};
  for (int step = 0; step < most_steps; ++step) {
    if (edge && x == 0) break;
    const FormTail t = form_tail(f, x, kernels);
    const double log_value = log_of_tail(t, upper), miss = log_value - log_tail;
    ++out.evaluations;
    (miss > 0 ? near : far) = sign * x;
    const double dx = sign * miss * std::exp(log_value - t.log_pdf);
    double next = x + dx;
    if (edge) {
      const double turn = std::fmin(std::fmax(dx / x, -reach), reach);
      if (turn != dx / x) reach *= 4;
      next = x * std::exp(turn);
    }
    out.error = std::fabs(miss) < newton_squares ? t.error + miss * miss : std::fabs(miss);
    if (std::fabs(miss) < newton_squares) {
      out.q = next;
      return out;
    }
    if (!(sign * next > near && sign * next < far)) next = inside(x, near, far, sign, edge);
    if (next == x) break;
    x = next;
  }
  out.q = x;
  return out;
}

}  // namespace ellipsum
