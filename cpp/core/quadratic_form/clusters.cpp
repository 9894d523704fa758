// With u = 2ct/(1 - 2ct) at a cluster's center c, its weights c(1 + e_j) add to K(t)
//
//   sum -k_j/2 log(1 - 2 w_j t) = -log(1 - 2ct) sum k_j/2 + sum_p u^p (sum k_j/2 e_j^p / p),
//
// and the noncentralities a like series. The remainder after 20 moments is bounded for each
// saddlepoint (degree_needed): below 2e-15 in the exponent, or the members are used instead.
#include "quadratic_form/clusters.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>

#include "dispatch.hpp"

namespace ellipsum {
namespace {

// A factor of a product costs four multiplications at a node, a cluster its series (16 to 80)
// and a logarithm: only so many members pay.
constexpr std::size_t fewest_shared = 12;
constexpr std::size_t fewest_members = 3;  // of a cluster: each alone takes its own logarithm
constexpr int key_shift = 49;              // exponent and three bits: ratios up to 1.125
constexpr std::size_t held = 32;           // weights that wait until they are added together
constexpr double heaviest = 1e3;           // mass w / extreme w of moments without members
constexpr double remainder = 2e-15;        // of a series, in the exponent: ten ulp of 1
static_assert(held >= fewest_shared);

std::size_t key(double size) {
  std::uint64_t bits;
  std::memcpy(&bits, &size, sizeof bits);
  return std::size_t(bits >> key_shift);
}

double size_of(std::size_t key) {
  const std::uint64_t bits = std::uint64_t(key) << key_shift;
  double size;
  std::memcpy(&size, &bits, sizeof size);
  return size;
}

// The weights of one sign and key.
struct PendingCluster {
  bool far;
  std::size_t waiting = 0;
  FormTerm wait[held];  // far: those not yet in the cluster's moments
  FormCluster cluster{};
  std::vector<FormTerm> members;  // near: all of them, equal ones merged
};

bool alike(const FormTerm& t, double dof) { return may_share(t) && t.dof == dof; }

// Too few for a cluster: terms of one small dof are cheap by themselves.
bool too_few(const FormTerm* t, std::size_t n) {
  const auto same = [t](const FormTerm& other) { return alike(other, t->dof); };
  return n < fewest_members || (n < fewest_shared && std::all_of(t, t + n, same));
}

// Adds the moments about the cluster's center of n <= held weights.
void add_moments(FormCluster& c, const FormTerm* t, std::size_t n, const Kernels& kernels) {
  double e[held], half_dof[held], half_noncentrality[held];
  const double center = c.center, inverse = 1 / center;
  bool central = true;
  for (std::size_t i = 0; i < n; ++i) {
    e[i] = (t[i].weight - center) * inverse;
    half_dof[i] = 0.5 * t[i].dof;
    half_noncentrality[i] = 0.5 * t[i].noncentrality;
    central &= t[i].noncentrality == 0;
  }
  c.half_dof += kernels.form_power_sums(e, half_dof, n, c.dof_moments);
  if (central) return;
  c.half_noncentrality +=
      kernels.form_power_sums(e, half_noncentrality, n, c.noncentrality_moments);
}

void close(FormCluster& c) {
  c.noncentral = c.half_noncentrality > 0;
  for (std::size_t p = 0; p < form_moments; ++p) c.dof_moments[p] /= double(p + 1);
}

// The cluster of members that are kept, about their mean.
FormCluster cluster_of(const std::vector<FormTerm>& members, std::size_t begin,
                       const Kernels& kernels) {
  FormCluster c{};
  c.begin = begin;
  c.end = begin + members.size();
  c.shared = true;
  double low = members[0].weight, high = low, sum = 0, mass = 0;
  for (const FormTerm& t : members) {
    low = std::min(low, t.weight);
    high = std::max(high, t.weight);
    sum += t.weight * (t.dof + t.noncentrality);
    mass += t.dof + t.noncentrality;
    c.shared &= alike(t, members[0].dof);
  }
  c.center = std::min(std::max(sum / mass, low), high);
  c.spread = std::max(high - c.center, c.center - low) / std::fabs(c.center);
  for (std::size_t j = 0; j < members.size(); j += held)
    add_moments(c, &members[j], std::min(held, members.size() - j), kernels);
  close(c);
  return c;
}

}  // namespace

// How many moments keep the remainder of a cluster's series below rounding along the whole
// path: sum k/2 |e u|^(P+1) / ((P+1)(1 - |e u|)), with |u| <= 1.5 max(1, u0) on a path that
// bends by at most its slope 1 (|t|/|t - b| is largest at t0, at infinity, or below sqrt 2).
// 0 where none do.
std::size_t degree_needed(const FormCluster& c, double u0) {
  const double u = 1.5 * std::fmax(1, std::fabs(u0)), x = c.spread * u;
  if (c.spread == 0) return 1;
  if (!(x < 0.5)) return 0;
  const double mass = c.half_dof + c.half_noncentrality * double(form_moments) * (1 + u);
  for (std::size_t degree = 4; degree <= form_moments; degree += 4)
    if (2 * mass / double(degree + 1) * std::pow(x, double(degree + 1)) < remainder) return degree;
  return 0;
}

namespace {

// Collects weights by sign and key. Up to half the extreme weight of its sign a cluster is far
// from every branch point: |u0| <= 1 at every saddlepoint, so that moments about its middle
// always suffice, and its weights need not be kept, if it is not too heavy.
class ClusterBuilder {
 public:
  ClusterBuilder(const FormRange& range, bool keep_all, const Kernels& kernels)
      : range_(range),
        keep_all_(keep_all),
        kernels_(kernels),
        largest_(key(std::max(range.highest, -range.lowest))) {}

  void add(const FormTerm& t) {
    const std::size_t at = 2 * (largest_ - key(std::fabs(t.weight))) + (t.weight < 0);
    if (at >= place_.size()) place_.resize(at + 64);
    PendingCluster*& place = place_[at];
    if (!place) place = open(t);
    PendingCluster& b = *place;
    if (!b.far) return keep(b, t);
    if (b.waiting == held) flush(b);
    b.wait[b.waiting++] = t;
  }

  // In the order of the keys; false where a far cluster is too heavy for its moments.
  bool finish(QuadraticForm& f) {
    for (PendingCluster* b : place_) {
      if (!b) continue;
      if (!b->far) finish_near(f, *b);
      else if (!finish_far(f, *b)) return false;
    }
    return true;
  }

 private:
  PendingCluster* open(const FormTerm& t) {
    const std::size_t k = key(std::fabs(t.weight));
    const double low = size_of(k), high = size_of(k + 1), sign = t.weight < 0 ? -1 : 1;
    pending_.emplace_back();
    PendingCluster& b = pending_.back();
    b.cluster.center = sign * 0.5 * (low + high);
    b.cluster.spread = (high - low) / (high + low);
    b.far = !keep_all_ && high <= 0.5 * (sign < 0 ? -range_.lowest : range_.highest);
    return &b;
  }

  static void keep(PendingCluster& b, const FormTerm& t) {
    if (b.members.empty() || b.members.back().weight != t.weight) return b.members.push_back(t);
    b.members.back().dof += t.dof;
    b.members.back().noncentrality += t.noncentrality;
  }

  void flush(PendingCluster& b) {
    add_moments(b.cluster, b.wait, b.waiting, kernels_);
    b.waiting = 0;
  }

  bool finish_far(QuadraticForm& f, PendingCluster& b) {
    if (b.cluster.half_dof + b.cluster.half_noncentrality == 0 && too_few(b.wait, b.waiting)) {
      f.terms.insert(f.terms.end(), b.wait, b.wait + b.waiting);
      return true;
    }
    flush(b);
    close(b.cluster);
    f.clusters.push_back(b.cluster);
    return !too_heavy(b.cluster);
  }

  // Weights that are not kept are one weight, at their mean, to who looks for the saddlepoint:
  // that moves K' by spread^2 u0^2 sqrt(mass) <= 0.2 of its standard deviation.
  bool too_heavy(const FormCluster& c) const {
    const double extreme = c.center < 0 ? -range_.lowest : range_.highest;
    const double mass = c.half_dof + c.half_noncentrality;
    return mass * std::fabs(c.center) > heaviest * extreme || degree_needed(c, 1) == 0;
  }

  void finish_near(QuadraticForm& f, PendingCluster& b) {
    const std::vector<FormTerm>& m = b.members;
    std::vector<FormTerm>& place = too_few(m.data(), m.size()) ? f.terms : f.members;
    if (&place == &f.members) f.clusters.push_back(cluster_of(m, place.size(), kernels_));
    place.insert(place.end(), m.begin(), m.end());
    std::vector<FormTerm>().swap(b.members);
  }

  FormRange range_;
  bool keep_all_;
  const Kernels& kernels_;
  std::size_t largest_;                 // key
  std::vector<PendingCluster*> place_;  // by key, downwards, and sign; null where there is none
  std::deque<PendingCluster> pending_;  // which stay where they are
};

}  // namespace

void cluster_terms(QuadraticForm& f, const FormInput& input, const FormRange& range,
                   const Kernels& kernels) {
  for (const bool keep_all : {false, true}) {
    ClusterBuilder builder(range, keep_all, kernels);
    for (std::size_t j = 0; j < input.n; ++j) {
      const FormTerm t = input.term(j);
      if (t.counts()) builder.add(t);
    }
    if (builder.finish(f)) return;
    f.terms.clear();
    f.clusters.clear();
    f.members.clear();
  }
}

}  // namespace ellipsum
