#include "quadratic_form/pair.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "constants.hpp"
#include "dispatch.hpp"

namespace ellipsum {
namespace {

constexpr double unit_roundoff = 0x1p-53;  // of a double, to nearest

// Two and more terms of one small dof without shift are multiplied; the rest come one by one.
void group_terms(GaussianPair& pair) {
  constexpr double largest_dof = 4;  // a product of factors loses the last bits of each, times m/2
  std::vector<PairTerm> alone, grouped;
  const auto first =
      std::stable_partition(pair.terms.begin(), pair.terms.end(),
                            [](const PairTerm& t) { return t.shift != 0 || t.dof > largest_dof; });
  std::stable_sort(first, pair.terms.end(),
                   [](const PairTerm& a, const PairTerm& b) { return a.dof < b.dof; });
  alone.assign(pair.terms.begin(), first);
  for (auto begin = first; begin != pair.terms.end();) {
    const auto end = std::find_if(begin, pair.terms.end(),
                                  [&](const PairTerm& t) { return t.dof != begin->dof; });
    const std::size_t n = std::size_t(end - begin), at = grouped.size();
    if (n > 1) pair.groups.push_back({at, at + n, 0.5 * begin->dof});
    std::vector<PairTerm>& place = n > 1 ? grouped : alone;
    place.insert(place.end(), begin, end);
    begin = end;
  }
  pair.general = alone.size();
  alone.insert(alone.end(), grouped.begin(), grouped.end());
  pair.terms = std::move(alone);
}

// D(x) within 8 units of roundoff up to |x| = 1/2: log_defect would subtract from 1/8 on, where
// 14 of them are lost; from 0.3 on a subtraction loses 7.
double defect_of(double x) {
  constexpr double near_zero = 0.125, near = 0.3;
  if (std::fabs(x) <= near_zero || std::fabs(x) > near) return log_defect(x);
  constexpr double coefficients[] = {1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15,
                                     1.0 / 13, 1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
  const double s = x / (2 - x), s2 = s * s;  // |s| < 0.18: what is left out is below s^26 / 27
  double series = 0;
  for (const double c : coefficients) series = (series + c) * s2;
  return -2 * s * (s / (1 + s) + series);
}

// At a point of the axis: 1 - te of a term, and what it adds to K' and K'', all of it positive.
struct TermAt {
  double a, slope, bend;
  bool near;  // |te| is small
};

constexpr double far = 0.5;  // |te| from here on: the second form of K

TermAt term_at(const PairTerm& j, const FormPoint& p, double highest) {
  const double t = p.t, e = j.excess, x = t * e;
  TermAt v;
  v.a = p.one_minus_2wt(0.5 * e, highest);
  v.near = std::fabs(x) < far;
  const double inverse = 1 / v.a, r = e * inverse, s = 0.5 * j.shift * inverse * inverse;
  v.slope = 0.5 * j.dof * (r * x - j.defect) + s * (1 + t * (1 + (1 - x)));
  v.bend = 0.5 * j.dof * r * r + 2 * s * j.kappa * inverse;
  return v;
}

// Of a far term, what K and K' have beside the linear part: m/2 of the first, and the second.
double singular_slope(const PairTerm& j, double a) {
  return 0.5 * j.dof * j.excess / a + 0.5 * j.shift * (j.kappa / (a * j.excess)) / a;
}

double singular_shift(const PairTerm& j, double x, double a) {
  return 0.5 * j.shift * (j.kappa / j.excess) / j.excess * (x / a);
}

double log_one_minus(double x, double a) { return a > 0.5 ? std::log1p(-x) : std::log(a); }

// log(up / down) of K' - epsilon - 1/t - 1/(1 + t), its parts sorted by sign; slopes times t.
struct Balance {
  double up = 0, down = 0, up_slope = 0, down_slope = 0;
  void add(double first, double second) {
    (first > 0 ? up : down) += std::fabs(first);
    (first > 0 ? up_slope : down_slope) += first > 0 ? second : -second;
  }
};

Balance balance(const GaussianPair& pair, double epsilon, const FormPoint& p) {
  const double t = p.t, other = 1 / (1 + t);
  Balance b;
  b.up = 0.5 * pair.normal * (1 + 2 * t);
  b.up_slope = pair.normal * t;
  b.down = 1 / t + other;
  b.down_slope = -1 / t - t * other * other;
  Compensated linear;
  linear.add(-epsilon);
  for (const PairTerm& j : pair.terms) {
    const TermAt v = term_at(j, p, 0.5 * pair.highest);
    if (v.near) {
      b.add(v.slope, t * v.bend);
      continue;
    }
    b.add(singular_slope(j, v.a), t * v.bend);
    linear.add(-j.log_end);  // the low parts would move the saddlepoint where it hardly matters
    if (j.end != 0) linear.add(-j.end);
  }
  b.add(linear.value(), 0);
  return b;
}

// Newton's method in a logit or log chart, as for quadratic forms.
FormPoint solve(const GaussianPair& pair, double epsilon) {
  const double highest = 0.5 * pair.highest;
  const PairCumulants mean = pair_cumulants(pair, 0);
  const double distance = epsilon - mean.slope;
  const double root = std::sqrt(distance * distance + 8 * mean.bend);
  const double t = distance > 0 ? (distance + root) / (2 * mean.bend) : 4 / (root - distance);
  const double x = std::log(highest > 0 ? pair.highest * t : t);
  return balanced_point(x, highest, [&](const FormPoint& p) { return balance(pair, epsilon, p); });
}

// What t lacks of the point whose 1 - t e is the gap.
double low_part(const FormPoint& p, double e) {
  if (!(e > 0) || !(p.gap < 0.5)) return 0;
  const double share = 1 - p.gap, lost = (1 - share) - p.gap;
  return (std::fma(-p.t, e, share) + lost) / e;
}

// The sums at a saddlepoint, with doubts: bounds of their errors, in units of roundoff.
struct Sums {
  const GaussianPair& pair;
  const FormPoint& point;
  Compensated log_mgf, drift;  // of K(t) - t epsilon, and the linear coefficient left to the nodes
  double doubt = 0, drift_doubt = 0;
  double rest = 0;  // slope of what was summed at t itself

  void linear(double coefficient, double low, double roundoff) {
    log_mgf.add_product(-point.t, coefficient);
    log_mgf.add(-point.t * low);
    drift.add(-coefficient);
    drift.add(-low);
    rest -= coefficient;
    doubt += roundoff * point.t * std::fabs(coefficient);
    drift_doubt += roundoff * std::fabs(coefficient);
  }
  void smooth(double value, double slope) {
    log_mgf.add(value);
    drift.add(slope);
    doubt += 8 * value;
    drift_doubt += 8 * slope;
  }
  void add(const PairTerm& j, const TermAt& v) {
    const double t = point.t, x = t * j.excess, half = 0.5 * j.dof;
    const double roundoff = pair.edge_roundoff / unit_roundoff;
    drift_doubt += 4 * half * std::fabs(j.excess / v.a);  // taken off again at every node
    if (v.near) {
      const double log_part = -half * (defect_of(x) + t * j.defect), s = 0.5 * j.shift / v.a;
      log_mgf.add(log_part);
      doubt += 8 * log_part;
      smooth(s * t * (1 + t), s / v.a * (1 + t * (1 + (1 - x))));
      drift.add(-j.log_end);
      drift.add(-j.log_end_low);
      rest += v.slope;
      return;
    }
    const bool by_gap = j.excess > 0 && point.gap < 0.5;
    const double log_a = log_one_minus(x, v.a), shift = singular_shift(j, x, v.a);
    const double slope = singular_slope(j, v.a) - half * j.excess / v.a;
    log_mgf.add(-half * log_a);
    log_mgf.add(shift);
    drift.add(slope);
    doubt += half * ((j.excess == pair.highest || v.a > 0.5 ? 1 : 3) + std::fabs(log_a));
    doubt += 8 * std::fabs(shift);
    drift_doubt += 8 * std::fabs(slope);
    linear(j.log_end, j.log_end_low, roundoff);
    if (j.end != 0) linear(j.end, j.end_low, roundoff);
    if (!by_gap) rest += singular_slope(j, v.a);
  }
};

FormSaddle describe(const GaussianPair& pair, const FormPoint& point, double epsilon) {
  const double highest = 0.5 * pair.highest, t = point.t;
  FormSaddle s;
  s.point = point;
  std::frexp(t, &s.unit);
  const double unit = std::ldexp(1.0, s.unit);
  s.t = t / unit;
  s.pole = 1;
  s.second = unit / (t + 1);
  s.normal_variance = pair.normal * unit * unit;
  s.left = s.t;
  s.right = highest > 0 ? point.gap / pair.highest / unit : infinity;
  s.phi2 = s.normal_variance + 1 / (s.t * s.t) + s.second * s.second;
  s.phi3 = -2 / (s.t * s.t * s.t) - 2 * s.second * s.second * s.second;
  s.r.reserve(pair.terms.size());
  s.half_dof.reserve(pair.terms.size());
  s.kappa.reserve(pair.terms.size());
  Sums sums{pair, point, {}, {}};
  sums.linear(epsilon, 0, 0);
  sums.smooth(0.5 * pair.normal * t * (1 + t), 0.5 * pair.normal * (1 + 2 * t));
  sums.rest += 0.5 * pair.normal * (1 + 2 * t);
  for (const PairTerm& j : pair.terms) {
    const TermAt v = term_at(j, point, highest);
    const double r = j.excess / v.a * unit, half = 0.5 * j.dof;
    const double kappa = 0.5 * j.shift * (j.kappa / (v.a * j.excess)) / j.excess;
    s.r.push_back(r);
    s.half_dof.push_back(half);
    s.kappa.push_back(kappa);
    s.phi2 += r * r * half + 2 * (kappa * r) * r;
    s.phi3 += r * (r * r * j.dof + 6 * (kappa * r) * r);
    sums.add(j, v);
  }
  for (const FormGroup& g : pair.groups)
    s.groups.push_back({pair.general + g.begin, pair.general + g.end, g.half_dof});
  s.general = s.centered = pair.general;
  sums.log_mgf.add(low_part(point, pair.highest) * sums.rest);
  const double drift = sums.drift.value();
  s.drift = drift * unit;
  s.log_factor = sums.log_mgf.value();
  // The mass of the integral lies within about 1/sqrt(phi2) of the saddlepoint.
  const double reach = unit / std::sqrt(s.phi2), at_nodes = sums.drift_doubt + std::fabs(drift);
  s.rounding = unit_roundoff * (32 + std::fabs(s.log_factor) + sums.doubt + at_nodes * reach);
  return s;
}

FormTail exactly(double log_delta, double log_slope) {
  return {log_delta, log_slope, 0, 0, true, 0};
}

bool known_of_pair(const GaussianPair& pair, double epsilon, FormTail& out) {
  const bool bare = pair.terms.empty() && pair.normal == 0;
  const FormTail always = {std::log(-std::expm1(epsilon)), epsilon, 4e-16, 4e-16, true, 0};
  const double end = bare ? epsilon : (epsilon + pair.edge) + pair.edge_low;
  const bool ends = bare || pair.normal == 0;  // a normal part has no end
  if (std::isnan(epsilon)) out = exactly(epsilon, epsilon);
  else if (epsilon == -infinity) out = exactly(0, -infinity);
  else if (epsilon == infinity || (ends && (bare || pair.highest == 0) && end >= 0))
    out = exactly(-infinity, -infinity);
  else if (ends && (bare || pair.lowest == 0) && end <= 0) out = always;  // L > epsilon
  else return false;
  return true;
}

}  // namespace

GaussianPair prepare_pair(const PairRow* rows, std::size_t n, double edge_roundoff) {
  constexpr double smallest = 1e-100;  // of e, below which a term is normal but for that part of it
  GaussianPair pair;
  pair.edge_roundoff = edge_roundoff;
  Compensated edge;
  for (const PairRow* j = rows; j != rows + n; ++j) {
    const double e = j->excess, half = 0.5 * j->dof;
    if (!(std::fabs(e) > smallest)) {
      pair.normal += j->shift;
      continue;
    }
    PairTerm term{
        e,         e > -0.5 ? 1 + e : std::exp(j->log_kappa), j->shift, j->dof, 0, 0, 0, j->end,
        j->end_low};
    term.defect = std::fabs(e) < 0.5 ? defect_of(-e) : j->log_kappa - e;
    term.log_end = half * j->log_kappa;
    term.log_end_low = std::fma(half, j->log_kappa, -term.log_end) + half * j->log_kappa_low;
    pair.terms.push_back(term);
    pair.highest = std::max(pair.highest, e);
    pair.lowest = std::min(pair.lowest, e);
    pair.form.total_dof += j->dof;
    for (const double part : {term.log_end, term.log_end_low, term.end, term.end_low})
      edge.add(part);
  }
  pair.edge = edge.value();
  pair.edge_low = (edge.sum - pair.edge) + edge.lost;
  pair.form.normal_sd = std::sqrt(pair.normal);
  group_terms(pair);
  return pair;
}

PairCumulants pair_cumulants(const GaussianPair& pair, double t) {
  const FormPoint p{t, 1 - t * pair.highest};
  PairCumulants sum{0.5 * pair.normal * t * (1 + t), 0.5 * pair.normal * (1 + 2 * t), pair.normal};
  for (const PairTerm& j : pair.terms) {
    const TermAt v = term_at(j, p, 0.5 * pair.highest);
    const double x = t * j.excess, defect = v.near ? defect_of(x) : log_one_minus(x, v.a) + x;
    sum.log_mgf += 0.5 * (j.shift / v.a * t * (1 + t) - j.dof * (defect + t * j.defect));
    sum.slope += v.slope;
    sum.bend += v.bend;
  }
  return sum;
}

FormSaddle pair_saddle(const GaussianPair& pair, double epsilon) {
  return describe(pair, solve(pair, epsilon), epsilon);
}

void pair_hockey_sticks(const GaussianPair& pair, const double* epsilon, std::size_t n,
                        FormTail* out, std::size_t threads, const Kernels& kernels) {
  const HockeySource source{
      pair.form, pair.edge, 1,
      [&](double x, FormTail& known) { return known_of_pair(pair, x, known); },
      [&](double x) { return pair_saddle(pair, x); }};
  hockey_sticks(source, epsilon, n, out, threads, kernels);
}

}  // namespace ellipsum
