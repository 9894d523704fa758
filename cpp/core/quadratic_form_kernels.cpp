// K(t0 + z) - K(t0) at a block of nodes, built once per target.
#include <cmath>

#include "form_nodes.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {

void form_exponents(const FormRelative& terms, const double* x, const double* y, double* re,
                    double* im) {
  for (std::size_t i = 0; i < form_block; ++i) {
    double sr = 0, si = 0;
    for (std::size_t j = 0; j < terms.size; ++j) {
      const double r = terms.r[j];
      const double u = r * x[i], v = r * y[i];
      const double big = std::fmax(std::fabs(u), std::fabs(v));
      double lg;
      if (big > 1e150) lg = 2 * (std::log(big) + std::log(std::hypot(u / big, v / big)));
      else lg = std::log1p((u * u - 2 * u) + v * v);
      sr -= 0.5 * terms.half_dof[j] * lg;
      si -= terms.half_dof[j] * std::atan2(-v, 1 - u);
      if (j < terms.noncentral) {  // rz/(1-rz)
        double a = 1 - u, b = -v;
        double den = a * a + b * b;
        if (big > 1e150) {
          sr -= terms.kappa[j];
        } else {
          sr += terms.kappa[j] * ((u * a - v * v) / den);
          si += terms.kappa[j] * (v / den);
        }
      }
    }
    re[i] = sr;
    im[i] = si;
  }
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
