// One integral over the contour through the saddlepoint, and its nodes.
#pragma once
#include <cmath>
#include <complex>
#include <vector>

#include "quadratic_form/saddle.hpp"

namespace ellipsum {

struct Kernels;

// What an expectation over {Q > q} weighs the density with.
enum class FormMoment {
  tail,         // 1
  excess,       // Q - q
  root,         // sqrt(Q), q >= 0
  shortfall,    // (sqrt(Q) - sqrt(q))^2, q >= 0
  hockey_stick  // 1 - e^(q - Q); beside it, instead of the density, its derivative's size
};

// One integral: the logarithm of the tail (or moment) and of the density at q.
struct FormIntegral {
  double log_value;     // log E[g(Q); Q beyond q]
  double log_pdf;       // log density at q
  double error;         // estimated relative error of exp(log_value)
  double pdf_error;     // the same for the density
  int nodes;            // in all
  FormPath path{};      // of the trapezoid rule in the end,
  int count = 0;        // its nodes,
  double step = 0;      // their distance,
  bool halved = false;  // and whether the first one did not do
};

// The integral on the contour through `saddle`; its blocks of nodes are recorded on request,
// those of the last halving in the second half.
FormIntegral integrate(const QuadraticForm& form, const FormSaddle& saddle, double q,
                       FormMoment moment, const Kernels& kernels,
                       std::vector<FormValues>* record = nullptr);

// E[g(Q); Q > q] for sign +1; for sign -1 the same of -Q and -q, the lower tail. The caller
// has checked that q is inside the support, in scaled units.
FormIntegral form_integral(const QuadraticForm& form, double q, double sign, FormMoment moment,
                           const Kernels& kernels);

// The same for q in the caller's units, edges of the support included.
FormIntegral form_moment(const QuadraticForm& form, double q, double sign, FormMoment moment,
                         const Kernels& kernels);

// The nodes t of the contour at q and their weights: an expectation under the tilted density is
// the sum of Re(weight G(t)), with G = 1 for the density itself; in the caller's units.
struct FormContour {
  std::vector<std::complex<double>> t, weight;
};
FormContour form_contour(const QuadraticForm& form, double q, const Kernels& kernels);

// What three levels of the trapezoid rule say. Its error falls as e^(-c/h), so each halving
// squares it: accepted where the last change is rounding, or where two changes agree that
// the next one would be. Two levels may agree by accident: so the first change counts too.
struct Convergence {
  double change, previous;
  double noise = 1e-11;  // changes below may be rounding
  double error() const {
    constexpr double begun = 5e-4;        // of the first change: squaring has begun
    constexpr double rounding = 2e-14;    // of a sum of some hundred nodes
    constexpr double accepted = 1e-14;    // of the change after the last
    constexpr double change_factor = 10;  // a change against the square of the one before
    if (!(previous < begun)) return std::fmax(change, 1e-3 * previous * previous);
    if (change < rounding) return change + 1e-15;
    const double next = change_factor * change * change;
    const bool consistent =
        change < 1e-3 * previous && change < change_factor * previous * previous + 1e-11;
    return consistent && next < accepted ? next + 1e-15 : change;
  }
  // No use in going on: the change is met, or it is rounding that no step reduces.
  bool done() const { return error() < 1e-13 || (change < noise && change > 0.1 * previous); }
};

inline double relative_change(double now, double before) {
  return std::fabs(now - before) / std::fabs(now);
}

}  // namespace ellipsum
