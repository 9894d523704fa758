// delta(x) = E (1 - e^(x - L))+ = (1/2 pi i) int exp(K(t) - tx) dt / (t (1 + t)) over Re t > 0, of
// an L whose saddlepoints are known. The kernel is positive on the axis: no two numbers are
// subtracted, however small delta is.
#pragma once
#include <cstddef>
#include <functional>

#include "quadratic_form/saddle.hpp"
#include "quadratic_form/sides.hpp"

namespace ellipsum {

struct Kernels;

// One L. `form` says how the integrand decays; x + edge is the distance from its support's end.
struct HockeySource {
  const QuadraticForm& form;
  double edge;
  double unit;                                   // of x, in L's
  std::function<bool(double, FormTail&)> known;  // where no integral is needed
  std::function<FormSaddle(double)> saddle;
};

// log_small is log delta, log_pdf that of -d delta/d epsilon, `upper` true; also for many x.
void hockey_sticks(const HockeySource& source, const double* x, std::size_t n, FormTail* out,
                   std::size_t threads, const Kernels& kernels);

// Of a quadratic form, at epsilon in its own units.
void form_hockey_sticks(const QuadraticForm& form, const double* epsilon, std::size_t n,
                        FormTail* out, std::size_t threads, const Kernels& kernels);

}  // namespace ellipsum
