// The saddlepoint t0 > 0 solves K'(t) - p/t = q, where p is the order of the pole at 0 (Rice
// 1980; Helstrom 1996): Newton's method on log(up/down) = 0, the terms of the equation split by
// sign, in a chart where the slope lies between 0 and 4 whatever the scales; a bracket guards it.
//
// How exact: t0 only to `Chart::near_enough` (any path through a point near it gives the same
// integral), but what is said of the point found is right to rounding: each 1 - 2wt from the
// carried gap, K(t0) - t0 q summed with compensation, terms with 2wt < 1/2 without their mean.
#include "quadratic_form/saddle.hpp"

#include <algorithm>
#include <cmath>

#include "constants.hpp"
#include "quadratic_form/clusters.hpp"

namespace ellipsum {
namespace {

constexpr double centered_below = 0.5;  // |2wt| of terms that are summed without their mean

// Taken for one weight at their mean, a cluster's weights move K' by spread^2 u^2 sqrt(mass) of
// its standard deviation at most: a fifth of it does not mislead Newton's method.
constexpr double one_weight_reach = 0.05, one_weight_shift = 0.2;

// K'(t) - q - p/t split by sign, so that its root is a root of log(up/down), whose slope in
// the chart lies between 0 and 4 whatever the scales. Slopes are derivatives times t.
struct Balance {
  double up, down, up_slope, down_slope;
};

void weigh(Balance& b, const FormTerm& term, double sign, double highest, const FormPoint& p) {
  const double w = sign * term.weight;
  const double a = 1 / p.one_minus_2wt(w, highest);
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

struct Poles {
  double power, second;  // of t; and the distance of the other one beyond 0
};

Balance balance(const QuadraticForm& f, double sign, double highest, double q, const Poles& poles,
                const FormPoint& p) {
  const double s2 = f.normal_sd * f.normal_sd, power = poles.power,
               other = 1 / (p.t + poles.second);
  Balance b{s2 * p.t, power / p.t + other, s2 * p.t, -power / p.t - p.t * other * other};
  (q > 0 ? b.down : b.up) += std::fabs(q);
  for (const FormTerm& term : f.terms) weigh(b, term, sign, highest, p);
  for (const FormCluster& c : f.clusters) {
    const double w = sign * c.center, u = 2 * w * p.t / p.one_minus_2wt(w, highest);
    const double mass = c.half_dof + c.half_noncentrality, reach = c.spread * std::fabs(u);
    if (c.begin == c.end ||
        (reach < one_weight_reach && reach * reach * std::sqrt(mass) < one_weight_shift)) {
      const double mean = (c.dof_moments[0] + c.noncentrality_moments[0]) / mass;
      weigh(b, {c.center * (1 + mean), 2 * c.half_dof, 2 * c.half_noncentrality}, sign, highest, p);
    } else {
      for (std::size_t j = c.begin; j < c.end; ++j) weigh(b, f.members[j], sign, highest, p);
    }
  }
  return b;
}

// Where a Gaussian of the same mean and variance has its saddlepoint.
double first_chart(const QuadraticForm& f, double sign, double highest, double q, double power) {
  const double distance = q - sign * f.mean;
  const double root = std::sqrt(distance * distance + 4 * power * f.variance);
  const double t =
      distance > 0 ? (distance + root) / (2 * f.variance) : 2 * power / (root - distance);
  return highest > 0 ? std::log(2 * highest * t) : std::log(t);
}

FormPoint solve(const QuadraticForm& f, double sign, double highest, double q, const Poles& poles) {
  const double x = first_chart(f, sign, highest, q, poles.power);
  return balanced_point(x, highest,
                        [&](const FormPoint& p) { return balance(f, sign, highest, q, poles, p); });
}

// Fills a FormSaddle term by term; K(t) = log_mgf + t * center.
struct Surroundings {
  FormSaddle& s;
  double sign, highest, unit;
  Compensated log_mgf, center;

  void derivatives(double r, double half_dof, double kappa) {
    s.phi2 += r * r * (half_dof + 2 * kappa);
    s.phi3 += r * r * r * (2 * half_dof + 6 * kappa);
  }

  void add(const FormTerm& term) {
    const double t = s.point.t, w = sign * term.weight, x = 2 * w * t;
    const double a = s.point.one_minus_2wt(w, highest);
    const double r = 2 * (w * unit) / a, kappa = 0.5 * term.noncentrality / a;
    s.r.push_back(r);
    s.half_dof.push_back(0.5 * term.dof);
    s.kappa.push_back(kappa);
    derivatives(r, 0.5 * term.dof, kappa);
    if (std::fabs(x) < centered_below) {
      log_mgf.add(-0.5 * term.dof * log_defect(x));
      log_mgf.add(kappa * x * x);
      center.add_product(w, term.dof);
      center.add_product(w, term.noncentrality);
    } else {
      log_mgf.add(-0.5 * term.dof * (a > 0.5 ? std::log1p(-x) : std::log(a)));
      log_mgf.add(kappa * x);
    }
  }

  // The mean's part t sum w (k + l) is taken out where x = 2ct is small, as in add().
  void add(const FormCluster& c, std::size_t degree) {
    const double t = s.point.t, w = sign * c.center, x = 2 * w * t;
    const double a = s.point.one_minus_2wt(w, highest), u = x / a, n0 = c.half_noncentrality;
    const double *d = c.dof_moments, *e = c.noncentrality_moments;
    const auto taylor = [=](const double* moments, std::size_t from) {  // sum moments u^p
      double total = 0;
      for (std::size_t p = degree; p-- > from - 1;) total = (total + moments[p]) * u;
      return from == 1 ? total : total * u;
    };
    const double sum = taylor(d, 1), other = c.noncentral ? taylor(e, 1) : 0;
    const double noncentral = n0 * u + (1 + u) * other;
    const double r = 2 * (w * unit) / a;
    s.clusters.push_back(
        {r, u, sum, noncentral, c.half_dof, n0, d, c.noncentral ? e : nullptr, degree});
    derivatives(r, c.half_dof, n0 / a);
    if (std::fabs(x) < centered_below) {
      const double bend = x * u;  // u - x
      log_mgf.add(-c.half_dof * log_defect(x));
      log_mgf.add(d[0] * bend + taylor(d, 2));
      if (c.noncentral)
        log_mgf.add(n0 * bend + e[0] * x * (2 * x - x * x) / (a * a) + (1 + u) * taylor(e, 2));
      center.add_product(2 * w, c.half_dof);
      center.add_product(2 * w, d[0]);
      center.add_product(2 * w, n0);
      center.add_product(2 * w, c.noncentral ? e[0] : 0);
    } else {
      log_mgf.add(-c.half_dof * (a > 0.5 ? std::log1p(-x) : std::log(a)));
      log_mgf.add(sum + noncentral);
    }
  }
};

// The saddlepoint's surroundings, for a point already found.
FormSaddle describe(const QuadraticForm& f, const FormPoint& point, double q, double sign,
                    const Poles& poles) {
  const double power = poles.power;
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
  s.pole = poles.second;
  s.second = unit / (t + s.pole);
  s.phi2 = s.normal_variance + power / (t0 * t0) + s.second * s.second;
  s.phi3 = -2 * power / (t0 * t0 * t0) - 2 * s.second * s.second * s.second;
  s.drift = (s2 * t - q) * unit;
  Surroundings around{s, sign, highest, unit, {}, {}};
  around.center.add(-q);
  around.log_mgf.add(0.5 * s2 * t * t);
  const std::size_t n = f.terms.size();
  s.r.reserve(n);
  s.half_dof.reserve(n);
  s.kappa.reserve(n);
  for (std::size_t j = 0; j < f.general; ++j) around.add(f.terms[j]);
  std::vector<const FormCluster*> products;  // too wide for their series here
  for (const FormCluster& c : f.clusters) {
    const double w = sign * c.center;
    const std::size_t degree = degree_needed(c, 2 * w * t / point.one_minus_2wt(w, highest));
    if (degree) around.add(c, degree);
    else if (c.shared) products.push_back(&c);
    else
      for (std::size_t j = c.begin; j < c.end; ++j) around.add(f.members[j]);
  }
  s.general = s.r.size();
  for (const FormGroup& g : f.groups) {
    s.groups.push_back({s.r.size(), s.r.size() + g.end - g.begin, g.half_dof});
    for (std::size_t j = g.begin; j < g.end; ++j) around.add(f.terms[j]);
  }
  for (const FormCluster* c : products) {
    s.groups.push_back({s.r.size(), s.r.size() + c->end - c->begin, 0.5 * f.members[c->begin].dof});
    for (std::size_t j = c->begin; j < c->end; ++j) around.add(f.members[j]);
  }
  around.log_mgf.add_product(t, around.center.value());
  s.log_factor = around.log_mgf.value();
  return s;
}

}  // namespace

// log(1 - x) + x for |x| <= 1/2, to a few units of its own last digit: the series, of the
// remainder s^15/17 < 2^-62 relative to its first term, where the sum would cancel.
double log_defect(double x) {
  constexpr double series_below = 0.125;  // beyond, the sum loses four bits at most
  if (std::fabs(x) > series_below) return std::log1p(-x) + x;
  const double s = x / (2 - x), s2 = s * s;  // log1p(-x) = -2 atanh(s), x = 2s/(1+s)
  double series = 0;
  for (int n = 15; n >= 3; n -= 2) series = (series + 1.0 / n) * s2;
  return -2 * s * (s / (1 + s) + series);
}

FormPoint point_at(double chart, double highest) {
  if (!(highest > 0)) return {std::exp(chart), 1};
  const double e = std::exp(-std::fabs(chart));
  const double share = (chart < 0 ? e : 1) / (1 + e);
  const double gap = (chart < 0 ? 1 : e) / (1 + e);
  return {share / (2 * highest), gap};
}

FormSaddle find_saddle(const QuadraticForm& f, double q, double sign, double power, double pole) {
  const double highest = sign > 0 ? f.highest : -f.lowest;
  const Poles poles{power, pole};
  return describe(f, solve(f, sign, highest, q, poles), q, sign, poles);
}

FormSaddle saddle_of_tail(const QuadraticForm& f, double log_tail, double sign, double& q) {
  const double highest = sign > 0 ? f.highest : -f.lowest;
  constexpr int most = 100;          // steps: bisection alone takes 60
  constexpr double log_near = 0.02;  // miss of the log tail: the approximation itself is no better
  constexpr double stalled = 1e-6;   // of the chart
  double below = -infinity, above = infinity, reach = 2;
  double x = 0.5 * std::log(std::fmax(-2 * log_tail, 1) / f.variance);  // of a Gaussian
  if (highest > 0) x += std::log(2 * highest);
  for (int step = 0;; ++step) {
    const FormPoint p = point_at(x, highest);
    const Balance b = balance(f, sign, highest, 0, {1, infinity}, p);
    q = b.up - b.down;  // K'(t) - 1/t
    FormSaddle s = describe(f, p, q, sign, {1, infinity});
    const double miss = s.log_factor - std::log(s.t) - 0.5 * std::log(2 * pi * s.phi2) - log_tail;
    if (std::fabs(miss) < log_near || step == most) return s;
    (miss > 0 ? below : above) = x;
    double dx = miss / (s.t * s.t * s.phi2 * p.gap);  // d log tail / dt = -t phi2
    if (!(std::fabs(dx) <= reach)) {
      dx = miss > 0 ? reach : -reach;
      reach *= 2;
    }
    if (!(x + dx > below && x + dx < above)) dx = 0.5 * (below + above) - x;
    x = std::min(std::max(x + dx, -largest_chart), largest_chart);
    if (std::fabs(dx) < stalled) return s;
  }
}

double slope_off_axis(const FormSaddle& s, double y) {
  double slope = s.drift;
  // r/(1-iv) has real part r/(1+v^2), its square (1-v^2)/(1+v^2)^2
  const auto add = [&](double r, double half_dof, double kappa) {
    const double v = r * y, inverse = 1 / (1 + v * v);
    slope += r * inverse * (half_dof + kappa * (1 - v * v) * inverse);
  };
  for (std::size_t j = 0; j < s.r.size(); ++j) {
    add(s.r[j], s.half_dof[j], s.kappa[j]);
    if (j < s.centered) slope -= s.r[j] * s.kappa[j];
  }
  for (const SaddleCluster& b : s.clusters) add(b.r, b.half_dof, b.half_noncentrality * (1 + b.u0));
  return slope;
}

}  // namespace ellipsum
