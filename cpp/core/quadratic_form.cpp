#include "form_saddle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ellipsum {

namespace {

void merge_equal(QuadraticForm& f) {
  std::sort(f.terms.begin(), f.terms.end(),
            [](const FormTerm& a, const FormTerm& b) { return a.weight < b.weight; });
  std::size_t kept = 0;
  for (const FormTerm& t : f.terms) {
    if (kept && f.terms[kept - 1].weight == t.weight) {
      f.terms[kept - 1].dof += t.dof;
      f.terms[kept - 1].noncentrality += t.noncentrality;
    } else {
      f.terms[kept++] = t;
    }
  }
  f.terms.resize(kept);
}

// Two and more terms of one small dof become a group; the rest come first, one by one.
void group_terms(QuadraticForm& f) {
  std::vector<FormTerm> alone, grouped;
  auto first = std::stable_partition(f.terms.begin(), f.terms.end(),
                                     [](const FormTerm& t) { return !shares(t); });
  std::stable_sort(first, f.terms.end(),
                   [](const FormTerm& a, const FormTerm& b) { return a.dof < b.dof; });
  alone.assign(f.terms.begin(), first);
  for (auto end = first; first != f.terms.end(); first = end) {
    end = std::upper_bound(first, f.terms.end(), *first,
                           [](const FormTerm& a, const FormTerm& b) { return a.dof < b.dof; });
    if (end - first > 1) f.groups.push_back({grouped.size(), grouped.size() + std::size_t(end - first), 0.5 * first->dof});
    std::vector<FormTerm>& place = end - first > 1 ? grouped : alone;
    place.insert(place.end(), first, end);
  }
  f.general = alone.size();
  for (FormGroup& g : f.groups) g.begin += f.general, g.end += f.general;
  alone.insert(alone.end(), grouped.begin(), grouped.end());
  f.terms = std::move(alone);
}

}  // namespace

QuadraticForm prepare_form(const double* weights, const double* dof, const double* noncentrality,
                           std::size_t n, double normal_sd) {
  QuadraticForm f;
  double top = normal_sd;
  for (std::size_t j = 0; j < n; ++j) top = std::max(top, std::fabs(weights[j]));
  if (top > 0) std::frexp(top, &f.exponent);
  f.terms.reserve(n);
  // Two factors: 2^-exponent alone may be beyond the doubles.
  const int half = f.exponent / 2;
  const double scale = std::ldexp(1.0, -half), rest = std::ldexp(1.0, half - f.exponent);
  for (std::size_t j = 0; j < n; ++j) {
    const double w = weights[j] * scale * rest;
    if (w != 0 && (dof[j] > 0 || noncentrality[j] > 0)) f.terms.push_back({w, dof[j], noncentrality[j]});
  }
  f.normal_sd = std::ldexp(normal_sd, -f.exponent);
  f.variance = f.normal_sd * f.normal_sd;
  for (const FormTerm& t : f.terms) {
    const double w = t.weight;
    f.lowest = std::min(f.lowest, w);
    f.highest = std::max(f.highest, w);
    f.total_dof += t.dof;
    f.mean += w * (t.dof + t.noncentrality);
    f.variance += 2 * w * w * (t.dof + 2 * t.noncentrality);
    f.third += 8 * w * w * w * (t.dof + 3 * t.noncentrality);
  }
  cluster_terms(f);
  merge_equal(f);
  group_terms(f);
  return f;
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double log2e = 0.69314718055994530942;

FormTail outside(bool upper) { return {-infinity, -infinity, 0, 0, upper, 0}; }

// log P(Z > x), x >= 0: Mills' ratio by its continued fraction where erfc would underflow.
double log_normal_tail(double x) {
  if (x < 5) return std::log(0.5 * std::erfc(x * 0.70710678118654752440));
  double fraction = 0;
  for (int k = 60; k >= 1; --k) fraction = k / (x + fraction);
  return -0.5 * x * x - std::log((x + fraction) * 2.50662827463100050242);
}

FormTail normal_only(double x) {
  return {log_normal_tail(std::fabs(x)), -0.5 * x * x - 0.91893853320467274178, 4e-16, 4e-16,
          x > 0, 0};
}

// At the edge q = 0 of a one-sided support: the density is a power q^(k/2 - 1) there.
FormTail at_edge(const QuadraticForm& f) {
  double log_pdf = f.total_dof < 2 ? infinity : -infinity;
  if (f.total_dof == 2) {
    log_pdf = -log2e;
    const auto add = [&](const FormTerm& t) {
      log_pdf -= 0.5 * t.dof * std::log(std::fabs(t.weight)) + 0.5 * t.noncentrality;
    };
    for (const FormTerm& t : f.terms) add(t);
    for (const FormCluster& c : f.clusters)
      for (std::size_t j = c.begin; j < c.end; ++j) add(f.members[j]);
  }
  return {-infinity, log_pdf, 0, 0, f.highest == 0, 0};
}

bool upper_is_smaller(const QuadraticForm& f, double q) {
  return q > f.mean - f.third / (6 * f.variance);  // the median, to first order
}

}  // namespace

namespace {

FormTail as_tail(const FormIntegral& i, bool upper) {
  return {i.log_value, i.log_pdf, i.error, i.pdf_error, upper, i.nodes};
}

FormTail complement(FormTail t) {
  const double large = std::exp(t.log_small);
  t.error *= large / (1 - large);
  t.log_small = std::log1p(-large);
  t.upper = !t.upper;
  return t;
}

// exp(K(t) - tq) bounds its tail (Chernoff), so a saddlepoint where it is below 1/2 proves
// the side; where neither does, both tails are moderate and the better guess is integrated.
FormTail contour_tail(const QuadraticForm& f, double q, const Kernels& kernels) {
  constexpr double enough = 0.9;  // up to here 1 - p costs one digit at most
  bool upper = upper_is_smaller(f, q);
  FormSaddle s = find_saddle(f, upper ? q : -q, upper ? 1 : -1, 1);
  if (s.log_factor > -log2e) {
    FormSaddle other = find_saddle(f, upper ? -q : q, upper ? -1 : 1, 1);
    if (other.log_factor < s.log_factor) {
      s = std::move(other);
      upper = !upper;
    }
  }
  FormTail t = as_tail(integrate(f, s, upper ? q : -q, FormMoment::tail, kernels), upper);
  if (t.log_small < -log2e) return t;
  if (t.log_small < std::log(enough)) return complement(t);
  FormTail small = as_tail(form_integral(f, upper ? -q : q, upper ? -1 : 1, FormMoment::tail, kernels), !upper);
  small.nodes += t.nodes;
  return small;
}

}  // namespace

FormTail form_tail(const QuadraticForm& f, double q, const Kernels& kernels) {
  q = std::ldexp(q, -f.exponent);
  FormTail out;
  const bool smooth = f.normal_sd > 0;
  if (std::isnan(q)) return {q, q, 0, 0, false, 0};
  if (std::isinf(q)) return outside(q > 0);
  const bool bare = f.terms.empty() && f.clusters.empty();
  if (bare && !smooth) {
    out = outside(q >= 0);
    if (q == 0) out.log_pdf = infinity;
    return out;
  }
  if (bare) {
    out = normal_only(q / f.normal_sd);
    out.log_pdf -= std::log(f.normal_sd) + f.exponent * log2e;
    return out;
  }
  if (!smooth && f.lowest == 0 && q < 0) return outside(false);
  if (!smooth && f.highest == 0 && q > 0) return outside(true);
  if (!smooth && q == 0 && (f.lowest == 0 || f.highest == 0)) {
    out = at_edge(f);
  } else {
    out = contour_tail(f, q, kernels);
  }
  out.log_pdf -= f.exponent * log2e;
  return out;
}

FormIntegral form_moment(const QuadraticForm& f, double q, double sign, FormMoment moment,
                         const Kernels& kernels) {
  q = sign * std::ldexp(q, -f.exponent);
  const double highest = sign > 0 ? f.highest : -f.lowest;
  if (highest == 0 && f.normal_sd == 0 && q >= 0) return {-infinity, -infinity, 0, 0, 0, 0, false};
  FormIntegral out = form_integral(f, q, sign, moment, kernels);
  const double unit = moment == FormMoment::tail ? 0 : moment == FormMoment::root ? 0.5 : 1;
  out.log_value += unit * f.exponent * log2e;
  return out;
}

}  // namespace ellipsum
