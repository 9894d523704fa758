// P(Z > x) = erfc(x/sqrt 2)/2, and beyond 5, where it would underflow in the end, exp(-x^2/2)
// over sqrt(2 pi) times Mills' ratio by its continued fraction (Laplace; Abramowitz & Stegun
// 26.2.14): 60 terms leave 1e-28 of it at x = 5.
#include "quadratic_form/normal.hpp"

#include <cmath>

#include "constants.hpp"

namespace ellipsum {
namespace {

constexpr double fraction_from = 5;  // of x: Mills' ratio is its continued fraction from here on,
constexpr int fraction_terms = 60;   //   with so many terms to 1e-28
constexpr double body_above = -1.2;  // of log r: the first guess is linear in it
constexpr double body_slope = 1.25;  // -du/dlog r at r = 1/2: sqrt(pi/2)
constexpr int newton_steps = 6;      // each squares the error

}  // namespace

double log_normal_tail(double x) {
  if (x < fraction_from) return std::log(0.5 * std::erfc(x * sqrt_half));
  double fraction = 0;
  for (int k = fraction_terms; k >= 1; --k) fraction = k / (x + fraction);
  return -0.5 * x * x - std::log((x + fraction) * sqrt_2pi);
}

double normal_quantile(double log_r, double log_other) {
  if (log_r > log_other) return -normal_quantile(log_other, log_r);
  const double square = -2 * log_r - log_2pi;
  double u = log_r < body_above ? std::sqrt(std::fmax(square - std::log(std::fmax(square, 1)), 0))
                                : std::fmax(body_slope * (-ln2 - log_r), 0);
  for (int step = 0; step < newton_steps; ++step) {
    const double tail = log_normal_tail(u);
    u += (tail - log_r) / std::exp(-0.5 * u * u - log_sqrt_2pi - tail);
  }
  return u;
}

}  // namespace ellipsum
