#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "dispatch.hpp"
#include "form_saddle.hpp"

namespace ellipsum {
namespace {

constexpr double pi = 3.14159265358979323846;

// t = t0 + c (sqrt(rho^2 + Y^2) - rho) + iY, Y = A sinh u.
struct Path {
  double A, c, rho;
};

Path choose_path(const QuadraticForm& f, const FormSaddle& s, double q) {
  Path p;
  p.A = std::min(std::min(s.left, s.right), 2.5 / std::sqrt(s.phi2));
  p.rho = p.A;
  const double wanted = s.phi3 / (3 * s.phi2) * p.A;  // steepest descent
  const double limit = f.normal_sd > 0 ? 0.5 : 1.0;
  const double direction = q > 0 ? 1 : (q < 0 ? -1 : 0);
  if (wanted * direction >= 0) {
    p.c = direction * std::min(limit, std::max(std::fabs(wanted), 0.1));
    return p;
  }
  // Conflict: vertical until bending lowers the integrand.
  p.c = direction * 0.5;
  double y = p.A;
  for (int k = 0; k < 400 && direction * form_slope_off_axis(s, y) > 0; ++k) y *= 2;
  p.rho = 2 * y;
  return p;
}

double pole_order(FormMoment m) {
  return m == FormMoment::excess || m == FormMoment::shortfall ? 2 : 1;
}

// (1/pi) int e^{-x^2} g(x^2) / (z^2 + x^2) dx by the midpoint rule of step 1/2, error below
// e^{-pi^2 / h^2} = 7e-18; `share` of the pole at x = iz is added where the rule sees it.
// |arg z| <= pi/4.
std::complex<double> gauss_cauchy(std::complex<double> z, bool squared) {
  constexpr double h = 0.5;
  const std::complex<double> z2 = z * z;
  std::complex<double> sum = 0;
  for (double x = 0.5 * h; x < 6.3; x += h) {
    const double x2 = x * x;
    sum += std::exp(-x2) * (squared ? x2 : 1.0) / (z2 + x2);
  }
  sum *= 2 * h / pi;
  if (z.real() < pi / h) {
    const std::complex<double> pole = 2.0 * std::exp(z2) / (1.0 + std::exp(2 * pi / h * z));
    sum += squared ? -z * pole : pole / z;
  }
  return sum;
}

struct Sums {
  double value = 0, pdf = 0;      // real parts of the sums
  double abs_value = 0, abs_pdf = 0;
};

struct Integrator {
  const QuadraticForm& form;
  const FormSaddle& s;
  const Path path;
  const Kernels& kernels;
  FormRelative relative;
  double normal_variance;
  FormMoment moment;
  double root_q;       // sqrt(q), for the moments of sqrt(Q)
  int nodes = 0;

  // What multiplies exp(K(t) - tq), times t0^order; `ratio` is t0/t.
  std::complex<double> weigh(std::complex<double> ratio) const {
    if (moment == FormMoment::tail) return ratio;
    if (moment == FormMoment::excess) return ratio * ratio;
    const std::complex<double> root_t = std::sqrt(s.point.t / ratio);
    const std::complex<double> z = root_t * root_q;
    const double root_pi = 1.77245385090551602730;
    // erfcx(z) = z times the integral; 1 - sqrt(pi) z erfcx(z) = sqrt(pi) times the other
    if (moment == FormMoment::shortfall) return ratio * ratio * root_pi * gauss_cauchy(z, true);
    const std::complex<double> erfcx = root_q > 0 ? z * gauss_cauchy(z, false) : 1.0;
    return ratio * (root_q + 0.5 * root_pi * erfcx / root_t);
  }

  // Adds nodes u = first + i*step, i < form_block; returns the largest magnitudes.
  void block(double first, double step, double half, Sums& total, double& top, double& top_pdf) {
    double x[form_block], y[form_block], re[form_block], im[form_block], jac[form_block],
        bend[form_block];
    for (std::size_t i = 0; i < form_block; ++i) {
      const double u = first + double(i) * step;
      const double e = std::exp(u), sinh_u = u < 0.3 ? std::sinh(u) : 0.5 * (e - 1 / e);
      y[i] = path.A * sinh_u;
      jac[i] = path.A * 0.5 * (e + 1 / e);
      const double root = std::sqrt(path.rho * path.rho + y[i] * y[i]);
      x[i] = path.c * y[i] * (y[i] / (root + path.rho));
      bend[i] = path.c * y[i] / root;
    }
    kernels.form_exponents(relative, x, y, re, im);
    nodes += form_block;
    for (std::size_t i = 0; i < form_block; ++i) {
      const double zr = 0.5 * normal_variance * (x[i] - y[i]) * (x[i] + y[i]);
      const double a = re[i] + s.drift * x[i] + zr;
      const double b = im[i] + s.drift * y[i] + normal_variance * x[i] * y[i];
      const double size = std::exp(a) * jac[i];
      const double cosine = std::cos(b), sine = std::sin(b);
      // e^{ib} (1 - i bend)
      const double gr = size * (cosine + sine * bend[i]), gi = size * (sine - cosine * bend[i]);
      // t0 / (t0 + z)
      const double dr = 1 + x[i] / s.t, di = y[i] / s.t;
      const double d2 = dr * dr + di * di;
      const double weight = (i == 0 ? half : 1.0);
      double m = size / std::sqrt(d2);
      if (moment == FormMoment::tail) {
        total.value += weight * (gr * dr + gi * di) / d2;
      } else {
        const std::complex<double> g = weigh({dr / d2, -di / d2});
        total.value += weight * (gr * g.real() - gi * g.imag());
        m = size * std::abs(g);
      }
      total.pdf += weight * gr;
      total.abs_value += m;
      total.abs_pdf += size;
      top = i == 0 ? m : std::max(top, m);
      top_pdf = i == 0 ? size : std::max(top_pdf, size);
    }
  }
};

}  // namespace

FormIntegral form_integral(const QuadraticForm& form, double q, double sign, FormMoment moment,
                           const Kernels& kernels) {
  const double order = pole_order(moment);
  const FormSaddle s = find_saddle(form, q, sign, order);
  Integrator in{form, s, choose_path(form, s, q), kernels,
                {s.r.data(), s.half_dof.data(), s.kappa.data(), form.general,
                 form.groups.data(), form.groups.size(), nullptr, 0},
                s.normal_variance, moment, q > 0 ? std::sqrt(q) : 0};
  double h = 0.4;
  const bool no_density = q == 0 && form.normal_sd == 0 && form.total_dof <= 2;
  Sums sum;
  int blocks = 0;
  double top = 0, top_pdf = 0, best = 0, best_pdf = 0;
  for (; blocks < 200;) {
    in.block(blocks * double(form_block) * h, h, blocks ? 1.0 : 0.5, sum, top, top_pdf);
    ++blocks;
    best = std::max(best, top);
    best_pdf = std::max(best_pdf, top_pdf);
    if (top < 1e-18 * best && (no_density || top_pdf < 1e-18 * best_pdf)) break;
  }
  double error = 1, pdf_error = 1;
  double value = sum.value * h, pdf = sum.pdf * h;
  for (int level = 0; level < 6; ++level) {
    const double before = error, pdf_before = pdf_error;
    for (int b = 0; b < blocks; ++b)
      in.block((b * double(form_block) + 0.5) * h, h, 1.0, sum, top, top_pdf);
    h *= 0.5;
    blocks *= 2;
    // midpoints continue at the new step from half of the old one
    const double v = sum.value * h, d = sum.pdf * h;
    error = std::fabs(v - value) / std::fabs(v);
    pdf_error = std::fabs(d - pdf) / std::fabs(d);
    value = v;
    pdf = d;
    const double e = no_density ? error : std::max(error, pdf_error);
    const double e0 = no_density ? before : std::max(before, pdf_before);
    if (e < 2e-14) break;
    if (e < 1e-8 && e0 < 1e-3 && e < 10 * e0 * e0) {  // each halving squares the error
      error = 10 * error * error + 1e-15;
      pdf_error = 10 * pdf_error * pdf_error + 1e-15;
      break;
    }
  }
  FormIntegral out;
  out.log_value = s.log_factor - std::log(s.t) - (order - 1) * std::log(s.point.t) +
                  std::log(value / pi);
  out.log_pdf = s.log_factor + std::log(pdf / pi) + s.unit * 0.69314718055994530942;
  out.error = error;
  out.pdf_error = pdf_error;
  if (no_density) {
    out.log_pdf = std::numeric_limits<double>::infinity();
    out.pdf_error = 0;
  }
  out.nodes = in.nodes;
  return out;
}

}  // namespace ellipsum
