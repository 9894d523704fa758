// P(Q > q) = (1/2 pi i) int exp(K(t) - tq) dt/t over the path
//
//   t = t0 + c (sqrt(rho^2 + Y^2) - rho) + iY,   Y = A sinh u,
//
// through the saddlepoint t0, by the trapezoid rule in u (Rice 1980; Helstrom 1996). It bends
// towards steepest descent. The density has no 1/t, the moments another factor (weigh). The two
// halves of the path are conjugate, so that the upper one is all.
//
// How exact: the rule's error is estimated by three levels (Convergence), 1e-13 wanted; the
// roundings of the integrand are those of kernels.cpp, and its logarithm L costs L 2^-53.
#include "quadratic_form/contour.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "constants.hpp"
#include "dispatch.hpp"

namespace ellipsum {
namespace {

// The path. Tuned for few nodes on the reference table (bench_quadratic_form.py accuracy prints
// their count); the integral itself does not depend on these numbers.
constexpr double largest_width = 3;          // A, in standard deviations 1/sqrt(phi2)
constexpr double bend_factor = 1.5;          // c against the curvature of steepest descent at t0
constexpr double least_bend = 0.1;           // c: below, e^(-tq) falls too slowly
constexpr double opposed_bend = 0.5;         // c where steepest descent bends the other way
constexpr double largest_bend = 1.0;         // c
constexpr double largest_bend_normal = 0.7;  // with a normal term: exp(s^2 t^2/2) decays below 1
constexpr int most_doublings = 400;          // of rho, from A: over all the doubles' exponents

// The trapezoid rule.
constexpr double first_step = 0.09;          // in u: mostly fine enough, see there
constexpr double negligible = 1e-17;         // of a node against the largest: a twentieth of an ulp
constexpr double shared_negligible = 1e-22;  // where the nodes shall serve other q, too
constexpr double largest_u = 690;            // sinh overflows at 710
constexpr int first_budget = 1 << 14;        // nodes of a path before the other one is tried
constexpr int most_nodes = 200000;           // a guard: the error that is left is then reported
constexpr double met = 1e-10;                // error at which no other path is tried
constexpr double chernoff_slack = 1e-6;      // of the bound's logarithm: its own rounding is below

FormPath choose_path(const QuadraticForm& f, const FormSaddle& s, double q) {
  FormPath p{0, 0, 0, s.t, s.drift, s.normal_variance, s.second};
  const double bulk = largest_width / std::sqrt(s.phi2);
  p.width = p.radius = std::min(std::min(s.left, s.right), bulk);
  const double wanted = bend_factor * s.phi3 / (3 * s.phi2) * p.width;
  const double limit = f.normal_sd > 0 ? largest_bend_normal : largest_bend;
  const double direction = q > 0 ? 1 : (q < 0 ? -1 : 0);
  if (wanted * direction >= 0) {
    const double bend = std::min(limit, std::max(std::fabs(wanted), least_bend));
    p.bend = direction * bend;
    // At u = iv the path is t0 + c A (cos v - 1) + A sin v: ahead of it, a singularity at
    // distance D is met only where A > D (sqrt(1 + c^2) + c).
    const double ahead = (direction < 0 ? s.left : s.right) * (1 + bend);
    const double behind = direction < 0 ? s.right : s.left;
    p.width = p.radius = std::min(std::min(ahead, behind), bulk);
    return p;
  }
  // Steepest descent is opposed: vertical until bending lowers the integrand.
  p.bend = direction * opposed_bend;
  double y = p.width;
  for (int k = 0; k < most_doublings && direction * slope_off_axis(s, y) > 0; ++k) y *= 2;
  p.radius = 2 * y;
  return p;
}

// Over 1/t alone, which the kernel multiplies itself; the hockey stick's second pole, too.
bool plain(FormMoment m) { return m == FormMoment::tail || m == FormMoment::hockey_stick; }

double pole_order(FormMoment m) {
  return m == FormMoment::excess || m == FormMoment::shortfall ? 2 : 1;
}

// (1/pi) int e^{-x^2} g(x^2) / (z^2 + x^2) dx by the midpoint rule of step 1/2, error below
// e^{-pi^2 / h^2} = 7e-18; `share` of the pole at x = iz is added where the rule sees it.
// |arg z| <= pi/4.
std::complex<double> gauss_cauchy(std::complex<double> z, bool squared) {
  constexpr double h = 0.5;
  constexpr int midpoints = 13;  // to x = 6.25, where e^(-x^2) is 1e-17
  const std::complex<double> z2 = z * z;
  std::complex<double> sum = 0;
  for (int i = 0; i < midpoints; ++i) {
    const double x2 = (i + 0.5) * (i + 0.5) * h * h;
    sum += std::exp(-x2) * (squared ? x2 : 1.0) / (z2 + x2);
  }
  sum *= 2 * h / pi;
  if (z.real() < pi / h) {
    const std::complex<double> pole = 2.0 * std::exp(z2) / (1.0 + std::exp(2 * pi / h * z));
    sum += squared ? -z * pole : pole / z;
  }
  return sum;
}

// sinh and cosh of the nodes of level 0 (u = i h) or of the midpoints that level n adds.
void hyperbolic(double first, double step, double* sinh_u, double* cosh_u) {
  constexpr double cancels_below = 0.3;  // of u: e^u - e^-u loses two bits there
  for (std::size_t i = 0; i < form_block; ++i) {
    const double u = first + double(i) * step, e = std::exp(u);
    sinh_u[i] = u < cancels_below ? std::sinh(u) : 0.5 * (e - 1 / e);
    cosh_u[i] = 0.5 * (e + 1 / e);
  }
}

struct Sums {
  double value = 0, pdf = 0;
};

struct Integrator {
  const FormSaddle& s;
  const FormPath path;
  const SaddleTerms terms;
  const Kernels& kernels;
  FormMoment moment;
  double root_q;                    // sqrt(q), for the moments of sqrt(Q)
  bool no_density;                  // it diverges
  std::vector<FormValues>* record;  // of every block, where asked for
  Sums all, even, fourth;  // over every node; over every second and fourth of the first level
  double largest = 0, largest_pdf = 0;
  int nodes = 0;

  // What multiplies exp(K(t) - tq), times t0^order; `ratio` is t0/t.
  std::complex<double> weigh(std::complex<double> ratio) const {
    if (moment == FormMoment::excess) return ratio * ratio;
    const std::complex<double> root_t = std::sqrt(s.point.t / ratio);
    const std::complex<double> z = root_t * root_q;
    // erfcx(z) = z times the integral; 1 - sqrt(pi) z erfcx(z) = sqrt(pi) times the other
    if (moment == FormMoment::shortfall) return ratio * ratio * sqrt_pi * gauss_cauchy(z, true);
    const std::complex<double> erfcx = root_q > 0 ? z * gauss_cauchy(z, false) : 1.0;
    return ratio * (root_q + 0.5 * sqrt_pi * erfcx / root_t);
  }

  // Adds a block of nodes; true where the last ones are negligible.
  bool add(double first, double step) {
    double sinh_u[form_block], cosh_u[form_block];
    hyperbolic(first, step, sinh_u, cosh_u);
    FormValues v;
    kernels.form_nodes(path, terms, sinh_u, cosh_u, v);
    nodes += int(form_block);
    if (first == 0) v.tail[0] *= 0.5, v.density_re[0] *= 0.5, v.density_im[0] *= 0.5;
    if (record) record->push_back(v);
    double last = 0, last_pdf = 0;
    for (std::size_t i = 0; i < form_block; ++i) {
      double term = v.tail[i],
             size = v.size[i] * (std::fabs(v.ratio_re[i]) + std::fabs(v.ratio_im[i]));
      if (!plain(moment)) {
        const std::complex<double> g = weigh({v.ratio_re[i], v.ratio_im[i]});
        term = v.density_re[i] * g.real() - v.density_im[i] * g.imag();
        size = v.size[i] * std::abs(g);
      }
      all.value += term;
      all.pdf += v.density_re[i];
      if (i % 2 == 0) even.value += term, even.pdf += v.density_re[i];
      if (i % 4 == 0) fourth.value += term, fourth.pdf += v.density_re[i];
      largest = std::max(largest, size);
      largest_pdf = std::max(largest_pdf, v.size[i]);
      if (i + 2 < form_block) continue;
      last = std::max(last, size);
      last_pdf = std::max(last_pdf, v.size[i]);
    }
    const double end = record ? shared_negligible : negligible;
    return last < end * largest && (no_density || last_pdf < end * largest_pdf);
  }
};

SaddleTerms terms_at(const FormSaddle& s) {
  return {s.r.data(),      s.half_dof.data(), s.kappa.data(),    s.general,        s.centered,
          s.groups.data(), s.groups.size(),   s.clusters.data(), s.clusters.size()};
}

}  // namespace

FormIntegral form_integral(const QuadraticForm& form, double q, double sign, FormMoment moment,
                           const Kernels& kernels) {
  const double pole = moment == FormMoment::hockey_stick ? std::ldexp(1.0, form.exponent)  // t = -1
                                                         : infinity;
  return integrate(form, find_saddle(form, q, sign, pole_order(moment), pole), q, moment, kernels);
}

FormIntegral form_moment(const QuadraticForm& f, double q, double sign, FormMoment moment,
                         const Kernels& kernels) {
  q = sign * std::ldexp(q, -f.exponent);
  const double highest = sign > 0 ? f.highest : -f.lowest;
  if (highest == 0 && f.normal_sd == 0 && q >= 0) return {-infinity, -infinity, 0, 0, 0};
  FormIntegral out = form_integral(f, q, sign, moment, kernels);
  const double unit = moment == FormMoment::tail ? 0 : moment == FormMoment::root ? 0.5 : 1;
  out.log_value += unit * f.exponent * ln2;
  return out;
}

namespace {

FormPath straight_path(const FormSaddle& s) {
  const double width = std::min(std::min(s.left, s.right), largest_width / std::sqrt(s.phi2));
  return {width, 0, width, s.t, s.drift, s.normal_variance, s.second};
}

// NaN where a value is, or where it is above its bound: what is left of a cancellation.
double worst_error(const FormIntegral& i, double bound) {
  if (i.log_value > bound) return std::numeric_limits<double>::quiet_NaN();
  return i.log_value - i.log_value + std::fmax(i.error, i.pdf_error);
}

FormIntegral integrate_along(const FormPath& path, int most, const QuadraticForm& form,
                             const FormSaddle& s, double q, FormMoment moment,
                             const Kernels& kernels, std::vector<FormValues>* record) {
  const double order = pole_order(moment);
  const bool no_density =
      q == 0 && form.normal_sd == 0 && form.total_dof <= 2 && moment != FormMoment::hockey_stick;
  if (record) record->clear();
  Integrator in{s,          path,   terms_at(s), kernels, moment, q > 0 ? std::sqrt(q) : 0,
                no_density, record, {},          {},      {}};
  double h = first_step;
  int blocks = 1;
  while (!in.add((blocks - 1) * double(form_block) * h, h) &&
         blocks * double(form_block) * h < largest_u)
    ++blocks;
  double value = in.all.value * h, pdf = in.all.pdf * h;
  // A change below this that shrinks no more is rounding, not the rule's error.
  const double noise = std::fmax(1e-11, 4 * s.rounding);
  // The first level is three: with every node, every second, every fourth.
  Convergence tail{relative_change(value, in.even.value * 2 * h),
                   relative_change(2 * in.even.value, 4 * in.fourth.value), noise};
  Convergence density{relative_change(pdf, in.even.pdf * 2 * h),
                      relative_change(2 * in.even.pdf, 4 * in.fourth.pdf), noise};
  const auto done = [&] { return tail.done() && (no_density || density.done()); };
  while (!done() && in.nodes < most) {
    for (int b = 0; b < blocks; ++b) in.add((b * double(form_block) + 0.5) * h, h);
    h *= 0.5;
    blocks *= 2;
    tail = {relative_change(in.all.value * h, value), tail.change, noise};
    density = {relative_change(in.all.pdf * h, pdf), density.change, noise};
    value = in.all.value * h;
    pdf = in.all.pdf * h;
  }
  FormIntegral out;
  out.log_value = s.log_factor - std::log(s.t) - (order - 1) * std::log(s.point.t) +
                  s.log_second() + std::log(value / pi);
  out.log_pdf = s.log_factor + std::log(pdf / pi) + s.unit * ln2 + s.log_density_second();
  out.error = tail.error() + s.rounding;
  out.pdf_error = density.error() + s.rounding;
  if (no_density) {
    out.log_pdf = infinity;
    out.pdf_error = 0;
  }
  out.nodes = in.nodes;
  out.path = path;
  out.count = in.nodes;
  out.step = h;
  out.halved = h < first_step;
  return out;
}

}  // namespace

// Where two scales pull apart, the bent path can cancel that the straight one does not.
FormIntegral integrate(const QuadraticForm& form, const FormSaddle& s, double q, FormMoment moment,
                       const Kernels& kernels, std::vector<FormValues>* record) {
  const FormPath bent = choose_path(form, s, q), straight = straight_path(s);
  // Chernoff: no tail is above exp(K(t) - tq), and so no hockey stick.
  const double bound = plain(moment) ? s.log_factor + chernoff_slack : infinity;
  const double enough = std::fmax(met, 8 * s.rounding);
  FormIntegral best;
  int nodes = 0;
  for (const auto& [path, most] :
       {std::pair{bent, first_budget}, {straight, first_budget}, {bent, most_nodes}}) {
    const FormIntegral tried = integrate_along(path, most, form, s, q, moment, kernels, record);
    if (nodes == 0 || !(worst_error(best, bound) <= worst_error(tried, bound))) best = tried;
    nodes += tried.nodes;
    if (worst_error(best, bound) < enough) break;
  }
  if (best.log_value > bound) best.error = best.pdf_error = 1;
  best.nodes = nodes;
  return best;
}

FormContour form_contour(const QuadraticForm& form, double q, const Kernels& kernels) {
  q = std::ldexp(q, -form.exponent);
  const double sign = q > form.mean ? 1 : -1;
  const FormSaddle s = find_saddle(form, sign * q, sign, 1);
  const FormIntegral whole = integrate(form, s, sign * q, FormMoment::tail, kernels);
  const SaddleTerms terms = terms_at(s);
  const double unit = sign * std::ldexp(1.0, s.unit - form.exponent);
  const double scale = whole.step / pi * std::exp(s.log_factor) * std::fabs(unit);
  FormContour out;
  for (int first = 0; first < whole.count; first += int(form_block)) {
    double sinh_u[form_block], cosh_u[form_block];
    hyperbolic(first * whole.step, whole.step, sinh_u, cosh_u);
    FormValues v;
    kernels.form_nodes(whole.path, terms, sinh_u, cosh_u, v);
    for (std::size_t i = 0; i < form_block; ++i) {
      const std::complex<double> ratio(v.ratio_re[i], v.ratio_im[i]);
      const double half = first + int(i) == 0 ? 0.5 : 1;
      out.t.push_back(unit * s.t / ratio);
      out.weight.push_back(scale * half * std::complex<double>(v.density_re[i], v.density_im[i]));
    }
  }
  return out;
}

}  // namespace ellipsum
