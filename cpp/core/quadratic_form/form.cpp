#include "quadratic_form/saddle.hpp"
#include "quadratic_form/few.hpp"

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

// In lanes, whose comparisons run side by side.
FormRange range_of(const FormInput& input) {
  constexpr std::size_t lanes = 4;
  double low[lanes] = {}, high[lanes] = {};
  for (std::size_t j = 0; j < input.n; j += lanes) {
    const std::size_t here = std::min(lanes, input.n - j);
    for (std::size_t i = 0; i < here; ++i) {
      const FormTerm t = input.term(j + i);
      const double w = t.counts() ? t.weight : 0;
      low[i] = w < low[i] ? w : low[i];
      high[i] = w > high[i] ? w : high[i];
    }
  }
  return {*std::min_element(low, low + lanes), *std::max_element(high, high + lanes)};
}

// dof[p] = sum k/2 (w_j/w)^p over weights w_j near w, and the same of l/2.
void add_cumulants(QuadraticForm& f, double w, const double* dof, const double* noncentrality) {
  f.total_dof += 2 * dof[0];
  f.mean += 2 * w * (dof[1] + noncentrality[1]);
  f.variance += 4 * w * w * (dof[2] + 2 * noncentrality[2]);
  f.third += 16 * w * w * w * (dof[3] + 3 * noncentrality[3]);
}

void add_cumulants(QuadraticForm& f) {
  f.variance = f.normal_sd * f.normal_sd;
  for (const FormTerm& t : f.terms) {
    const double k = 0.5 * t.dof, l = 0.5 * t.noncentrality;
    const double dof[] = {k, k, k, k}, noncentrality[] = {l, l, l, l};
    add_cumulants(f, t.weight, dof, noncentrality);
  }
  for (const FormCluster& c : f.clusters) {
    const double *d = c.dof_moments, *e = c.noncentrality_moments;
    const double h = c.half_dof, n = c.half_noncentrality;
    // sum k/2 (1 + e)^p, where d holds sum k/2 e^p / p
    const double dof[] = {h, h + d[0], h + 2 * (d[0] + d[1]), h + 3 * (d[0] + 2 * d[1] + d[2])};
    const double noncentrality[] = {n, n + e[0], n + 2 * e[0] + e[1], n + 3 * (e[0] + e[1]) + e[2]};
    add_cumulants(f, c.centre, dof, noncentrality);
  }
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
    const std::size_t n = std::size_t(end - first), begin = grouped.size();
    if (n > 1) f.groups.push_back({begin, begin + n, 0.5 * first->dof});
    std::vector<FormTerm>& place = n > 1 ? grouped : alone;
    place.insert(place.end(), first, end);
  }
  f.general = alone.size();
  for (FormGroup& g : f.groups) g.begin += f.general, g.end += f.general;
  alone.insert(alone.end(), grouped.begin(), grouped.end());
  f.terms = std::move(alone);
}

}  // namespace

QuadraticForm prepare_form(const double* weights, const double* dof, const double* noncentrality,
                           std::size_t n, double normal_sd, const Kernels& kernels) {
  constexpr std::size_t many = 64;  // below, evaluating each weight is as fast as clusters
  QuadraticForm f;
  FormInput input{weights, dof, noncentrality, n, 1, 1};
  FormRange range = range_of(input);
  const double top = std::max(std::max(range.highest, -range.lowest), normal_sd);
  if (top > 0) std::frexp(top, &f.exponent);
  const int half = f.exponent / 2;
  input.scale = std::ldexp(1.0, -half);
  input.rest = std::ldexp(1.0, half - f.exponent);
  f.normal_sd = std::ldexp(normal_sd, -f.exponent);
  f.lowest = range.lowest = range.lowest * input.scale * input.rest;
  f.highest = range.highest = range.highest * input.scale * input.rest;
  if (n >= many && f.highest > f.lowest) {
    cluster_terms(f, input, range, kernels);
  } else {
    for (std::size_t j = 0; j < n; ++j)
      if (input.term(j).counts()) f.terms.push_back(input.term(j));
  }
  add_cumulants(f);
  merge_equal(f);
  group_terms(f);
  return f;
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double log2e = 0.69314718055994530942;

}  // namespace

// Mills' ratio by its continued fraction where erfc would underflow.
double log_normal_tail(double x) {
  if (x < 5) return std::log(0.5 * std::erfc(x * 0.70710678118654752440));
  double fraction = 0;
  for (int k = 60; k >= 1; --k) fraction = k / (x + fraction);
  return -0.5 * x * x - std::log((x + fraction) * 2.50662827463100050242);
}

FormTail complement(FormTail t) {
  const double large = std::exp(t.log_small);
  t.error *= large / (1 - large);
  t.log_small = std::log1p(-large);
  t.upper = !t.upper;
  return t;
}

namespace {

FormTail outside(bool upper) { return {-infinity, -infinity, 0, 0, upper, 0}; }

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
    for (const FormCluster& c : f.clusters) {
      for (std::size_t j = c.begin; j < c.end; ++j) add(f.members[j]);
      if (c.begin != c.end) continue;
      add({c.centre, 2 * c.half_dof, 2 * c.half_noncentrality});
      double series = 0;  // sum k/2 log(1 + e)
      for (std::size_t p = form_moments; p-- > 0;) series += (p % 2 ? -1 : 1) * c.dof_moments[p];
      log_pdf -= series;
    }
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
  const FormIntegral other =
      form_integral(f, upper ? -q : q, upper ? -1 : 1, FormMoment::tail, kernels);
  FormTail small = as_tail(other, !upper);
  small.nodes += t.nodes;
  return small;
}

}  // namespace

FormTail scaled_tail(const QuadraticForm& f, double q, const Kernels& kernels) {
  const bool smooth = f.normal_sd > 0;
  if (std::isnan(q)) return {q, q, 0, 0, false, 0};
  if (std::isinf(q)) return outside(q > 0);
  if (f.terms.empty() && f.clusters.empty()) {
    FormTail out = smooth ? normal_only(q / f.normal_sd) : outside(q >= 0);
    if (smooth) out.log_pdf -= std::log(f.normal_sd);
    else if (q == 0) out.log_pdf = infinity;
    return out;
  }
  if (!smooth && f.lowest == 0 && q < 0) return outside(false);
  if (!smooth && f.highest == 0 && q > 0) return outside(true);
  if (!smooth && q == 0 && (f.lowest == 0 || f.highest == 0)) return at_edge(f);
  if (few_degrees(f, q)) return few_tail(f, q);
  return contour_tail(f, q, kernels);
}

FormTail form_tail(const QuadraticForm& f, double q, const Kernels& kernels) {
  FormTail out = scaled_tail(f, std::ldexp(q, -f.exponent), kernels);
  out.log_pdf -= f.exponent * log2e;
  return out;
}

FormIntegral form_moment(const QuadraticForm& f, double q, double sign, FormMoment moment,
                         const Kernels& kernels) {
  q = sign * std::ldexp(q, -f.exponent);
  const double highest = sign > 0 ? f.highest : -f.lowest;
  if (highest == 0 && f.normal_sd == 0 && q >= 0) return {-infinity, -infinity, 0, 0, 0};
  FormIntegral out = form_integral(f, q, sign, moment, kernels);
  const double unit = moment == FormMoment::tail ? 0 : moment == FormMoment::root ? 0.5 : 1;
  out.log_value += unit * f.exponent * log2e;
  return out;
}

}  // namespace ellipsum
