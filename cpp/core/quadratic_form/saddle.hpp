// The saddlepoint of K(t) - tq - p log t and what the contour needs to know there.
#pragma once
#include <cmath>
#include <vector>

#include "quadratic_form/form.hpp"

namespace ellipsum {

// A point of the positive real axis. Near the branch point 1/(2w), t alone would lose
// 1 - 2wt, so the relative gap to it is carried along.
struct FormPoint {
  double t;
  double gap;     // 1 - t * 2 * highest; 1 where no weight is positive
  double chart;   // logit of t 2w, or log t
};

// The upper tail of sign * Q, seen from `point`. All lengths in the t-plane are in units of
// 2^unit, near t itself, so that t = 1e200 overflows nothing.
struct FormSaddle {
  FormPoint point;
  int unit;
  double t;                  // of the point, in the unit
  double phi2, phi3;         // derivatives of K(t) - tq - p log t
  double log_factor;         // K(t) - tq
  double normal_variance;    // s^2
  double left, right;        // distances to the nearest singularities
  double drift;              // s^2 t - q, the linear part that is not in a term
  std::vector<double> r, half_dof, kappa;  // one by one, then the groups
  std::size_t general;
  std::vector<FormGroup> groups;
  std::vector<FormBin> bins;
};

FormSaddle find_saddle(const QuadraticForm& form, double q, double sign, double power);

// Where the saddlepoint approximation of the tail has this logarithm, and its q.
FormSaddle saddle_of_tail(const QuadraticForm& form, double log_tail, double sign, double& q);

struct Kernels;

// form_tail in scaled units.
FormTail scaled_tail(const QuadraticForm& form, double q, const Kernels& kernels);

// The integral on the contour through `saddle`; its blocks of nodes are recorded on request,
// those of the last halving in the second half.
FormIntegral integrate(const QuadraticForm& form, const FormSaddle& saddle, double q,
                       FormMoment moment, const Kernels& kernels,
                       std::vector<FormValues>* record = nullptr);

// What three levels of the trapezoid rule say. Its error falls as e^(-c/h), so each halving
// squares it: accepted where the last change is rounding, or where two changes agree that
// the next one would be. Two levels may agree by accident: so the first change counts too.
struct Convergence {
  double change, previous;
  double error() const {
    if (!(previous < 5e-4)) return std::fmax(change, 1e-3 * previous * previous);
    if (change < 2e-14) return change + 1e-15;
    const double next = 10 * change * change;
    const bool consistent = change < 1e-3 * previous && change < 10 * previous * previous + 1e-11;
    return consistent && next < 1e-14 ? next + 1e-15 : change;
  }
  // No use in going on: the change is met, or it is rounding that no step reduces.
  bool done() const { return error() < 1e-13 || (change < 1e-11 && change > 0.1 * previous); }
};

inline double relative_change(double now, double before) { return std::fabs(now - before) / std::fabs(now); }

// Re K'(t + iy) - q at a point off the axis, for the choice of the bend.
double form_slope_off_axis(const FormSaddle& saddle, double y);

}  // namespace ellipsum
