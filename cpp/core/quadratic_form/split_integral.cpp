// The integral of low degrees of freedom,
//
//   (1/2 pi i) int exp(K0(t) - tq) (exp(K+(t)) - 1) dt/t,
//
// over t = t0 + A sinh u (i + c) above its own saddlepoint, c bent towards q. Its integrand
// changes only where |t| passes 1/2|w|, 1/|q| or 1/s, so the trapezoid rule runs in
//
//   v(u) = sum 1.5 asinh((u +- u_j)/1.5)   over these places u_j = log |t|,
//
// whose step in log t grows with the distance from them. The density is int t K'(t) e^(K - tq)
// dt/t over q, by parts, which has the factor dof; near q = 0 it is the usual one.
//
// How exact: three levels of the rule estimate the error, 1e-13 of the tail and 1e-12 of the
// density wanted; every factor is taken where it does not cancel (expm1, log1p).
#include "quadratic_form/split_integral.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

#include "constants.hpp"
#include "quadratic_form/contour.hpp"
#include "quadratic_form/saddle.hpp"

namespace ellipsum {
namespace {

using Complex = std::complex<double>;

// The path, t = t0 + z: width sinh u upwards, bent by a constant towards q.
constexpr double largest_bend = 1.4;           // slope to the right where s does not count
constexpr double normal_bend = 0.7;            // the same with a normal term, for q >> s:
constexpr double normal_bend_softening = 1.5;  // exp(s^2 t^2/2) needs a slope below 1; s against q
constexpr double widths_in_sd = 3;             // as the contour's
constexpr double far_u = 300;                  // u beyond which t is kept as its logarithm
constexpr double far_u_from = 20;              // never before: t0 is not negligible below
constexpr double largest_log = 650;            // of |t|, kept as itself
constexpr double largest_exponent = 300;       // e^300 squared is still a double

// The trapezoid rule in v(u).
constexpr double first_step = 0.1;    // mostly fine enough: one halving confirms it
constexpr double spacing = 1.5;       // of u about a scale where the step doubles
constexpr double apart = 4;           // of two scales, in log t: nearer ones share a point
constexpr double plain_length = 8;    // of a path that needs no second scale
constexpr double negligible = 1e-17;  // of a node against the largest
constexpr double tail_met = 1e-13, density_met = 1e-12;  // relative changes that end the halving
constexpr int most_nodes = 20000;  // a guard: the error that is left is then reported

// First and second derivative of a part of K at a real t.
struct Slopes {
  double first = 0, second = 0;
};

struct Saddlepoint {
  FormPoint point;
  double highest;
  double t() const { return point.t; }
  double one_minus_2wt(double w) const { return point.one_minus_2wt(w, highest); }
  Slopes slopes(const std::vector<FormTerm>& terms) const {
    Slopes s;
    for (const FormTerm& j : terms) {
      const double a = 1 / one_minus_2wt(j.weight), g = j.weight * a;
      s.first += g * (j.dof + j.noncentrality * a);
      s.second += 2 * g * g * (j.dof + 2 * j.noncentrality * a);
    }
    return s;
  }
};

// The saddlepoint of K+'(t) exp(K(t) - tq)/t, by bisection: every part of its slope increases.
Saddlepoint find_saddlepoint(const SignedTerms& s, double q) {
  constexpr double accuracy = 1e-9;  // of the chart: of a tail e^-L, this costs L 1e-18
  double low = -largest_chart, high = largest_chart;
  while (high - low > accuracy) {
    const double x = 0.5 * (low + high);
    const Saddlepoint p{point_at(x, s.highest), s.highest};
    const Slopes up = p.slopes(s.up), down = p.slopes(s.down);
    const double ratio = up.first > 0 ? up.second / up.first : 0;
    const double slope = ratio + up.first + down.first + s.sd * s.sd * p.t() - q - 1 / p.t();
    (slope > 0 ? high : low) = x;
  }
  return {point_at(0.5 * (low + high), s.highest), s.highest};
}

// A node of the path: t = t0 + z, or far out exp(log_t) * direction.
struct Node {
  bool far;
  Complex z, t, direction;
  double log_t;
  Complex over_t;  // (dt/du) / (i t)
};

// K of some terms at a node, and t K'(t).
struct Exponent {
  Complex value = 0, slope = 0;
};

Exponent exponent(const std::vector<FormTerm>& terms, const Saddlepoint& saddle, const Node& n) {
  constexpr double beyond = 100;  // of log |p|, where 1 - p = -p
  Exponent e;
  for (const FormTerm& j : terms) {
    Complex log, share = -1;  // log(1 - p) and p/(1 - p), p = 2wt
    const double size = n.far ? n.log_t + std::log(2 * std::fabs(j.weight)) : 0;
    const Complex toward = j.weight > 0 ? n.direction : -n.direction;
    if (size > beyond) {
      log = size + std::log(-toward);
    } else {
      const Complex p = n.far ? std::exp(size) * toward : 2 * j.weight * n.t;
      const Complex rest = n.far ? 1.0 - p : saddle.one_minus_2wt(j.weight) - 2 * j.weight * n.z;
      const double norm = std::norm(p);
      log = {norm < 0.25 ? 0.5 * std::log1p(norm - 2 * p.real()) : std::log(std::abs(rest)),
             std::arg(rest)};
      share = p / rest;
    }
    e.value += 0.5 * (j.noncentrality * share - j.dof * log);
    e.slope += 0.5 * share * (j.dof + j.noncentrality * (1.0 + share));
  }
  return e;
}

Complex expm1(Complex x) {
  const double s = std::sin(0.5 * x.imag());
  return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * s * s,
          std::exp(x.real()) * std::sin(x.imag())};
}

// v(u): u itself about each scale point, logarithmic between them; odd, so that the integrand
// stays even.
struct Chart {
  std::vector<double> scale_points;  // of u, from 0 upwards; none: v = u
  double slope(double u, double& v) const {
    if (scale_points.empty()) {
      v = u;
      return 1;
    }
    double total = 0;
    v = 0;
    for (const double m : scale_points) {
      for (const double x : {(u - m) / spacing, (u + m) / spacing}) {
        v += spacing * std::asinh(x);
        total += 1 / std::sqrt(1 + x * x);
        if (m == 0) break;
      }
    }
    return total;
  }
  // u at v, by Newton's method from a smaller one.
  double inverse(double v, double u) const {
    constexpr int most_steps = 100;      // a guard: from below, Newton's takes a few
    constexpr double last_step = 1e-13;  // relative: v(u) is smooth, u need not be exact
    for (int step = 0; step < most_steps; ++step) {
      double at;
      const double slope_here = slope(u, at), du = (v - at) / slope_here;
      u += du;
      if (std::fabs(du) < last_step * (1 + u)) break;
    }
    return u;
  }
};

struct Sums {
  double tail = 0, density = 0;
};

// What three levels of the trapezoid rule say: halving squares the error, but for a factor.
struct SplitConvergence {
  double change, previous;
  double error() const {
    constexpr double begun = 1e-2;  // of the first change: squaring has begun
    constexpr double factor = 1e3;  // of the square
    return previous < begun ? std::fmin(change, factor * change * change) + 1e-15 : change;
  }
  // A change so small that shrinks no more is rounding: no step reduces it.
  bool rounding() const { return change < 1e-11 && change > 0.1 * previous; }
};

double bend_towards(double q, double sd) {
  if (q == 0) return 0;
  if (sd == 0) return std::copysign(largest_bend, q);
  return normal_bend * q / (std::fabs(q) + normal_bend_softening * sd);
}

class Integrator {
 public:
  Integrator(const SignedTerms& s, double q) : s_(s), q_(q), saddle_(find_saddlepoint(s, q)) {
    const Slopes up = saddle_.slopes(s.up), down = saddle_.slopes(s.down);
    const double t = saddle_.t(), pole = s.up.empty() ? 1 / (t * t) : 0;
    const double right = s.highest > 0 ? 0.5 * saddle_.point.gap / s.highest : infinity;
    const double left = s.up.empty() ? t : (s.lowest < 0 ? t - 0.5 / s.lowest : infinity);
    const double curvature = up.second + down.second + s.sd * s.sd + pole;
    width_ = std::min(std::min(left, right), widths_in_sd / std::sqrt(curvature));
    bend_ = bend_towards(q, s.sd);
    base_ = exponent(s.down, saddle_, node(0)).value.real();
    const double k = exponent(s.up, saddle_, node(0)).value.real();
    top_ = k > 1 ? k : 0;
    // Without the normal term t K' exp(K) has the factor dof and no cancellation, except
    // where q is so small that exp(K) has decayed.
    by_slope_ = std::fabs(q) > 3 * s.sd && std::pow(std::fabs(q), 0.5 * s.dof) > s.dof;
    place_scale_points();
  }

  SplitIntegral integrate() {
    double h = first_step, u = 0;
    Sums even, fourth;
    int n = 0;
    for (int quiet = 0; quiet < 2 && n < most_nodes; ++n) {
      const Sums term = add(n * h, u, n == 0 ? 0.5 : 1, &quiet);
      if (n % 2 == 0) even.tail += term.tail, even.density += term.density;
      if (n % 4 == 0) fourth.tail += term.tail, fourth.density += term.density;
    }
    SplitConvergence tail{relative_change(all_.tail, 2 * even.tail),
                          relative_change(even.tail, 2 * fourth.tail)};
    SplitConvergence density{relative_change(all_.density, 2 * even.density),
                             relative_change(even.density, 2 * fourth.density)};
    const auto done = [&] {
      return (tail.error() < tail_met || tail.rounding()) &&
             (q_ == 0 || density.error() < density_met);
    };
    while (!done() && 2 * n < most_nodes) {
      const Sums before = all_;
      u = 0;
      for (int i = 0; i < n; ++i) add((i + 0.5) * h, u, 1, nullptr);
      h *= 0.5;
      n *= 2;
      tail = {relative_change(all_.tail, 2 * before.tail), tail.change};
      density = {relative_change(all_.density, 2 * before.density), density.change};
    }
    const double t = saddle_.t(),
                 factor = base_ + top_ + t * (0.5 * s_.sd * s_.sd * t - q_) + std::log(h / pi);
    return {factor + std::log(std::fabs(all_.tail)), factor + std::log(all_.density) + log_unit_,
            tail.error(), density.error(), n};
  }

 private:
  const SignedTerms& s_;
  const double q_;
  const Saddlepoint saddle_;
  double width_, bend_ = 0, base_ = 0, top_ = 0, log_unit_ = 0;
  bool by_slope_ = false;
  Chart chart_;
  Sums all_, largest_;

  // Where |t| passes 1/(2|w|), and where the path ends: 1/|q| or 1/s.
  void place_scale_points() {
    const double unit = std::max(std::fabs(q_), s_.sd);
    const double end = unit > 0 ? std::log(2 / unit) - std::log(width_) : infinity;
    log_unit_ = by_slope_            ? -std::log(std::fabs(q_))
                : end > plain_length ? -std::log(unit)
                                     : std::log(width_);
    std::vector<double> scales;
    for (const std::vector<FormTerm>* part : {&s_.up, &s_.down})
      for (const FormTerm& t : *part)
        scales.push_back(-std::log(std::fabs(t.weight)) - std::log(width_));
    std::sort(scales.begin(), scales.end());
    chart_.scale_points.push_back(0);
    for (const double u : scales)
      if (u > chart_.scale_points.back() + apart && u < end - apart)
        chart_.scale_points.push_back(u);
    if (end < infinity && end > plain_length) chart_.scale_points.push_back(end);
    if (chart_.scale_points.size() == 1 && end < infinity) chart_.scale_points.clear();
  }

  Node node(double u) const {
    Node n{u > std::min(far_u, largest_log - std::log(width_)), 0, 0, {bend_, 1}, 0, {0, -1}};
    n.far = n.far && u > far_u_from;
    if (n.far) {
      n.log_t = u + std::log(0.5 * width_);
      return n;
    }
    const double y = width_ * std::sinh(u), root = std::hypot(width_, y), slope = bend_ * y / root;
    n.z = {slope * (y / (1 + width_ / root)), y};
    n.t = saddle_.t() + n.z;
    n.over_t = width_ * std::cosh(u) * Complex(1, -slope) / n.t;
    return n;
  }

  // The linear and normal part of the exponent, from the saddlepoint.
  Complex drift(const Node& n) const {
    const double s2 = s_.sd * s_.sd, t = saddle_.t();
    if (!n.far) return -n.z * q_ + 0.5 * s2 * n.z * (2 * t + n.z);
    const auto times = [&](double x) {
      return x > 0 ? std::exp(std::fmin(n.log_t + std::log(x), largest_exponent)) : 0;
    };
    const Complex st = times(s_.sd) * n.direction;
    return 0.5 * st * st - std::copysign(times(std::fabs(q_)), q_) * n.direction +
           t * (q_ - 0.5 * s2 * t);
  }

  Sums add(double v, double& u, double share, int* quiet) {
    u = chart_.inverse(v, u);
    double unused;
    share /= chart_.slope(u, unused);
    const Node n = node(u);
    const Exponent down = exponent(s_.down, saddle_, n), up = exponent(s_.up, saddle_, n);
    const Complex rest = std::exp(down.value - base_ + drift(n));
    const Complex whole = rest * std::exp(up.value - top_);
    const Complex split = s_.up.empty() ? rest
                          : top_ == 0   ? rest * expm1(up.value)
                                        : whole - rest * std::exp(-top_);
    Complex density = n.over_t;
    if (by_slope_) {
      const Complex st = n.far ? 0 : s_.sd * n.t;
      density *= (q_ > 0 ? 1.0 : -1.0) * (down.slope + up.slope + st * st);
    } else {
      density *= n.far ? std::exp(std::fmin(n.log_t - log_unit_, largest_exponent)) * n.direction
                       : n.t * std::exp(-log_unit_);
    }
    const Complex a = share * split * n.over_t, b = share * whole * density;
    all_.tail += a.real();
    all_.density += b.real();
    if (quiet) {
      const double size = std::abs(a), size_b = std::abs(b);
      largest_ = {std::max(largest_.tail, size), std::max(largest_.density, size_b)};
      const bool over =
          size < negligible * largest_.tail && (q_ == 0 || size_b < negligible * largest_.density);
      *quiet = over ? *quiet + 1 : 0;
    }
    return {a.real(), b.real()};
  }
};

}  // namespace

SignedTerms signed_terms(const QuadraticForm& f, double sign) {
  SignedTerms s;
  const auto add = [&](FormTerm t) {
    t.weight *= sign;
    (t.weight > 0 ? s.up : s.down).push_back(t);
    s.highest = std::max(s.highest, t.weight);
    s.lowest = std::min(s.lowest, t.weight);
  };
  for (const FormTerm& t : f.terms) add(t);
  s.sd = f.normal_sd;
  s.dof = f.total_dof;
  return s;
}

SplitIntegral split_integral(const SignedTerms& terms, double q) {
  return Integrator(terms, q).integrate();
}

}  // namespace ellipsum
