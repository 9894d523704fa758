// The saddlepoint of K(t) - tq - p log t and what the contour needs to know there.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "constants.hpp"

#include "quadratic_form/form.hpp"

namespace ellipsum {

// A point of the positive real axis. Near the branch point 1/(2w), t alone would lose
// 1 - 2wt, so the relative gap to it is carried along.
struct FormPoint {
  double t;
  double gap;  // 1 - t * 2 * highest; 1 where no weight is positive

  // 1 - 2wt without cancellation next to the branch point of the largest weight.
  double one_minus_2wt(double w, double highest) const {
    if (w > 0 && gap < 0.5) return ((highest - w) + w * gap) / highest;
    return 1 - 2 * w * t;
  }
};

// Of the chart of the positive axis: t is its exponential, or its logistic function over 2w.
constexpr double largest_chart = 700;  // e^700 is still a double, and so is its reciprocal
FormPoint point_at(double chart, double highest);

// The search for a saddlepoint, in the chart.
struct Chart {
  static constexpr double near_enough = 0.02;  // last step: 2 % of t, or of the gap
  static constexpr double first_reach = 4;     // of a step, doubled where it is too short
  static constexpr int most_steps = 200;       // bisection alone takes 60
};

// Where `up` and `down` of balance_at(point) are equal: Newton's method on log(up/down) from x,
// kept within its reach and within a bracket. Slopes are derivatives times t.
template <class BalanceAt>
FormPoint balanced_point(double x, double highest, const BalanceAt& balance_at) {
  double below = -infinity, above = infinity, reach = Chart::first_reach;
  for (int step = 0; step < Chart::most_steps; ++step) {
    const FormPoint p = point_at(x, highest);
    const auto b = balance_at(p);
    const double miss = std::log(b.up / b.down);
    (miss < 0 ? below : above) = x;
    const double slope = (b.up_slope / b.up - b.down_slope / b.down) * p.gap;
    double dx = -miss / slope;
    if (!(std::fabs(dx) <= reach)) {
      dx = miss < 0 ? reach : -reach;
      reach *= 2;
    }
    if (!(x + dx > below && x + dx < above)) dx = 0.5 * (below + above) - x;
    x = std::min(std::max(x + dx, -largest_chart), largest_chart);
    if (std::fabs(dx) < Chart::near_enough) break;
  }
  return point_at(x, highest);
}

// The upper tail of sign * Q, seen from `point`. All lengths in the t-plane are in units of
// 2^unit, near t itself, so that t = 1e200 overflows nothing.
struct FormSaddle {
  FormPoint point;
  int unit;
  double t;                                // of the point, in the unit
  double phi2, phi3;                       // derivatives of K(t) - tq - p log t
  double log_factor;                       // K(t) - tq
  double normal_variance;                  // s^2
  double left, right;                      // distances to the nearest singularities
  double drift;                            // s^2 t - q, the linear part that is not in a term
  double pole = infinity;                  // distance of a second pole beyond 0, in the caller's
  double second = 0;                       // unit, and one over that from t; 0: there is none
  double rounding = 0;                     // relative, of what is integrated: part of its error
  std::vector<double> r, half_dof, kappa;  // one by one, then the groups
  std::size_t general;
  std::size_t centered = 0;  // see SaddleTerms
  std::vector<FormGroup> groups;
  std::vector<SaddleCluster> clusters;

  // What the second pole's factor at t adds to the logarithm of an integral over 1/t, of one
  // without it.
  double log_second() const { return -std::log1p(point.t / pole); }
  double log_density_second() const { return pole < infinity ? -std::log(point.t + pole) : 0; }
};

// With p log t, and log(t + pole) where that is finite, taken off.
FormSaddle find_saddle(const QuadraticForm& form, double q, double sign, double power,
                       double pole = infinity);

// log(1 - x) + x for |x| <= 1/2, to a few units of its own last digit.
double log_defect(double x);

// A sum with the roundings of its additions and products (Ogita, Rump & Oishi 2005, Dot2).
struct Compensated {
  double sum = 0, lost = 0;
  void add(double v) {
    const double s = sum + v, b = s - sum;
    lost += (sum - (s - b)) + (v - b);
    sum = s;
  }
  void add_product(double a, double b) {
    const double p = a * b;
    add(p);
    lost += std::fma(a, b, -p);
  }
  double value() const { return sum + lost; }
};

// Where the saddlepoint approximation of the tail has this logarithm, and its q.
FormSaddle saddle_of_tail(const QuadraticForm& form, double log_tail, double sign, double& q);

// Re K'(t + iy) - q at a point off the axis, for the choice of the bend.
double slope_off_axis(const FormSaddle& saddle, double y);

}  // namespace ellipsum
