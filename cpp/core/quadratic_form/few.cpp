// With K = K+ + K0, K+ of the positive weights (of sign * Q) and Q0 the sum of all the rest,
//
//   P(Q > q) = P(Q0 > q) + (1/2 pi i) int exp(K0(t) - tq) (exp(K+(t)) - 1) dt/t,
//
// two positive numbers: no cancellation however small the dof of K+. The integrand is smooth
// over hundreds of units of log t, so the step grows between the scales of the weights, of
// 1/q and of 1/s.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "quadratic_form/few.hpp"
#include "quadratic_form/saddle.hpp"

namespace ellipsum {
namespace {

using Complex = std::complex<double>;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double pi = 3.14159265358979323846;
constexpr double ln2 = 0.69314718055994530942;
constexpr double most = 2;             // degrees of freedom, and noncentrality
constexpr double tiny = 0.2;           // dof of one sign that the contour would lose digits to
constexpr double near_zero = 1e-4;     // q and s, where the contour takes thousands of nodes
constexpr double first_step = 0.1;    // of the trapezoid rule in v
constexpr double spacing = 1.5;       // of u about a scale where the step doubles
constexpr double widest_bend = 1.4;   // of the path, where s does not count
constexpr double apart = 4;           // of two scales, in log t
constexpr double plain_length = 8;     // of a path that needs no second scale
constexpr double farthest = 300;       // u beyond which t is kept as its logarithm
constexpr double largest_log = 650;
constexpr int most_nodes = 20000;

struct Signed {
  std::vector<FormTerm> up, down;  // of positive and of negative weight
  double highest = 0, lowest = 0, sd = 0, dof = 0;
};

Signed signed_terms(const QuadraticForm& f, double sign) {
  Signed s;
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

// First and second derivative of a part of K at a real t.
struct Slopes {
  double first = 0, second = 0;
};

struct Apex {
  double t, gap, highest;  // gap: 1 - 2 highest t
  double survivor(double w) const {  // 1 - 2wt
    if (w > 0 && gap < 0.5) return ((highest - w) + w * gap) / highest;
    return 1 - 2 * w * t;
  }
  Slopes slopes(const std::vector<FormTerm>& terms) const {
    Slopes s;
    for (const FormTerm& j : terms) {
      const double a = 1 / survivor(j.weight), g = j.weight * a;
      s.first += g * (j.dof + j.noncentrality * a);
      s.second += 2 * g * g * (j.dof + 2 * j.noncentrality * a);
    }
    return s;
  }
};

Apex apex_at(double chart, double highest) {
  if (!(highest > 0)) return {std::exp(chart), 1, 0};
  const double e = std::exp(-std::fabs(chart));
  return {(chart < 0 ? e : 1) / (1 + e) / (2 * highest), (chart < 0 ? 1 : e) / (1 + e), highest};
}

// The saddlepoint of K+'(t) exp(K(t) - tq)/t, by bisection: every part of its slope increases.
Apex find_apex(const Signed& s, double q) {
  double low = -700, high = 700;
  while (high - low > 1e-9) {  // of a tail e^-L, this costs L 1e-18
    const double x = 0.5 * (low + high);
    const Apex p = apex_at(x, s.highest);
    const Slopes up = p.slopes(s.up), down = p.slopes(s.down);
    const double ratio = up.first > 0 ? up.second / up.first : 0;
    const double slope = ratio + up.first + down.first + s.sd * s.sd * p.t - q - 1 / p.t;
    (slope > 0 ? high : low) = x;
  }
  return apex_at(0.5 * (low + high), s.highest);
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

Exponent exponent(const std::vector<FormTerm>& terms, const Apex& apex, const Node& n) {
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
      const Complex rest = n.far ? 1.0 - p : apex.survivor(j.weight) - 2 * j.weight * n.z;
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

// v(u): u itself about each mark, logarithmic between them; odd, so that the integrand stays even.
struct Chart {
  std::vector<double> marks;  // of u, from 0 upwards; none: v = u
  double slope(double u, double& v) const {
    if (marks.empty()) {
      v = u;
      return 1;
    }
    double total = 0;
    v = 0;
    for (const double m : marks) {
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
    for (int step = 0; step < 100; ++step) {
      double at;
      const double slope_here = slope(u, at), du = (v - at) / slope_here;
      u += du;
      if (std::fabs(du) < 1e-13 * (1 + u)) break;
    }
    return u;
  }
};

struct Sums {
  double tail = 0, density = 0;
};

struct Integral {
  double tail, log_pdf, error, pdf_error;  // tail: its logarithm
  int nodes;
};

// What three levels of the trapezoid rule say: halving squares the error, but for a factor.
struct Levels {
  double change, previous;
  double error() const {
    return previous < 1e-2 ? std::fmin(change, 1e3 * change * change) + 1e-15 : change;
  }
  bool rounding() const { return change < 1e-11 && change > 0.1 * previous; }
};

class FewIntegral {
 public:
  FewIntegral(const Signed& s, double q) : s_(s), q_(q), apex_(find_apex(s, q)) {
    const Slopes up = apex_.slopes(s.up), down = apex_.slopes(s.down);
    const double t = apex_.t, pole = s.up.empty() ? 1 / (t * t) : 0;
    const double right = s.highest > 0 ? 0.5 * apex_.gap / s.highest : infinity;
    const double left = s.up.empty() ? t : (s.lowest < 0 ? t - 0.5 / s.lowest : infinity);
    const double curvature = up.second + down.second + s.sd * s.sd + pole;
    width_ = std::min(std::min(left, right), 3 / std::sqrt(curvature));
    bend_ = q == 0 ? 0 : s.sd == 0 ? std::copysign(widest_bend, q) : 0.7 * q / (std::fabs(q) + 1.5 * s.sd);
    base_ = exponent(s.down, apex_, node(0)).value.real();
    const double k = exponent(s.up, apex_, node(0)).value.real();
    top_ = k > 1 ? k : 0;
    // Without the normal term t K' exp(K) has the factor dof and no cancellation, except
    // where q is so small that exp(K) has decayed.
    by_slope_ = std::fabs(q) > 3 * s.sd && std::pow(std::fabs(q), 0.5 * s.dof) > s.dof;
    mark_scales();
  }

  Integral integrate() {
    double h = first_step, u = 0;
    Sums even, fourth;
    int n = 0;
    for (int quiet = 0; quiet < 2 && n < most_nodes; ++n) {
      const Sums term = add(n * h, u, n == 0 ? 0.5 : 1, &quiet);
      if (n % 2 == 0) even.tail += term.tail, even.density += term.density;
      if (n % 4 == 0) fourth.tail += term.tail, fourth.density += term.density;
    }
    Levels tail{relative_change(all_.tail, 2 * even.tail), relative_change(even.tail, 2 * fourth.tail)};
    Levels density{relative_change(all_.density, 2 * even.density),
                        relative_change(even.density, 2 * fourth.density)};
    const auto done = [&] {
      return (tail.error() < 1e-13 || tail.rounding()) && (q_ == 0 || density.error() < 1e-12);
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
    const double t = apex_.t, factor = base_ + top_ + t * (0.5 * s_.sd * s_.sd * t - q_) + std::log(h / pi);
    return {factor + std::log(std::fabs(all_.tail)), factor + std::log(all_.density) + log_unit_,
            tail.error(), density.error(), n};
  }

 private:
  const Signed& s_;
  const double q_;
  const Apex apex_;
  double width_, bend_ = 0, base_ = 0, top_ = 0, log_unit_ = 0;
  bool by_slope_ = false;
  Chart chart_;
  Sums all_, largest_;

  // Where |t| passes 1/(2|w|), and where the path ends: 1/|q| or 1/s.
  void mark_scales() {
    const double unit = std::max(std::fabs(q_), s_.sd);
    const double end = unit > 0 ? std::log(2 / unit) - std::log(width_) : infinity;
    log_unit_ = by_slope_ ? -std::log(std::fabs(q_)) : end > plain_length ? -std::log(unit) : std::log(width_);
    std::vector<double> scales;
    for (const std::vector<FormTerm>* part : {&s_.up, &s_.down})
      for (const FormTerm& t : *part) scales.push_back(-std::log(std::fabs(t.weight)) - std::log(width_));
    std::sort(scales.begin(), scales.end());
    chart_.marks.push_back(0);
    for (const double u : scales)
      if (u > chart_.marks.back() + apart && u < end - apart) chart_.marks.push_back(u);
    if (end < infinity && end > plain_length) chart_.marks.push_back(end);
    if (chart_.marks.size() == 1 && end < infinity) chart_.marks.clear();
  }

  Node node(double u) const {
    Node n{u > std::min(farthest, largest_log - std::log(width_)), 0, 0, {bend_, 1}, 0, {0, -1}};
    n.far = n.far && u > 20;
    if (n.far) {
      n.log_t = u + std::log(0.5 * width_);
      return n;
    }
    const double y = width_ * std::sinh(u), root = std::hypot(width_, y), slope = bend_ * y / root;
    n.z = {slope * (y / (1 + width_ / root)), y};
    n.t = apex_.t + n.z;
    n.over_t = width_ * std::cosh(u) * Complex(1, -slope) / n.t;
    return n;
  }

  // The linear and normal part of the exponent, from the apex.
  Complex drift(const Node& n) const {
    const double s2 = s_.sd * s_.sd, t = apex_.t;
    if (!n.far) return -n.z * q_ + 0.5 * s2 * n.z * (2 * t + n.z);
    const auto times = [&](double x) { return x > 0 ? std::exp(std::fmin(n.log_t + std::log(x), 300)) : 0; };
    const Complex st = times(s_.sd) * n.direction;
    return 0.5 * st * st - std::copysign(times(std::fabs(q_)), q_) * n.direction + t * (q_ - 0.5 * s2 * t);
  }

  Sums add(double v, double& u, double share, int* quiet) {
    u = chart_.inverse(v, u);
    double unused;
    share /= chart_.slope(u, unused);
    const Node n = node(u);
    const Exponent down = exponent(s_.down, apex_, n), up = exponent(s_.up, apex_, n);
    const Complex rest = std::exp(down.value - base_ + drift(n));
    const Complex whole = rest * std::exp(up.value - top_);
    const Complex split = s_.up.empty() ? rest : top_ == 0 ? rest * expm1(up.value) : whole - rest * std::exp(-top_);
    Complex density = n.over_t;
    if (by_slope_) {
      const Complex st = n.far ? 0 : s_.sd * n.t;
      density *= (q_ > 0 ? 1.0 : -1.0) * (down.slope + up.slope + st * st);
    } else {
      density *= n.far ? std::exp(std::fmin(n.log_t - log_unit_, 300)) * n.direction : n.t * std::exp(-log_unit_);
    }
    const Complex a = share * split * n.over_t, b = share * whole * density;
    all_.tail += a.real();
    all_.density += b.real();
    if (quiet) {
      constexpr double negligible = 1e-17;
      const double size = std::abs(a), size_b = std::abs(b);
      largest_ = {std::max(largest_.tail, size), std::max(largest_.density, size_b)};
      const bool over = size < negligible * largest_.tail && (q_ == 0 || size_b < negligible * largest_.density);
      *quiet = over ? *quiet + 1 : 0;
    }
    return {a.real(), b.real()};
  }
};

double log_sum(double a, double b) { return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b))); }

// P(sign Q > q), q times sign by the caller.
FormTail one_side(const QuadraticForm& f, double q, double sign) {
  const Signed s = signed_terms(f, sign);
  Integral whole{-infinity, 0, 0, 0, 0};
  if (!s.up.empty()) whole = FewIntegral(s, q).integrate();
  const double normal = s.sd > 0 ? log_normal_tail(q / s.sd) : q < 0 ? 0 : -infinity;  // >= P(Q0 > q)
  if (normal > whole.tail - 40) {
    Signed others = s;
    others.up.clear();
    others.highest = 0;
    Integral rest{normal, 0, 4e-16, 0, 0};
    if (!others.down.empty()) rest = FewIntegral(others, q).integrate();
    if (s.up.empty()) whole.log_pdf = rest.log_pdf, whole.pdf_error = rest.pdf_error;
    const double sum = log_sum(whole.tail, rest.tail);
    whole.error = whole.error * std::exp(whole.tail - sum) + rest.error * std::exp(rest.tail - sum);
    whole.tail = sum;
    whole.nodes += rest.nodes;
  }
  if (q == 0 && s.sd == 0) whole.log_pdf = infinity, whole.pdf_error = 0;
  return {whole.tail, whole.log_pdf, whole.error, whole.pdf_error, sign > 0, whole.nodes};
}

// Degrees of freedom and noncentrality of the weights of one sign.
FormTerm mass(const std::vector<FormTerm>& terms) {
  FormTerm sum{0, 0, 0};
  for (const FormTerm& t : terms) sum.dof += t.dof, sum.noncentrality += t.noncentrality;
  return sum;
}

// The smaller tail, first tried on this side.
FormTail settle(const QuadraticForm& f, double q, double sign) {
  constexpr double enough = 0.9;  // up to here 1 - p costs one digit at most
  const FormTail t = one_side(f, sign * q, sign);
  if (t.log_small < -ln2) return t;
  if (t.log_small < std::log(enough)) return complement(t);
  FormTail small = one_side(f, -sign * q, -sign);
  small.nodes += t.nodes;
  return small;
}

}  // namespace

bool few_degrees(const QuadraticForm& f, double q) {
  if (!(f.total_dof > 0 && f.total_dof <= most) || !f.clusters.empty()) return false;
  const Signed s = signed_terms(f, 1);
  const FormTerm up = mass(s.up), down = mass(s.down);
  if (up.noncentrality + down.noncentrality > most) return false;
  const bool both = !s.up.empty() && !s.down.empty(), smooth = s.sd > 0;
  if (q == 0 && !smooth && !(up.dof > 0 && down.dof > 0)) return false;
  const auto lossy = [](double dof) { return dof > 0 && dof < tiny; };
  if (lossy(up.dof) || lossy(down.dof)) return true;
  return (both || smooth) && std::max(std::fabs(q), s.sd) < near_zero;
}

FormTail few_tail(const QuadraticForm& f, double q) {
  double sign = q > 0 ? 1 : -1;
  if (q == 0) {
    const Signed here = signed_terms(f, 1);
    return settle(f, q, mass(here.up).dof < mass(here.down).dof ? 1 : -1);
  }
  const Signed s = signed_terms(f, sign);
  double jumps = 0;  // of size |q| and more in the Levy process: k/2 E1(|q|/2w) a weight
  for (const FormTerm& t : s.up) {
    const double x = std::fabs(0.5 * q / t.weight);
    jumps += 0.5 * t.dof * std::exp(-x) * std::log1p(0.7 / x);
  }
  if (jumps > ln2) sign = -sign;
  return settle(f, q, sign);
}

}  // namespace ellipsum
