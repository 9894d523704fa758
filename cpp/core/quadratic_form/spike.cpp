// Quantiles where few degrees of freedom carry the heaviest weights: a spike, spread over
// many decades of |q|, about a narrow rest.
//
// Each weight's jumps above y number (k/2) E1(y/2w) + (l/2) exp(-y/2w) (the Levy measure), and
// the largest jump decides where Q lies: P(Q > y) = P(Q > 0) (1 - exp(-jumps)), nearly. So
// -log(1 - P(Q > y)/P(Q > 0)) is nearly straight in the logarithm of the jumps.
//
// How exact: the chart decides the count of evaluations only, so that E1 to 5 % will do; the
// quantile is as exact as the tails (search.cpp).
#include "quadratic_form/spike.hpp"

#include <algorithm>

#include "quadratic_form/normal.hpp"

namespace ellipsum {
namespace {

// What counts as a spike.
constexpr double most_dof = 2, most_noncentrality = 30;  // of the heavy weights
constexpr double dof_rounding = 1 + 1e-9;                // of a sum of dof that is meant to be 2
constexpr double narrow = 0.5;  // sd of the rest against the lightest of them

// The searches. Tuned for few tails on the 4,000 cases of tests/test_quadratic_form_quantile.py;
// no quantile depends on them beyond its error.
constexpr double core_reach = 5;      // half width of the rest's core, in its sd
constexpr double core_margin = 0.02;  // of the core's ends, in its sd, that a start keeps from
constexpr double not_normal = 0.2;    // a miss against the one before: the rest is not so normal
constexpr double deep = -5;  // of the log of the rest's tail towards an edge: a power there
constexpr double opposite_share = 0.1;  // of the other side's top: jumps below do not decide
constexpr double known_limit = 1e-13;   // of the log tail at 0 from the wanted one

// Of log y. Below the least the doubles end, or are denormal.
constexpr double least_log = -700, bisected_from = -745, bisected_to = 20;
constexpr int bisections = 56;          // to 1e-14: less than the rounding of a log number
constexpr double linear_below = -30;    // of log z: 1 + 1/z is 1/z to the last bit
constexpr double quarter_below = -0.7;  // of log(p/limit): there 1 - p/limit has lost no digit

double log_difference(double a, double b) {
  return b < a ? a + std::log1p(-std::exp(b - a)) : -infinity;
}

struct Jumps {
  const std::vector<FormTerm>& terms;
  double side;
  bool alone;  // count this side's weights only; else the others', too, which thin it out near 0
  double top = 0;

  Jumps(const std::vector<FormTerm>& heavy, double which, bool only)
      : terms(heavy), side(which), alone(only) {
    for (const FormTerm& t : terms) top = std::fmax(top, side * t.weight);
  }

  // log of the number above exp(log_y), and its slope by log_y. E1(z) is e^-z log(1 + c(z)/z), c from
  // e^-gamma to 1: 0.998 to 1.05 times its value.
  double log_number(double log_y, double* slope = nullptr) const {
    const double first = std::exp(log_y - std::log(2 * top));
    double sum = 0, change = 0;
    for (const FormTerm& t : terms) {
      const bool mine = side * t.weight > 0;
      if (alone && !mine) continue;
      const double w = mine ? side * t.weight : std::fmin(-side * t.weight, top);
      const double log_z = log_y - std::log(2 * w), z = std::exp(log_z), e = std::exp(first - z);
      const double c = (exp_minus_euler + z) / (1 + z), noncentral = mine ? t.noncentrality : 0;
      const double log =
          log_z < linear_below ? std::log(exp_minus_euler) - log_z : std::log1p(c / z);
      const double bent = log_z < linear_below
                              ? -1
                              : ((1 - exp_minus_euler) / ((1 + z) * (1 + z)) - c / z) / (1 + c / z);
      sum += 0.5 * e * (t.dof * log + noncentral);
      change += 0.5 * e * (t.dof * (bent - z * log) - noncentral * z);
    }
    if (slope) *slope = change / sum;
    return std::log(sum) - first;
  }

  double log_y(double log_wanted) const {
    double low = bisected_from, high = bisected_to;
    for (int step = 0; step < bisections; ++step) {
      const double mid = 0.5 * (low + high);
      (log_number(mid) > log_wanted ? low : high) = mid;
    }
    return 0.5 * (low + high);
  }
};

// One side of the spike: p = P(Q beyond y), below its limit at y -> 0.
struct Side {
  SidedForm& s;
  const Jumps jumps;
  double center, log_limit, log_rest;  // P(Q beyond 0), and 1 - that
  Search search{0};

  Side(SidedForm& form, const Jumps& j, double mean, double limit, double rest)
      : s(form), jumps(j), center(mean), log_limit(limit), log_rest(rest) {
    search.target =
        jumps.side > 0 ? height(s.log_tail, s.log_other) : height(s.log_other, s.log_tail);
  }

  // log(-log(1 - p/limit)), and log(limit - p).
  double height(double log_p, double log_other, double* remainder = nullptr) const {
    double h, left = log_other;
    if (log_limit == 0) {
      h = -log_other;
    } else if (log_p >= log_limit) {
      h = infinity;
    } else if (log_p < log_limit + quarter_below || log_limit < quarter_below) {
      const double d = log_p - log_limit;
      h = d < quarter_below ? -std::log1p(-std::exp(d)) : -std::log(-std::expm1(d));
      left = log_limit - h;
    } else {
      left = log_difference(log_other, log_rest);
      h = log_limit - left;
    }
    if (remainder) *remainder = left;
    return h > 1e-300 ? std::log(h) : log_p - log_limit;
  }

  void put(const SidedTail& t, double a) {
    const bool up = jumps.side > 0;
    const double log_y = std::log(std::fabs(t.x - center));
    double left, by_log_y;
    const double b = height(up ? t.log_tail : t.log_other, up ? t.log_other : t.log_tail, &left);
    jumps.log_number(log_y, &by_log_y);
    search.add({a, b, std::exp(t.log_pdf + log_y - left - b) / -by_log_y}, b < search.target);
  }

  // False where y falls below `floor`: the root is elsewhere.
  bool find(const SidedTail* known, double floor, double& x) {
    double a = search.target;
    if (known) {
      const double at = jumps.log_number(std::log(std::fabs(known->x - center)));
      put(*known, at);
      a = at + search.target -
          (jumps.side > 0 ? height(known->log_tail, known->log_other)
                          : height(known->log_other, known->log_tail));
      if (!search.inside(a)) a = search.next();
    }
    double by_log_y;
    const double a_most = jumps.log_number(least_log, &by_log_y);
    bool at_most = false;
    for (int step = 0; step < most_tails; ++step) {
      double log_y = jumps.log_y(std::fmin(a, a_most));
      if (log_y < floor) return false;
      if (a >= a_most) {
        if (at_most) {  // the doubles end there, or are denormal
          s.error = 0;
          x = center + jumps.side * std::exp(least_log + (a - a_most) / by_log_y);
          return true;
        }
        at_most = true;
        log_y = least_log;
      }
      x = center + jumps.side * std::exp(log_y);
      const SidedTail t = s.at(x);
      if (std::isnan(t.log_tail)) return true;
      a = std::fmin(a, a_most);
      put(t, a);
      if (s.met(t)) {
        double slope;
        jumps.log_number(log_y, &slope);
        x = center + (x - center) * std::exp(search.last_step() / slope);
        return true;
      }
      const double next = search.next();
      if (next == a) return true;
      a = next;
    }
    return true;
  }
};

// Among the rest, between below and above: nearly normal.
double core_search(SidedForm& s, const Spike& spike, const SidedTail& below, const SidedTail& above,
                   std::vector<SidedTail> known) {
  const double log_whole = log_difference(below.log_tail, above.log_tail);
  const auto chart = [&](double log_tail) {
    return -normal_quantile(log_difference(log_tail, above.log_tail) - log_whole,
                            log_difference(below.log_tail, log_tail) - log_whole);
  };
  Search search(chart(s.log_tail));
  search.low = below.x;
  search.high = above.x;
  const auto put = [&](const SidedTail& t) {
    const double b = chart(t.log_tail);
    const double slope = -std::exp(t.log_pdf - log_whole + 0.5 * b * b + log_sqrt_2pi);
    search.add({t.x, b, slope}, t.log_tail > s.log_tail);
  };
  for (const SidedTail& t : known)
    if (search.inside(t.x)) put(t);
  known.push_back(below);
  known.push_back(above);
  const double margin = core_margin * spike.sd;
  double x = spike.mean - spike.sd * search.target, last = infinity;
  x = std::fmin(std::fmax(x, below.x + margin), above.x - margin);
  if (!search.inside(x)) x = search.next();
  for (int step = 0; step < most_tails; ++step) {
    const SidedTail t = s.at(x);
    if (std::isnan(t.log_tail)) return x;
    put(t);
    if (s.met(t)) return x + search.last_step();
    known.push_back(t);
    const double next = search.next(), miss = std::fabs(t.logit() - s.logit());
    if (next == x) return x;
    x = next;
    if (miss > not_normal * last) {
      Search rest(s.logit());
      rest.low = below.x;
      rest.high = above.x;
      return logit_search(s, x, rest, known);
    }
    last = miss;
  }
  return x;
}

// All the weights are heavy: the spike is at 0.
double bare_search(SidedForm& s, const Spike& spike) {
  const std::vector<FormTerm>& heavy = spike.heavy;
  double x = 0;
  for (const double side : {1.0, -1.0}) {
    const Jumps jumps(heavy, side, true), others(heavy, -side, true);
    if (jumps.top == 0) continue;
    Side find(s, jumps, 0, 0, -infinity);
    // Above the other side's weights its jumps do not count.
    const double opposite = others.top;
    if (opposite > 0 && !(find.search.target < jumps.log_number(std::log(2 * opposite)))) continue;
    if (find.find(nullptr, opposite > 0 ? std::log(opposite_share * opposite) : -infinity, x))
      return x;
  }
  const SidedTail zero = s.at(0);
  if (std::isnan(zero.log_tail) || std::fabs(zero.log_tail - s.log_tail) < known_limit) return 0;
  const bool up = s.log_tail < zero.log_tail;
  Side find(s, Jumps(heavy, up ? 1 : -1, false), 0, up ? zero.log_tail : zero.log_other,
            up ? zero.log_other : zero.log_tail);
  find.find(nullptr, -infinity, x);
  return x;
}

// The limit at y -> 0 of the spike's own tail, from a point beyond the rest: limit - p is a
// power of y with half the dof.
Side beyond(SidedForm& s, const Spike& spike, const SidedTail& t, double side) {
  double half_dof = 0;
  for (const FormTerm& term : spike.heavy) half_dof += 0.5 * term.dof;
  const double log_p = side > 0 ? t.log_tail : t.log_other,
               log_other = side > 0 ? t.log_other : t.log_tail;
  const double more = std::exp(t.log_pdf) * std::fabs(t.x - spike.mean) / half_dof;
  const Jumps jumps(spike.heavy, side, false);
  if (!(more < std::exp(log_other))) return Side(s, jumps, spike.mean, 0, -infinity);
  return Side(s, jumps, spike.mean, std::log(std::exp(log_p) + more),
              log_difference(log_other, std::log(more)));
}

}  // namespace

Spike find_spike(const SidedForm& s) {
  const QuadraticForm& f = s.form;
  Spike best;
  if (!f.clusters.empty()) return best;
  std::vector<FormTerm> terms = f.terms;
  std::sort(terms.begin(), terms.end(), [](const FormTerm& a, const FormTerm& b) {
    return std::fabs(a.weight) > std::fabs(b.weight);
  });
  double dof = 0, noncentrality = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    dof += terms[i].dof;
    noncentrality += terms[i].noncentrality;
    if (dof > most_dof * dof_rounding || noncentrality > most_noncentrality) break;
    double mean = 0, variance = f.normal_sd * f.normal_sd;
    for (std::size_t j = i + 1; j < terms.size(); ++j) {
      const double w = terms[j].weight;
      mean += w * (terms[j].dof + terms[j].noncentrality);
      variance += 2 * w * w * (terms[j].dof + 2 * terms[j].noncentrality);
    }
    if (!(std::sqrt(variance) < narrow * std::fabs(terms[i].weight))) continue;
    count = i + 1;
    best.mean = s.sign * mean;
    best.sd = std::sqrt(variance);
  }
  if (dof == 0) return {};
  for (std::size_t i = 0; i < count; ++i)
    best.heavy.push_back({s.sign * terms[i].weight, terms[i].dof, terms[i].noncentrality});
  return best;
}

double spike_search(SidedForm& s, const Spike& spike, const std::vector<SidedTail>& known) {
  if (spike.sd == 0) return bare_search(s, spike);
  const double up = Jumps(spike.heavy, 1, true).top, down = Jumps(spike.heavy, -1, true).top;
  std::vector<SidedTail> ends;
  const Search all = within_support(s);
  double x = spike.mean + core_reach * spike.sd;
  if (s.smooth() || s.highest() > 0 || x < 0) {
    const SidedTail t = s.at(x);
    if (s.met(t) || std::isnan(t.log_tail)) return s.newton(t);
    ends.push_back(t);
    if (s.log_tail < t.log_tail) {
      if (up == 0) return logit_search(s, x, all, ends);
      beyond(s, spike, t, 1).find(&t, -infinity, x);
      return x;
    }
  }
  x = spike.mean - core_reach * spike.sd;
  if (s.smooth() || s.lowest() < 0 || x > 0) {
    const SidedTail t = s.at(x);
    if (s.met(t) || std::isnan(t.log_tail)) return s.newton(t);
    ends.push_back(t);
    if (s.log_tail > t.log_tail) {
      if (down == 0) return logit_search(s, x, all, ends);
      beyond(s, spike, t, -1).find(&t, -infinity, x);
      return x;
    }
  }
  const SidedTail all_below{0, -infinity, 0, 0, 0},
      all_above{0, 0, -infinity, 0, 0};  // Q at an edge
  if (ends.size() == 2) return core_search(s, spike, ends[1], ends[0], known);
  if (!ends.empty() && ends[0].x > spike.mean)
    return core_search(s, spike, all_above, ends[0], known);
  if (!ends.empty() && s.log_tail - ends[0].log_tail > deep)
    return core_search(s, spike, ends[0], all_below, known);
  ends.insert(ends.end(), known.begin(), known.end());
  return logit_search(s, saddlepoint_start(s), all, ends);
}

}  // namespace ellipsum
