#include "quadratic_form/pair.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "constants.hpp"
#include "dispatch.hpp"

namespace ellipsum {
namespace {

constexpr double unit_roundoff = 0x1p-53;  // of a double, to nearest

// Two and more terms of one small dof, with or without a shift, are multiplied; the rest come one
// by one.
void group_terms(GaussianPair& pair) {
  constexpr double largest_dof = 4;  // a product of factors loses the last bits of each, times m/2
  const auto kind = [](const PairTerm& t) { return std::pair(t.dof, t.shift != 0); };
  std::vector<PairTerm> alone, grouped;
  const auto first = std::stable_partition(pair.terms.begin(), pair.terms.end(),
                                           [](const PairTerm& t) { return t.dof > largest_dof; });
  std::stable_sort(first, pair.terms.end(),
                   [&](const PairTerm& a, const PairTerm& b) { return kind(a) < kind(b); });
  alone.assign(pair.terms.begin(), first);
  for (auto begin = first; begin != pair.terms.end();) {
    const auto end = std::find_if(begin, pair.terms.end(),
                                  [&](const PairTerm& t) { return kind(t) != kind(*begin); });
    const std::size_t n = std::size_t(end - begin), at = grouped.size();
    if (n > 1) pair.groups.push_back({at, at + n, 0.5 * begin->dof, begin->shift != 0});
    std::vector<PairTerm>& place = n > 1 ? grouped : alone;
    place.insert(place.end(), begin, end);
    begin = end;
  }
  pair.general = alone.size();
  for (FormGroup& g : pair.groups) g.begin += pair.general, g.end += pair.general;
  alone.insert(alone.end(), grouped.begin(), grouped.end());
  pair.terms = std::move(alone);
}

constexpr std::size_t column_count = 10;

std::size_t padded(std::size_t n) { return (n + pair_padding - 1) / pair_padding * pair_padding; }

// As PairColumns names them. What pads a register has e = -1/2: 1 - te is above 0 at every t.
void fill_columns(GaussianPair& pair) {
  constexpr PairTerm nothing{-0.5, 0.5, 0, 0, 0, 0, 0, 0, 0};
  const std::size_t n = padded(pair.terms.size());
  pair.columns.resize(column_count * n);
  for (std::size_t j = 0; j < n; ++j) {
    const PairTerm& t = j < pair.terms.size() ? pair.terms[j] : nothing;
    const double pole = 0.5 * t.shift * (t.kappa / t.excess) / t.excess;
    const double values[] = {t.excess, t.kappa,   0.5 * t.dof,   0.5 * t.shift, pole,
                             t.defect, t.log_end, t.log_end_low, t.end,         t.end_low};
    for (std::size_t c = 0; c < column_count; ++c) pair.columns[c * n + j] = values[c];
    pair.shifted |= t.shift > 0;
  }
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

TermAt term_at(const PairTerm& j, const FormPoint& p, double highest) {
  const double t = p.t, e = j.excess, x = t * e;
  TermAt v;
  v.a = p.one_minus_2wt(0.5 * e, highest);
  v.near = std::fabs(x) < pair_far;
  const double inverse = 1 / v.a, r = e * inverse, s = 0.5 * j.shift * inverse * inverse;
  v.slope = 0.5 * j.dof * (r * x - j.defect) + s * (1 + t * (1 + (1 - x)));
  v.bend = 0.5 * j.dof * r * r + 2 * s * j.kappa * inverse;
  return v;
}

double log_one_minus(double x, double a) { return a > 0.5 ? std::log1p(-x) : std::log(a); }

// log(up / down) of K' - epsilon - 1/t - 1/(1 + t), its parts sorted by sign; slopes times t.
struct Balance {
  double up, down, up_slope, down_slope;
};

Balance balance(const GaussianPair& pair, const PairColumns& columns, double epsilon,
                const FormPoint& p, const Kernels& kernels) {
  const double t = p.t, other = 1 / (1 + t);
  PairSlopes terms;
  kernels.pair_slopes(columns, t, p.gap, terms);
  Balance b{terms.up + 0.5 * pair.normal * (1 + 2 * t), terms.down + 1 / t + other,
            terms.up_slope + pair.normal * t, terms.down_slope - 1 / t - t * other * other};
  Compensated linear;
  linear.add(terms.linear);
  linear.add(-epsilon);
  linear.add(terms.linear_low);
  (linear.value() > 0 ? b.up : b.down) += std::fabs(linear.value());
  return b;
}

// Newton's method in a logit or log chart, as for quadratic forms.
FormPoint solve(const GaussianPair& pair, const PairColumns& columns, double epsilon,
                const Kernels& kernels) {
  const double highest = 0.5 * pair.highest, distance = epsilon - pair.mean;
  const double root = std::sqrt(distance * distance + 8 * pair.variance);
  const double t = distance > 0 ? (distance + root) / (2 * pair.variance) : 4 / (root - distance);
  const double x = std::log(highest > 0 ? pair.highest * t : t);
  return balanced_point(
      x, highest, [&](const FormPoint& p) { return balance(pair, columns, epsilon, p, kernels); });
}

// What t lacks of the point whose 1 - t e is the gap.
double low_part(const FormPoint& p, double e) {
  if (!(e > 0) || !(p.gap < 0.5)) return 0;
  const double share = 1 - p.gap, lost = (1 - share) - p.gap;
  return (std::fma(-p.t, e, share) + lost) / e;
}

void add(Compensated& total, const PairSum& part) {
  total.add(part.sum);
  total.add(part.lost);
}

FormSaddle describe(const GaussianPair& pair, const PairColumns& columns, const FormPoint& point,
                    double epsilon, const Kernels& kernels) {
  const double t = point.t;
  FormSaddle s;
  s.point = point;
  std::frexp(t, &s.unit);
  const double unit = std::ldexp(1.0, s.unit);
  s.t = t / unit;
  s.pole = 1;
  s.second = unit / (t + 1);
  s.normal_variance = pair.normal * unit * unit;
  s.left = s.t;
  s.right = pair.highest > 0 ? point.gap / pair.highest / unit : infinity;
  s.r.resize(columns.n);
  s.kappa.resize(columns.n);
  s.half_dof.assign(columns.half_dof, columns.half_dof + pair.terms.size());
  PairSums terms;
  kernels.pair_sums(columns, t, point.gap, unit, s.r.data(), s.kappa.data(), terms);
  s.r.resize(pair.terms.size());  // without the padding
  s.kappa.resize(pair.terms.size());
  s.phi2 = s.normal_variance + 1 / (s.t * s.t) + s.second * s.second + terms.phi2;
  s.phi3 = -2 / (s.t * s.t * s.t) - 2 * s.second * s.second * s.second + terms.phi3;
  s.groups = pair.groups;
  s.general = pair.general;
  s.centered = pair.terms.size();

  const double normal = 0.5 * pair.normal * t * (1 + t);
  const double normal_slope = 0.5 * pair.normal * (1 + 2 * t);
  Compensated linear, log_mgf, drift;
  add(linear, terms.linear);
  linear.add(epsilon);
  const double high = linear.value(), low = (linear.sum - high) + linear.lost;
  add(log_mgf, terms.log_mgf);
  log_mgf.add_product(-t, high);
  log_mgf.add(-t * low);
  log_mgf.add(normal);
  const double rest = terms.rest - epsilon + normal_slope;
  log_mgf.add(low_part(point, pair.highest) * rest);
  add(drift, terms.drift);
  drift.add(-high);
  drift.add(-low);
  drift.add(normal_slope);
  s.log_factor = log_mgf.value();
  s.drift = drift.value() * unit;

  const double roundoff = pair.edge_roundoff / unit_roundoff;
  const double doubt = terms.doubt + 8 * normal + roundoff * t * terms.ends;
  const double drift_doubt = terms.drift_doubt + 8 * normal_slope + roundoff * terms.ends;
  // The mass of the integral lies within about 1/sqrt(phi2) of the saddlepoint.
  const double reach = unit / std::sqrt(s.phi2), at_nodes = drift_doubt + std::fabs(drift.value());
  s.rounding = unit_roundoff * (32 + std::fabs(s.log_factor) + doubt + at_nodes * reach);
  return s;
}

FormTail known_delta(double log_delta, double log_slope) {
  return {log_delta, log_slope, 0, 0, true, 0};
}

bool known_of_pair(const GaussianPair& pair, double epsilon, FormTail& out) {
  const bool bare = pair.terms.empty() && pair.normal == 0;
  const FormTail always = {std::log(-std::expm1(epsilon)), epsilon, 4e-16, 4e-16, true, 0};
  const double end = bare ? epsilon : (epsilon + pair.edge) + pair.edge_low;
  const bool ends = bare || pair.normal == 0;  // a normal part has no end
  if (std::isnan(epsilon)) out = known_delta(epsilon, epsilon);
  else if (epsilon == -infinity) out = known_delta(0, -infinity);
  else if (epsilon == infinity || (ends && (bare || pair.highest == 0) && end >= 0))
    out = known_delta(-infinity, -infinity);
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
  fill_columns(pair);
  const PairCumulants at_zero = pair_cumulants(pair, 0);
  pair.mean = at_zero.slope;
  pair.variance = at_zero.bend;
  return pair;
}

PairColumns GaussianPair::view() const {
  const std::size_t n = padded(terms.size());
  const double* c = columns.data();
  return {c,
          c + n,
          c + 2 * n,
          c + 3 * n,
          c + 4 * n,
          c + 5 * n,
          c + 6 * n,
          c + 7 * n,
          c + 8 * n,
          c + 9 * n,
          n,
          highest,
          std::fmax(highest, -lowest),
          shifted};
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

FormSaddle pair_saddle(const GaussianPair& pair, double epsilon, const Kernels& kernels) {
  const PairColumns columns = pair.view();
  return describe(pair, columns, solve(pair, columns, epsilon, kernels), epsilon, kernels);
}

void pair_hockey_sticks(const GaussianPair& pair, const double* epsilon, std::size_t n,
                        FormTail* out, std::size_t threads, const Kernels& kernels) {
  const HockeySource source{
      pair.form, pair.edge, 1,
      [&](double x, FormTail& known) { return known_of_pair(pair, x, known); },
      [&](double x) { return pair_saddle(pair, x, kernels); }};
  hockey_sticks(source, epsilon, n, out, threads, kernels);
}

}  // namespace ellipsum
