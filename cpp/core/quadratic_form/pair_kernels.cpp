// Sums over the terms of a pair of Gaussians at a point of the axis, built once per target. A
// register holds terms. pair.hpp has the two forms of K and why.
//
// How exact: each part's relative error is at most 8 units of roundoff; sums carry what their
// additions lose. A product that the compiler fuses with an addition loses less, not more.
#include <cmath>

#include "constants.hpp"
#include "quadratic_form/pair_terms.hpp"
#include "simd/math.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {

using std::size_t;
using namespace simd;
static_assert(pair_padding % lanes == 0);

double total(const Doubles& v) {
  double sum = 0;
  for (size_t i = 0; i < lanes; ++i) sum += v[i];
  return sum;
}

// One sum a lane, with what its additions lost (Knuth's two-sum).
struct Sums {
  Doubles sum = {}, lost = {};
  void add(const Doubles& v) {
    const Doubles s = sum + v, b = s - sum;
    lost += (sum - (s - b)) + (v - b);
    sum = s;
  }
  PairSum value() const {
    PairSum all{0, total(lost)};
    for (size_t i = 0; i < lanes; ++i) {
      const double s = all.sum + sum[i], b = s - all.sum;
      all.lost += (all.sum - (s - b)) + (sum[i] - b);
      all.sum = s;
    }
    return all;
  }
};

// 1 - te, next to the highest e by the gap.
inline Doubles one_minus(const Doubles& e, double t, double gap, double highest) {
  const Doubles a = 1 - t * e;
  if (!(gap < 0.5)) return a;
  return select(e > 0, ((highest - e) + e * gap) / highest, a);
}

// D(x) = log(1 - x) + x for |x| <= 1/2 by x = 2s/(1+s): |s| <= 1/3, and what is left out of the
// series is below s^34 / 35 = 2e-18 beside 1/4.
inline Doubles defect_of(const Doubles& x) {
  const Doubles s = x / (2 - x), q = s * s;
  Doubles series = q * (1.0 / 33) + 1.0 / 31;
  series = series * q + 1.0 / 29;
  series = series * q + 1.0 / 27;
  series = series * q + 1.0 / 25;
  series = series * q + 1.0 / 23;
  series = series * q + 1.0 / 21;
  series = series * q + 1.0 / 19;
  series = series * q + 1.0 / 17;
  series = series * q + 1.0 / 15;
  series = series * q + 1.0 / 13;
  series = series * q + 1.0 / 11;
  series = series * q + 1.0 / 9;
  series = series * q + 1.0 / 7;
  series = series * q + 1.0 / 5;
  series = series * q + 1.0 / 3;
  return -2 * s * (s / (1 + s) + series * q);
}

// A register of terms at t.
struct At {
  Doubles e, x, a, inverse, r, half, s;
  At(const PairColumns& c, size_t j, double t, double gap)
      : e(load_doubles(c.excess + j)),
        x(t * e),
        a(one_minus(e, t, gap, c.highest)),
        inverse(1 / a),
        r(e * inverse),
        half(load_doubles(c.half_dof + j)),
        s(load_doubles(c.half_shift + j) * inverse) {}
  Mask near() const { return magnitude(x) < pair_far; }
  // Of a near term: the shift's part of K', and K'.
  Doubles bent_slope(double t) const { return s * inverse * (1 + t * (1 + (1 - x))); }
  Doubles slope(const PairColumns& c, size_t j, double t) const {
    return half * (r * x - load_doubles(c.defect + j)) + bent_slope(t);
  }
  // Of a far term: K' without its linear part, and the shift's share of that.
  Doubles singular_bend(const PairColumns& c, size_t j) const {
    return load_doubles(c.pole + j) * r * inverse;
  }
};

template <bool all_near> void slopes(const PairColumns& c, double t, double gap, PairSlopes& out) {
  const Doubles zero = {};
  Doubles up = zero, down = zero, up_slope = zero, down_slope = zero;
  Sums linear;
  for (size_t j = 0; j < c.n; j += lanes) {
    const At p(c, j, t, gap);
    const Doubles first = p.slope(c, j, t);
    const Doubles second =
        t * (p.half * p.r * p.r + 2 * p.s * p.inverse * (load_doubles(c.kappa + j) * p.inverse));
    if (all_near) {
      up += first;
      up_slope += second;
      continue;
    }
    const Mask near = p.near();
    const Doubles here = select(near, first, p.half * p.r + p.singular_bend(c, j));
    const Mask above = here > 0;
    up += select(above, here, zero);
    down -= select(above, zero, here);
    up_slope += select(above, second, zero);
    down_slope -= select(above, zero, second);
    linear.add(select(near, zero, -load_doubles(c.log_end + j)));
    linear.add(select(near, zero, -load_doubles(c.end + j)));  // the low parts hardly matter here
  }
  const PairSum rest = linear.value();
  out = {total(up), total(down), total(up_slope), total(down_slope), rest.sum, rest.lost};
}

// log(1 - te) of the far terms of a register, each by the C library: its last bit counts m/2 times.
Doubles log_survivors(const At& p, const Mask& near) {
  Doubles out = {};
  for (size_t i = 0; i < lanes; ++i)
    if (!near[i]) out[i] = p.a[i] > 0.5 ? std::log1p(-p.x[i]) : std::log(p.a[i]);
  return out;
}

struct Accumulated {
  Sums log_mgf, drift, linear;
  Doubles rest = {}, doubt = {}, drift_doubt = {}, ends = {}, phi2 = {}, phi3 = {};
};

template <bool all_near, bool shifted>
void sums(const PairColumns& c, double t, double gap, double unit, double* r, double* kappa,
          PairSums& out) {
  const Doubles zero = {};
  Accumulated v;
  for (size_t j = 0; j < c.n; j += lanes) {
    const At p(c, j, t, gap);
    const Mask near = p.near();
    const Doubles scaled = p.r * unit, pole = load_doubles(c.pole + j) * p.inverse;
    store_doubles(r + j, scaled);
    store_doubles(kappa + j, pole);
    const Doubles square = scaled * scaled * p.half;
    v.phi2 += square + 2 * (pole * scaled) * scaled;
    v.phi3 += scaled * (2 * square + 6 * (pole * scaled) * scaled);
    v.drift_doubt += 4 * p.half * magnitude(p.r);  // taken off again at every node
    const Doubles log_part = -p.half * (defect_of(p.x) + t * load_doubles(c.defect + j));
    const Doubles smooth = p.s * t * (1 + t), bent = p.bent_slope(t);
    const Doubles ends = load_doubles(c.log_end + j), low = load_doubles(c.log_end_low + j);
    if (all_near) {
      v.log_mgf.add(log_part);
      v.drift.add(-ends);
      v.drift.add(-low);
      v.rest += p.slope(c, j, t);
      v.doubt += 8 * log_part;
      if (!shifted) continue;
      v.log_mgf.add(smooth);
      v.drift.add(bent);
      v.doubt += 8 * smooth;
      v.drift_doubt += 8 * bent;
      continue;
    }
    const Doubles log_a = log_survivors(p, near), far_bend = p.singular_bend(c, j);
    const Doubles other = load_doubles(c.end + j), shift = pole * p.x;
    v.log_mgf.add(select(near, log_part, -p.half * log_a));
    v.log_mgf.add(select(near, smooth, shift));
    v.drift.add(select(near, bent, far_bend));
    v.drift.add(select(near, -ends, zero));
    v.drift.add(select(near, -low, zero));
    v.linear.add(select(near, zero, ends));
    v.linear.add(select(near, zero, low));
    v.linear.add(select(near, zero, other));
    v.linear.add(select(near, zero, load_doubles(c.end_low + j)));
    // Where the gap says what t is, the singular part is exact there.
    const Doubles singular =
        select(gap < 0.5 ? p.e > 0 : Mask{}, zero, p.half * p.r + far_bend) - ends - other;
    v.rest += select(near, p.slope(c, j, t), singular);
    const Doubles steps = select((p.e == c.highest) | (p.a > 0.5), zero + 1, zero + 3);
    const Doubles far_doubt = p.half * (steps + magnitude(log_a)) + 8 * magnitude(shift);
    v.doubt += select(near, 8 * (log_part + smooth), far_doubt);
    v.drift_doubt += 8 * select(near, bent, magnitude(far_bend));
    v.ends += select(near, zero, magnitude(ends) + magnitude(other));
  }
  out = {v.log_mgf.value(),    v.drift.value(), v.linear.value(), total(v.rest), total(v.doubt),
         total(v.drift_doubt), total(v.ends),   total(v.phi2),    total(v.phi3)};
}

}  // namespace

void pair_slopes(const PairColumns& c, double t, double gap, PairSlopes& out) {
  const UpperHalvesCleared at_the_end;
  if (t * c.largest < pair_far) slopes<true>(c, t, gap, out);
  else slopes<false>(c, t, gap, out);
}

void pair_sums(const PairColumns& c, double t, double gap, double unit, double* r, double* kappa,
               PairSums& out) {
  const UpperHalvesCleared at_the_end;
  if (!(t * c.largest < pair_far)) sums<false, true>(c, t, gap, unit, r, kappa, out);
  else if (c.shifted) sums<true, true>(c, t, gap, unit, r, kappa, out);
  else sums<true, false>(c, t, gap, unit, r, kappa, out);
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
