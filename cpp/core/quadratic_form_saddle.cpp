#include <algorithm>
#include <cmath>
#include <limits>

#include "form_saddle.hpp"

namespace ellipsum {
namespace {

constexpr double widest = 700;  // of the chart: e^widest is still a double
constexpr double pi = 3.14159265358979323846;
constexpr double infinity = std::numeric_limits<double>::infinity();

// K'(t) - q - p/t split by sign, so that its root is a root of log(up/down), whose slope in
// the chart lies between 0 and 4 whatever the scales. Slopes are derivatives times t.
struct Balance {
  double up, down, up_slope, down_slope;
};

// 1 - 2wt without cancellation next to the branch point of the largest weight.
double survivor(double w, const FormPoint& p, double highest) {
  if (w > 0 && p.gap < 0.5) return ((highest - w) + w * p.gap) / highest;
  return 1 - 2 * w * p.t;
}

Balance balance(const QuadraticForm& f, double sign, double highest, double q, double power,
                const FormPoint& p) {
  const double s2 = f.normal_sd * f.normal_sd;
  Balance b{s2 * p.t, power / p.t, s2 * p.t, -power / p.t};
  (q > 0 ? b.down : b.up) += std::fabs(q);
  for (const FormTerm& term : f.terms) {
    const double w = sign * term.weight;
    const double a = 1 / survivor(w, p, highest);
    const double g = std::fabs(w) * a;
    const double first = g * (term.dof + term.noncentrality * a);
    const double second = 2 * g * (g * p.t) * (term.dof + 2 * term.noncentrality * a);
    if (w > 0) {
      b.up += first;
      b.up_slope += second;
    } else {
      b.down += first;
      b.down_slope -= second;
    }
  }
  return b;
}

FormPoint point_at(double chart, double highest) {
  if (!(highest > 0)) return {std::exp(chart), 1, chart};
  const double e = std::exp(-std::fabs(chart));
  const double share = (chart < 0 ? e : 1) / (1 + e);
  const double gap = (chart < 0 ? 1 : e) / (1 + e);
  return {share / (2 * highest), gap, chart};
}

// Where a Gaussian of the same mean and variance has its saddlepoint.
double first_chart(const QuadraticForm& f, double sign, double highest, double q, double power) {
  const double distance = q - sign * f.mean;
  const double root = std::sqrt(distance * distance + 4 * power * f.variance);
  const double t = distance > 0 ? (distance + root) / (2 * f.variance)
                                : 2 * power / (root - distance);
  return highest > 0 ? std::log(2 * highest * t) : std::log(t);
}

FormPoint solve(const QuadraticForm& f, double sign, double highest, double q, double power) {
  double x = first_chart(f, sign, highest, q, power);
  double below = -infinity, above = infinity, reach = 4;
  for (int step = 0; step < 200; ++step) {
    const FormPoint p = point_at(x, highest);
    const Balance b = balance(f, sign, highest, q, power, p);
    const double miss = std::log(b.up / b.down);
    (miss < 0 ? below : above) = x;
    const double slope = (b.up_slope / b.up - b.down_slope / b.down) * p.gap;
    double dx = -miss / slope;
    if (!(std::fabs(dx) <= reach)) {
      dx = miss < 0 ? reach : -reach;
      reach *= 2;
    }
    if (!(x + dx > below && x + dx < above)) dx = 0.5 * (below + above) - x;
    x = std::min(std::max(x + dx, -widest), widest);
    if (std::fabs(dx) < 0.02) break;
  }
  return point_at(x, highest);
}

// log(1 - x) + x, to full relative accuracy.
double log_defect(double x) {
  if (std::fabs(x) > 0.125) return std::log1p(-x) + x;
  const double s = x / (2 - x), s2 = s * s;  // log1p(-x) = -2 atanh(s), x = 2s/(1+s)
  double series = 0;
  for (int n = 15; n >= 3; n -= 2) series = (series + 1.0 / n) * s2;
  return -2 * s * (s / (1 + s) + series);
}

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

// The saddlepoint's surroundings, for a point already found.
FormSaddle describe(const QuadraticForm& f, const FormPoint& point, double q, double sign,
                    double power) {
  const double highest = sign > 0 ? f.highest : -f.lowest;
  const double lowest = sign > 0 ? f.lowest : -f.highest;
  FormSaddle s;
  s.point = point;
  const double t = s.point.t, s2 = f.normal_sd * f.normal_sd;
  std::frexp(t, &s.unit);
  const double unit = std::ldexp(1.0, s.unit), t0 = t / unit;
  s.t = t0;
  s.normal_variance = s2 * unit * unit;
  s.left = power > 0 ? t0 : (lowest < 0 ? t0 - 0.5 / lowest / unit : infinity);
  s.right = highest > 0 ? 0.5 * s.point.gap / highest / unit : infinity;
  s.phi2 = s.normal_variance + power / (t0 * t0);
  s.phi3 = -2 * power / (t0 * t0 * t0);
  s.drift = (s2 * t - q) * unit;
  const std::size_t n = f.terms.size();
  s.r.resize(n);
  s.half_dof.resize(n);
  s.kappa.resize(n);
  Compensated log_mgf, centre;  // K(t) = log_mgf + t * centre
  centre.add(-q);
  log_mgf.add(0.5 * s2 * t * t);
  std::size_t j = 0;
  for (const FormTerm& term : f.terms) {
    const double w = sign * term.weight, x = 2 * w * t;
    const double a = survivor(w, s.point, highest);
    const double r = 2 * (w * unit) / a, kappa = 0.5 * term.noncentrality / a;
    s.r[j] = r;
    s.half_dof[j] = 0.5 * term.dof;
    s.kappa[j] = kappa;
    s.phi2 += r * r * (0.5 * term.dof + 2 * kappa);
    s.phi3 += r * r * r * (term.dof + 6 * kappa);
    if (std::fabs(x) < 0.5) {
      log_mgf.add(-0.5 * term.dof * log_defect(x));
      log_mgf.add(kappa * x * x);
      centre.add_product(w, term.dof);
      centre.add_product(w, term.noncentrality);
    } else {
      log_mgf.add(-0.5 * term.dof * (a > 0.5 ? std::log1p(-x) : std::log(a)));
      log_mgf.add(kappa * x);
    }
    ++j;
  }
  log_mgf.add_product(t, centre.value());
  s.log_factor = log_mgf.value();
  return s;
}

}  // namespace

FormSaddle find_saddle(const QuadraticForm& f, double q, double sign, double power) {
  const double highest = sign > 0 ? f.highest : -f.lowest;
  return describe(f, solve(f, sign, highest, q, power), q, sign, power);
}

FormSaddle saddle_of_tail(const QuadraticForm& f, double log_tail, double sign, double& q) {
  const double highest = sign > 0 ? f.highest : -f.lowest;
  double below = -infinity, above = infinity, reach = 2;
  double x = 0.5 * std::log(std::fmax(-2 * log_tail, 1) / f.variance);  // of a Gaussian
  if (highest > 0) x += std::log(2 * highest);
  for (int step = 0;; ++step) {
    const FormPoint p = point_at(x, highest);
    const Balance b = balance(f, sign, highest, 0, 1, p);
    q = b.up - b.down;  // K'(t) - 1/t
    const FormSaddle s = describe(f, p, q, sign, 1);
    const double miss = s.log_factor - std::log(s.t) - 0.5 * std::log(2 * pi * s.phi2) - log_tail;
    if (std::fabs(miss) < 0.02 || step == 100) return s;
    (miss > 0 ? below : above) = x;
    double dx = miss / (s.t * s.t * s.phi2 * p.gap);  // d log tail / dt = -t phi2
    if (!(std::fabs(dx) <= reach)) {
      dx = miss > 0 ? reach : -reach;
      reach *= 2;
    }
    if (!(x + dx > below && x + dx < above)) dx = 0.5 * (below + above) - x;
    x = std::min(std::max(x + dx, -widest), widest);
    if (std::fabs(dx) < 1e-6) return s;
  }
}

double form_slope_off_axis(const FormSaddle& s, double y) {
  double slope = s.drift;
  for (std::size_t j = 0; j < s.r.size(); ++j) {
    const double v = s.r[j] * y, inverse = 1 / (1 + v * v);
    // r/(1-iv) has real part r/(1+v^2), its square (1-v^2)/(1+v^2)^2
    slope += s.r[j] * inverse * (s.half_dof[j] + s.kappa[j] * (1 - v * v) * inverse);
  }
  return slope;
}

}  // namespace ellipsum
