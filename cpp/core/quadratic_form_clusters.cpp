#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "quadratic_form.hpp"

namespace ellipsum {
namespace {

constexpr std::size_t fewest_terms = 64;     // below, evaluating each is as fast
constexpr std::size_t fewest_shared = 12;    // in a cluster, where products are the other way
constexpr std::size_t fewest_members = 3;
constexpr int key_shift = 49;                // sign, exponent and three bits: ratios up to 1.125
constexpr std::size_t keys = std::size_t(1) << (64 - key_shift);

std::size_t key(double weight) {
  std::uint64_t bits;
  std::memcpy(&bits, &weight, sizeof bits);
  return std::size_t(bits >> key_shift);
}

// sum x e^p for p = 1.. in lanes, eight members at a time: the powers' chains run together.
void power_sums(const FormCluster& c, const FormTerm* first, std::size_t n,
                double FormTerm::*mass, double* out) {
  constexpr std::size_t lanes = 8;
  double sums[form_moments][lanes] = {};
  for (std::size_t j = 0; j < n; j += lanes) {
    double e[lanes] = {}, x[lanes] = {};
    const std::size_t here = std::min(lanes, n - j);
    for (std::size_t i = 0; i < here; ++i) {
      e[i] = (first[j + i].weight - c.centre) / c.centre;
      x[i] = 0.5 * (first[j + i].*mass);
    }
    for (std::size_t p = 0; p < form_moments; ++p)
      for (std::size_t i = 0; i < lanes; ++i) sums[p][i] += x[i] *= e[i];
  }
  for (std::size_t p = 0; p < form_moments; ++p)
    for (std::size_t i = 0; i < lanes; ++i) out[p] += sums[p][i];
}

FormCluster cluster_of(const FormTerm* first, std::size_t n, std::size_t begin) {
  FormCluster c{};
  c.begin = begin;
  c.end = begin + n;
  c.shared = true;
  double low = first->weight, high = low, sum = 0, mass = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const FormTerm& t = first[j];
    low = std::min(low, t.weight);
    high = std::max(high, t.weight);
    sum += t.weight * (t.dof + t.noncentrality);
    mass += t.dof + t.noncentrality;
    c.half_dof += 0.5 * t.dof;
    c.half_noncentrality += 0.5 * t.noncentrality;
    c.shared &= shares(t) && t.dof == first->dof;
  }
  c.noncentral = c.half_noncentrality > 0;
  c.centre = std::min(std::max(sum / mass, low), high);
  c.spread = std::max(high - c.centre, c.centre - low) / std::fabs(c.centre);
  if (c.spread == 0) return c;
  power_sums(c, first, n, &FormTerm::dof, c.dof_moments);
  if (c.noncentral) power_sums(c, first, n, &FormTerm::noncentrality, c.noncentrality_moments);
  for (std::size_t p = 0; p < form_moments; ++p) c.dof_moments[p] /= double(p + 1);
  return c;
}

// The terms in the order of their keys: by comparison while that is cheaper than a pass over
// all keys, by counting above (two passes, O(d)).
std::vector<FormTerm> by_key(const std::vector<FormTerm>& terms) {
  constexpr std::size_t few = 4096;
  if (terms.size() < few) {
    std::vector<FormTerm> sorted = terms;
    std::sort(sorted.begin(), sorted.end(), [](const FormTerm& a, const FormTerm& b) {
      return key(a.weight) < key(b.weight);
    });
    return sorted;
  }
  std::vector<std::size_t> place(keys + 1, 0);
  for (const FormTerm& t : terms) ++place[key(t.weight) + 1];
  for (std::size_t i = 0; i < keys; ++i) place[i + 1] += place[i];
  std::vector<FormTerm> sorted(terms.size());
  for (const FormTerm& t : terms) sorted[place[key(t.weight)]++] = t;
  return sorted;
}

}  // namespace

void cluster_terms(QuadraticForm& f) {
  if (f.terms.size() < fewest_terms) return;
  f.members = by_key(f.terms);
  f.terms.clear();
  const std::size_t size = f.members.size();
  for (std::size_t j = 0, n; j < size; j += n) {
    const FormTerm* first = f.members.data() + j;
    for (n = 1; j + n < size && key(first[n].weight) == key(first->weight);) ++n;
    const bool few =
        n < fewest_members || (n < fewest_shared && std::all_of(first, first + n, [first](const FormTerm& t) {
          return shares(t) && t.dof == first->dof;
        }));
    if (few) f.terms.insert(f.terms.end(), first, first + n);
    else f.clusters.push_back(cluster_of(first, n, j));
  }
  if (f.clusters.empty()) std::vector<FormTerm>().swap(f.members);
}

}  // namespace ellipsum
