// Many weights in one pass: dense ranges of them become clusters, seen through their moments.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>

#include "dispatch.hpp"
#include "quadratic_form/form.hpp"

namespace ellipsum {
namespace {

constexpr std::size_t fewest_shared = 12;  // in a cluster, where products are the other way
constexpr std::size_t fewest_members = 3;
constexpr int key_shift = 49;              // exponent and three bits: ratios up to 1.125
constexpr std::size_t held = 32;           // weights that wait until they are added together
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
struct Bin {
  bool far;
  std::size_t waiting = 0;
  FormTerm wait[held];            // far: those not yet in the cluster's moments
  FormCluster cluster{};
  std::vector<FormTerm> members;  // near: all of them, equal ones merged
};

bool alike(const FormTerm& t, double dof) { return shares(t) && t.dof == dof; }

// Too few for a cluster: terms of one small dof are cheap by themselves.
bool few(const FormTerm* t, std::size_t n) {
  const auto same = [t](const FormTerm& other) { return alike(other, t->dof); };
  return n < fewest_members || (n < fewest_shared && std::all_of(t, t + n, same));
}

// Adds the moments about the cluster's centre of n <= held weights.
void add_moments(FormCluster& c, const FormTerm* t, std::size_t n, const Kernels& kernels) {
  double e[held], half_dof[held], half_noncentrality[held];
  const double centre = c.centre, inverse = 1 / centre;
  bool central = true;
  for (std::size_t i = 0; i < n; ++i) {
    e[i] = (t[i].weight - centre) * inverse;
    half_dof[i] = 0.5 * t[i].dof;
    half_noncentrality[i] = 0.5 * t[i].noncentrality;
    central &= t[i].noncentrality == 0;
  }
  c.half_dof += kernels.form_power_sums(e, half_dof, n, c.dof_moments);
  if (central) return;
  c.half_noncentrality += kernels.form_power_sums(e, half_noncentrality, n, c.noncentrality_moments);
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
  c.centre = std::min(std::max(sum / mass, low), high);
  c.spread = std::max(high - c.centre, c.centre - low) / std::fabs(c.centre);
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
    if (2 * mass / double(degree + 1) * std::pow(x, double(degree + 1)) < 2e-15) return degree;
  return 0;
}

namespace {

// Collects weights by sign and key. Up to half the extreme weight of its sign a bin is far
// from every branch point: |u0| <= 1 at every saddlepoint, so that moments about its middle
// will do for ever, and its weights need not be kept, if it is not too heavy.
class Bins {
 public:
  Bins(const FormRange& range, bool keep_all, const Kernels& kernels)
      : range_(range), keep_all_(keep_all), kernels_(kernels),
        largest_(key(std::max(range.highest, -range.lowest))) {}

  void add(const FormTerm& t) {
    const std::size_t at = 2 * (largest_ - key(std::fabs(t.weight))) + (t.weight < 0);
    if (at >= place_.size()) place_.resize(at + 64);
    Bin*& place = place_[at];
    if (!place) place = open(t);
    Bin& b = *place;
    if (!b.far) return keep(b, t);
    if (b.waiting == held) flush(b);
    b.wait[b.waiting++] = t;
  }

  // In the order of the keys; false where a far bin is too heavy for its moments.
  bool finish(QuadraticForm& f) {
    for (Bin* b : place_) {
      if (!b) continue;
      if (!b->far) finish_near(f, *b);
      else if (!finish_far(f, *b)) return false;
    }
    return true;
  }

 private:
  Bin* open(const FormTerm& t) {
    const std::size_t k = key(std::fabs(t.weight));
    const double low = size_of(k), high = size_of(k + 1), sign = t.weight < 0 ? -1 : 1;
    bins_.emplace_back();
    Bin& b = bins_.back();
    b.cluster.centre = sign * 0.5 * (low + high);
    b.cluster.spread = (high - low) / (high + low);
    b.far = !keep_all_ && high <= 0.5 * (sign < 0 ? -range_.lowest : range_.highest);
    return &b;
  }

  static void keep(Bin& b, const FormTerm& t) {
    if (b.members.empty() || b.members.back().weight != t.weight) return b.members.push_back(t);
    b.members.back().dof += t.dof;
    b.members.back().noncentrality += t.noncentrality;
  }

  void flush(Bin& b) {
    add_moments(b.cluster, b.wait, b.waiting, kernels_);
    b.waiting = 0;
  }

  bool finish_far(QuadraticForm& f, Bin& b) {
    if (b.cluster.half_dof + b.cluster.half_noncentrality == 0 && few(b.wait, b.waiting)) {
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
    constexpr double heaviest = 1e3;
    const double extreme = c.centre < 0 ? -range_.lowest : range_.highest;
    const double mass = c.half_dof + c.half_noncentrality;
    return mass * std::fabs(c.centre) > heaviest * extreme || degree_needed(c, 1) == 0;
  }

  void finish_near(QuadraticForm& f, Bin& b) {
    const std::vector<FormTerm>& m = b.members;
    std::vector<FormTerm>& place = few(m.data(), m.size()) ? f.terms : f.members;
    if (&place == &f.members) f.clusters.push_back(cluster_of(m, place.size(), kernels_));
    place.insert(place.end(), m.begin(), m.end());
    std::vector<FormTerm>().swap(b.members);
  }

  FormRange range_;
  bool keep_all_;
  const Kernels& kernels_;
  std::size_t largest_;      // key
  std::vector<Bin*> place_;  // by key, downwards, and sign; null where there is none
  std::deque<Bin> bins_;     // which stay where they are
};

}  // namespace

void cluster_terms(QuadraticForm& f, const FormInput& input, const FormRange& range,
                   const Kernels& kernels) {
  for (const bool keep_all : {false, true}) {
    Bins bins(range, keep_all, kernels);
    for (std::size_t j = 0; j < input.n; ++j) {
      const FormTerm t = input.term(j);
      if (t.counts()) bins.add(t);
    }
    if (bins.finish(f)) return;
    f.terms.clear();
    f.clusters.clear();
    f.members.clear();
  }
}

}  // namespace ellipsum
