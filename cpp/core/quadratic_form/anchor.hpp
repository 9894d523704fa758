// A contour that served one q, and what its nodes were: exp(-(q' - q) z) takes them to q'.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "quadratic_form/contour.hpp"
#include "quadratic_form/sides.hpp"

namespace ellipsum {

struct Kernels;

// Where an anchor is worth it: q' ahead, in 1/hazard, and so many of them.
constexpr double served_reach = 0.5;
constexpr std::ptrdiff_t fewest_served = 2;

struct FormAnchor {
  bool valid = false;
  double q = 0;     // in the scale of its saddlepoint, and
  double edge = 0;  // what makes of it the distance from where the integrand stops to decay
  FormSaddle saddle;
  FormIntegral at;
  std::vector<FormValues> blocks;

  // The integral at q; valid where it may serve others.
  void settle(const QuadraticForm& form, FormMoment moment, const Kernels& kernels);
  // What it is at x (`upper` is the caller's); false where the nodes do not serve.
  bool serve(double x, FormTail& out, const Kernels& kernels) const;
};

// Calls run(begin, end) with the indices of sorted parts of q, NaN last.
void in_sorted_runs(const double* q, std::size_t n, std::size_t threads,
                    const std::function<void(const std::size_t*, const std::size_t*)>& run);

}  // namespace ellipsum
