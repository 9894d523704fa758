// The integrand at a block of nodes of the contour, built once per target. A register holds
// nodes, the loops run over terms; each line is a vector instruction.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "constants.hpp"
#include "quadratic_form/nodes.hpp"
#include "simd/math.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {

using std::size_t;
using namespace simd;
constexpr double huge_factor = 1e150;  // above, squares would overflow

// kappa (rz)^2 / (1 - rz), whose linear part is the caller's: where kappa is huge and r tiny,
// rz / (1 - rz) would lose what is left beside it.
inline void add_centered(double kappa, const Doubles& u, const Doubles& v, const Doubles& m,
                         Doubles& sr, Doubles& si) {
  const Doubles inverse = 1 / (1 + m), n = (u * u + v * v) * inverse;
  sr += kappa * ((u * u - v * v) * inverse - u * n);
  si += kappa * (v * (2 * u * inverse - n));
}

// One term at a node where |r z| overflows a square: -k/2 log(1 - rz) - kappa.
void far_term(double r, double half_dof, double kappa, double x, double y, double& re, double& im) {
  const double big = std::fmax(std::fabs(x), std::fabs(y));
  re -=
      half_dof * (std::log(std::fabs(r)) + std::log(big) + std::log(std::hypot(x / big, y / big)));
  re -= kappa;
  im -= half_dof * std::atan2(-r * y, 1 - r * x);
}

void add_terms(const SaddleTerms& t, size_t begin, size_t end, double reach, const double* x,
               const double* y, double* re, double* im) {
  const Doubles vx = load_doubles(x), vy = load_doubles(y);
  Doubles sr = load_doubles(re), si = load_doubles(im);
  for (size_t j = begin; j < end; ++j) {
    const double r = t.r[j], half_dof = t.half_dof[j], kappa = t.kappa[j];
    if (std::fabs(r) * reach > huge_factor) {
      for (size_t i = 0; i < lanes; ++i) {
        double a = 0, b = 0;
        far_term(r, half_dof, kappa, x[i], y[i], a, b);
        if (j < t.centered) a -= kappa * (r * x[i]), b -= kappa * (r * y[i]);
        sr[i] += a;
        si[i] += b;
      }
      continue;
    }
    const Doubles u = r * vx, v = r * vy, m = (u * u - 2 * u) + v * v;
    sr -= 0.5 * half_dof * log_one_plus(m);
    si -= half_dof * argument(1 - u, -v);
    if (kappa == 0) continue;
    if (j < t.centered) {
      add_centered(kappa, u, v, m, sr, si);
      continue;
    }
    const Doubles scale = kappa / (1 + m);  // rz / (1 - rz)
    sr += scale * (u - (u * u + v * v));
    si += scale * v;
  }
  store_doubles(re, sr);
  store_doubles(im, si);
}

// prod (1 - r_j z) over a chunk, with the times that its argument wound around pi; and what the
// kappa add, where there are any.
template <bool shifted>
void add_chunk(const double* r, const double* kappa, size_t n, double half_dof, const double* x,
               const double* y, double* re, double* im) {
  const Doubles vx = load_doubles(x), vy = load_doubles(y), zero = {};
  Doubles sr = load_doubles(re), si = load_doubles(im);
  Doubles a = zero + 1, b = zero;
  Mask windings = {};
  for (size_t j = 0; j < n; ++j) {
    const Doubles u = r[j] * vx, v = r[j] * vy, fr = 1 - u, fi = -v;
    if (shifted) add_centered(kappa[j], u, v, (u * u - 2 * u) + v * v, sr, si);
    const Doubles p = a * fr - b * fi, q = a * fi + b * fr;
    // A factor rotates by less than pi, clockwise for r > 0; a true mask is -1.
    windings += r[j] > 0 ? -((b < 0) & (q >= 0)) : ((b > 0) & (q <= 0));
    a = p;
    b = q;
  }
  Doubles whole = zero;
  for (size_t i = 0; i < lanes; ++i) whole[i] = double(windings[i]);
  store_doubles(re, sr - 0.5 * half_dof * log_one_plus(a * a + b * b - 1));
  store_doubles(im, si - half_dof * (argument(a, b) - 2 * pi * whole));
}

// Chunks so short that |product| stays below huge_factor.
void add_group(const SaddleTerms& t, const FormGroup& g, double reach, const double* x,
               const double* y, double* re, double* im) {
  constexpr size_t longest = 32;
  constexpr double log_huge = 345;  // log of huge_factor, 1e150; a factor below 8 takes log 8 < 2.1
  for (size_t j = g.begin; j < g.end;) {
    double room = log_huge;
    size_t n = 0;
    while (j + n < g.end && n < longest) {
      const double factor = 1 + std::fabs(t.r[j + n]) * reach;
      if (factor > huge_factor) break;
      room -= factor < 8 ? 2.1 : std::log(factor);
      if (room < 0) break;
      ++n;
    }
    if (n == 0) add_terms(t, j, j + 1, reach, x, y, re, im);
    else if (g.shifted) add_chunk<true>(t.r + j, t.kappa + j, n, g.half_dof, x, y, re, im);
    else add_chunk<false>(t.r + j, t.kappa + j, n, g.half_dof, x, y, re, im);
    j += n ? n : 1;
  }
}

// sum_p moments[p-1] u^p at all nodes, by Horner's rule.
inline void taylor(const double* moments, size_t degree, const Doubles& ur, const Doubles& ui,
                   Doubles& sr, Doubles& si) {
  sr = si = Doubles{};
  for (size_t p = degree; p-- > 0;) {
    const Doubles a = sr + moments[p], b = si;
    sr = a * ur - b * ui;
    si = a * ui + b * ur;
  }
}

// A cluster beyond the reach of squares, where u is -1 to rounding.
void add_far_cluster(const SaddleCluster& c, const double* x, const double* y, double* re,
                     double* im) {
  double sum = 0, other = 0;
  for (size_t p = form_moments; p-- > 0;) sum = -(sum + c.dof_moments[p]);
  if (c.noncentrality_moments) other = -c.half_noncentrality - c.noncentral_at_saddle;
  for (size_t i = 0; i < lanes; ++i) {
    far_term(c.r, c.half_dof, 0, x[i], y[i], re[i], im[i]);
    re[i] += sum - c.at_saddle + other;
  }
}

void add_cluster(const SaddleCluster& c, double reach, const double* x, const double* y, double* re,
                 double* im) {
  if (std::fabs(c.r) * reach > huge_factor) return add_far_cluster(c, x, y, re, im);
  const Doubles a = c.r * load_doubles(x), b = c.r * load_doubles(y), m = (a * a - 2 * a) + b * b;
  const Doubles inverse = 1 / (1 + m), top = c.u0 + a;  // u = (u0 + rz) / (1 - rz)
  const Doubles ur = (top * (1 - a) - b * b) * inverse, ui = (b * (1 - a) + top * b) * inverse;
  Doubles sr, si;
  taylor(c.dof_moments, c.degree, ur, ui, sr, si);
  sr -= 0.5 * c.half_dof * log_one_plus(m) + c.at_saddle;
  si -= c.half_dof * argument(1 - a, -b);
  if (c.noncentrality_moments) {  // l/2 (1/(1 - 2wt) - 1) = l/2 ((1 + u) sum e^p u^p - 1)
    Doubles fr, fi;
    taylor(c.noncentrality_moments, c.degree, ur, ui, fr, fi);
    sr += c.half_noncentrality * ur - c.noncentral_at_saddle + (fr * (1 + ur) - fi * ui);
    si += c.half_noncentrality * ui + (fr * ui + fi * (1 + ur));
  }
  store_doubles(re, load_doubles(re) + sr);
  store_doubles(im, load_doubles(im) + si);
}

// K(t0 + z) - K(t0) at one register of nodes.
void exponents(const SaddleTerms& terms, const double* x, const double* y, double* re, double* im) {
  double reach = 0;
  for (size_t i = 0; i < lanes; ++i) {
    re[i] = im[i] = 0;
    const double size = std::fabs(x[i]) + std::fabs(y[i]);
    reach = reach > size ? reach : size;
  }
  add_terms(terms, 0, terms.general, reach, x, y, re, im);
  for (size_t g = 0; g < terms.group_count; ++g)
    add_group(terms, terms.groups[g], reach, x, y, re, im);
  for (size_t c = 0; c < terms.cluster_count; ++c)
    add_cluster(terms.clusters[c], reach, x, y, re, im);
}

// 1e6 turns: beyond, the C library reduces the angle.
void phases(const Doubles& angle, Doubles& sine, Doubles& cosine) {
  bool small = true;
  for (size_t i = 0; i < lanes; ++i) small &= std::fabs(angle[i]) < 6e6;
  if (small) return sine_cosine(angle, sine, cosine);
  for (size_t i = 0; i < lanes; ++i) {
    sine[i] = std::sin(angle[i]);
    cosine[i] = std::cos(angle[i]);
  }
}

void nodes(const FormPath& path, const SaddleTerms& terms, const double* sinh_u,
           const double* cosh_u, FormValues& out, size_t at) {
  const Doubles y = path.width * load_doubles(sinh_u), root = length(Doubles{} + path.radius, y);
  const Doubles bend = path.bend * y / root, x = path.bend * y * (y / (root + path.radius));
  double xs[lanes], ys[lanes], re[lanes], im[lanes];
  store_doubles(xs, x);
  store_doubles(ys, y);
  exponents(terms, xs, ys, re, im);
  const double s2 = path.normal_variance;
  Doubles size = exponential(load_doubles(re) + path.drift * x + 0.5 * s2 * (x - y) * (x + y)) *
                 (path.width * load_doubles(cosh_u));
  Doubles sine, cosine;
  phases(load_doubles(im) + path.drift * y + s2 * x * y, sine, cosine);
  // exp(..) dt/du / i, and the pole's t0 / (t0 + z)
  Doubles gr = size * (cosine + sine * bend), gi = size * (sine - cosine * bend);
  if (path.second > 0) {
    const Doubles a = 1 + x * path.second, b = y * path.second, inverse = 1 / length(a, b);
    const Doubles c = a * inverse, d = b * inverse, re_part = gr * c + gi * d;
    gi = (gi * c - gr * d) * inverse;
    gr = re_part * inverse;
    size *= inverse;
  }
  const Doubles dr = 1 + x / path.t, di = y / path.t, inverse = 1 / length(dr, di);
  const Doubles rr = (dr * inverse) * inverse, ri = -(di * inverse) * inverse;
  store_doubles(out.density_re + at, gr);
  store_doubles(out.density_im + at, gi);
  store_doubles(out.ratio_re + at, rr);
  store_doubles(out.ratio_im + at, ri);
  store_doubles(out.size + at, size);
  store_doubles(out.tail + at, gr * rr - gi * ri);
  store_doubles(out.z_re + at, x);
  store_doubles(out.z_im + at, y);
}

void moved(const FormValues* blocks, size_t n, double delta, FormMoved& out, size_t at) {
  Doubles tail = {}, density = {}, size = {}, reach = {};
  for (const FormValues* v = blocks; v != blocks + n; ++v) {
    const Doubles scale = exponential(-delta * load_doubles(v->z_re + at));
    Doubles sine, cosine;
    phases(-delta * load_doubles(v->z_im + at), sine, cosine);
    const Doubles a = load_doubles(v->density_re + at), b = load_doubles(v->density_im + at);
    const Doubles rr = load_doubles(v->ratio_re + at), ri = load_doubles(v->ratio_im + at);
    const Doubles gr = scale * (a * cosine - b * sine), gi = scale * (a * sine + b * cosine);
    density += gr;
    tail += gr * rr - gi * ri;
    size = scale * load_doubles(v->size + at);
    reach = size * (magnitude(rr) + magnitude(ri));
  }
  store_doubles(out.tail + at, tail);
  store_doubles(out.density + at, density);
  if (at + lanes < form_block) return;
  out.last_density = size[lanes - 1];
  out.last_tail = reach[lanes - 1];
}

}  // namespace

void form_nodes(const FormPath& path, const SaddleTerms& terms, const double* sinh_u,
                const double* cosh_u, FormValues& out) {
  const UpperHalvesCleared at_the_end;
  for (size_t i = 0; i < form_block; i += lanes) nodes(path, terms, sinh_u + i, cosh_u + i, out, i);
}

// Several registers of weights at a time: their powers' chains run together.
double form_power_sums(const double* e, const double* mass, size_t n, double* out) {
  const UpperHalvesCleared at_the_end;
  constexpr size_t chains = 32 / lanes;
  Doubles sums[form_moments] = {}, total = {};
  for (size_t j = 0; j < n; j += chains * lanes) {
    double padded[2][chains * lanes] = {};
    const size_t here = n - j < chains * lanes ? n - j : chains * lanes;
    for (size_t i = 0; i < here; ++i) padded[0][i] = e[j + i], padded[1][i] = mass[j + i];
    Doubles factor[chains], power[chains];
    for (size_t c = 0; c < chains; ++c) {
      factor[c] = load_doubles(padded[0] + c * lanes);
      total += power[c] = load_doubles(padded[1] + c * lanes);
    }
    for (size_t p = 0; p < form_moments; ++p)
      for (size_t c = 0; c < chains; ++c) sums[p] += power[c] *= factor[c];
  }
  for (size_t p = 0; p < form_moments; ++p)
    for (size_t i = 0; i < lanes; i += 2) out[p] += sums[p][i] + sums[p][i + 1];
  double mass_sum = 0;
  for (size_t i = 0; i < lanes; ++i) mass_sum += total[i];
  return mass_sum;
}

void form_moved(const FormValues* blocks, size_t n, double delta, FormMoved& out) {
  const UpperHalvesCleared at_the_end;
  for (size_t i = 0; i < form_block; i += lanes) moved(blocks, n, delta, out, i);
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
