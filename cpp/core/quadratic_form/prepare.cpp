// Scale by a power of two (exact), drop what does not count, merge equal weights, and let
// small equal dof be multiplied. The first three cumulants follow from
//
//   kappa_n = 2^(n-1) (n-1)! sum w^n (k + n l),  and s^2 more for n = 2,
//
// exactly but for rounding, of clusters too: their moments of degree 3 give sum w^3.
#include "quadratic_form/prepare.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "quadratic_form/clusters.hpp"

namespace ellipsum {
namespace {

// From so many weights on they are clustered; below, evaluating each is as fast
// (bench_quadratic_form.py speed, d = 10 against d = 100).
constexpr std::size_t fewest_clustered = 64;

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
    add_cumulants(f, c.center, dof, noncentrality);
  }
}

// Two and more terms of one small dof become a group; the rest come first, one by one.
void group_terms(QuadraticForm& f) {
  std::vector<FormTerm> alone, grouped;
  auto first = std::stable_partition(f.terms.begin(), f.terms.end(),
                                     [](const FormTerm& t) { return !may_share(t); });
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
  if (n >= fewest_clustered && f.highest > f.lowest) {
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

}  // namespace ellipsum
