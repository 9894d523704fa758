// The saddlepoint of K(t) - tq - p log t and what the contour needs to know there.
#pragma once
#include <vector>

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
  std::vector<double> r, half_dof, kappa;  // one by one, then the groups
  std::size_t general;
  std::vector<FormGroup> groups;
  std::vector<SaddleCluster> clusters;
};

FormSaddle find_saddle(const QuadraticForm& form, double q, double sign, double power);

// Where the saddlepoint approximation of the tail has this logarithm, and its q.
FormSaddle saddle_of_tail(const QuadraticForm& form, double log_tail, double sign, double& q);

// Re K'(t + iy) - q at a point off the axis, for the choice of the bend.
double slope_off_axis(const FormSaddle& saddle, double y);

}  // namespace ellipsum
