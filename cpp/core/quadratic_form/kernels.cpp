// The integrand at a block of nodes of the contour, built once per target. A register holds
// nodes, the loops run over terms; each line is a vector instruction.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "quadratic_form/nodes.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {

using std::size_t;
// Nodes in one register of this target.
#if defined(__AVX512F__)
constexpr size_t N = 8;
#elif defined(__AVX__)
constexpr size_t N = 4;
#else
constexpr size_t N = 2;
#endif
constexpr double ln2_high = 6.93147180369123816490e-01;  // 33 bits
constexpr double ln2_low = 1.90821492927058770002e-10;
constexpr double half_pi = 1.57079632679489661923;
constexpr double pi = 3.14159265358979323846;
constexpr double huge_factor = 1e150;  // above, squares would overflow

typedef double Real __attribute__((vector_size(N * sizeof(double))));
typedef std::int64_t Bits __attribute__((vector_size(N * sizeof(double))));
typedef std::uint64_t Word __attribute__((vector_size(N * sizeof(double))));

inline Real load(const double* p) {
  Real v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store(double* p, const Real& v) { std::memcpy(p, &v, sizeof v); }

inline Real select(const Bits& mask, const Real& yes, const Real& no) {
  return (Real)((mask & (Bits)yes) | (~mask & (Bits)no));
}

inline Real magnitude(const Real& x) { return (Real)((Bits)x & INT64_MAX); }

// 2 atanh(s) = log((1+s)/(1-s)), |s| <= 0.172: the series' remainder is below 2^-54.
inline Real two_atanh(const Real& s) {
  const Real q = s * s;
  Real p = q * (2.0 / 21) + 2.0 / 19;
  p = p * q + 2.0 / 17;
  p = p * q + 2.0 / 15;
  p = p * q + 2.0 / 13;
  p = p * q + 2.0 / 11;
  p = p * q + 2.0 / 9;
  p = p * q + 2.0 / 7;
  p = p * q + 2.0 / 5;
  p = p * q + 2.0 / 3;
  return s * (p * q) + 2 * s;
}

// log(1 + m) for m > -1 with 1 + m a normal number; relative error a few ulp, also near 0.
inline Real log_one_plus(const Real& m) {
  constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u;
  // Mantissa into [sqrt(1/2), sqrt 2): add the distance from sqrt(1/2), read the exponent.
  const Word shifted = (Word)(1 + m) + (one - root_half);
  const Real f = (Real)((shifted & 0x000fffffffffffffu) + root_half);
  const Real biased = (Real)((shifted >> 52) | 0x4330000000000000u);  // 2^52 + exponent
  const Real e = biased - (4503599627370496.0 + 1023);
  const Real g = select(e == 0, m, f - 1);
  return two_atanh(g / (2 + g)) + e * ln2_low + e * ln2_high;
}

// arg(x + iy), y/x reduced to |tan| <= 0.199 around 0, pi/8 and pi/4.
inline Real argument(const Real& x, const Real& y) {
  constexpr double tan_16 = 0.198912367379658006912, tan_8 = 0.414213562373095048802,
                   tan_3_16 = 0.668178637919298919998;
  const Real zero = {}, ax = magnitude(x), ay = magnitude(y);
  const Bits steep = ay > ax;
  const Real high = select(steep, ay, ax), low = select(steep, ax, ay);
  const Bits quarter = low > tan_3_16 * high, eighth = low > tan_16 * high;
  const Real tau = select(quarter, zero + 1, select(eighth, zero + tan_8, zero));
  const Real base = select(quarter, zero + half_pi / 2, select(eighth, zero + half_pi / 4, zero));
  const Real s = (low - tau * high) / (high + tau * low);
  const Real q = s * s;
  Real p = 1.0 / 19 - q * (1.0 / 21);
  p = 1.0 / 17 - p * q;
  p = 1.0 / 15 - p * q;
  p = 1.0 / 13 - p * q;
  p = 1.0 / 11 - p * q;
  p = 1.0 / 9 - p * q;
  p = 1.0 / 7 - p * q;
  p = 1.0 / 5 - p * q;
  p = 1.0 / 3 - p * q;
  Real angle = base + (s - s * (q * p));
  angle = select(steep, half_pi - angle, angle);
  angle = select(x < 0, pi - angle, angle);
  return select(y < 0, -angle, angle);
}

inline Real nearest(const Real& x, Bits& whole) {
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: the sum's last bits are the integer
  const Real shifted = x + magic;
  whole = (Bits)shifted;
  return shifted - magic;
}

// exp(x); 0 below -700.
inline Real exponential(const Real& x) {
  const Real bounded = select(x < 700, select(x > -700, x, Real{} - 700), Real{} + 700);
  Bits n;
  const Real k = nearest(bounded * 1.44269504088896340736, n);
  const Real r = (bounded - k * ln2_high) - k * ln2_low;
  Real p = r * (1.0 / 6227020800) + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r * r + r + 1;
  const Real scaled = (Real)((Bits)p + (n << 52));
  return select(x > -700, scaled, Real{});
}

// Both of x, |x| below 2^20 turns: three parts of pi/2, then Taylor series.
inline void sine_cosine(const Real& x, Real& sine, Real& cosine) {
  Bits n;
  const Real k = nearest(x * 0.63661977236758134308, n);
  const Real y = ((x - k * 1.57079632673412561417) - k * 6.07710050630396597660e-11) -
                 k * 2.02226624879595063154e-21;
  const Real q = y * y;
  Real s = q * (1.0 / 355687428096000) - 1.0 / 1307674368000;
  s = s * q + 1.0 / 6227020800;
  s = s * q - 1.0 / 39916800;
  s = s * q + 1.0 / 362880;
  s = s * q - 1.0 / 5040;
  s = s * q + 1.0 / 120;
  s = s * q - 1.0 / 6;
  s = s * q * y + y;
  Real c = q * (1.0 / 20922789888000) - 1.0 / 87178291200;
  c = c * q + 1.0 / 479001600;
  c = c * q - 1.0 / 3628800;
  c = c * q + 1.0 / 40320;
  c = c * q - 1.0 / 720;
  c = c * q + 1.0 / 24;
  c = c * q * q - 0.5 * q + 1;
  const Bits odd = (n & 1) != 0, flip_sine = (n & 2) != 0, flip_cosine = ((n + 1) & 2) != 0;
  sine = select(odd, c, s);
  cosine = select(odd, s, c);
  sine = select(flip_sine, -sine, sine);
  cosine = select(flip_cosine, -cosine, cosine);
}

// kappa (rz)^2 / (1 - rz), whose linear part is the caller's: where kappa is huge and r tiny,
// rz / (1 - rz) would lose what is left beside it.
inline void add_centered(double kappa, const Real& u, const Real& v, const Real& m, Real& sr,
                        Real& si) {
  const Real inverse = 1 / (1 + m), n = (u * u + v * v) * inverse;
  sr += kappa * ((u * u - v * v) * inverse - u * n);
  si += kappa * (v * (2 * u * inverse - n));
}

// One term at a node where |r z| overflows a square: -k/2 log(1 - rz) - kappa.
void far_term(double r, double half_dof, double kappa, double x, double y, double& re,
              double& im) {
  const double big = std::fmax(std::fabs(x), std::fabs(y));
  re -= half_dof * (std::log(std::fabs(r)) + std::log(big) + std::log(std::hypot(x / big, y / big)));
  re -= kappa;
  im -= half_dof * std::atan2(-r * y, 1 - r * x);
}

void add_terms(const SaddleTerms& t, size_t begin, size_t end, double reach, const double* x,
               const double* y, double* re, double* im) {
  const Real vx = load(x), vy = load(y);
  Real sr = load(re), si = load(im);
  for (size_t j = begin; j < end; ++j) {
    const double r = t.r[j], half_dof = t.half_dof[j], kappa = t.kappa[j];
    if (std::fabs(r) * reach > huge_factor) {
      for (size_t i = 0; i < N; ++i) {
        double a = 0, b = 0;
        far_term(r, half_dof, kappa, x[i], y[i], a, b);
        if (j < t.centered) a -= kappa * (r * x[i]), b -= kappa * (r * y[i]);
        sr[i] += a;
        si[i] += b;
      }
      continue;
    }
    const Real u = r * vx, v = r * vy, m = (u * u - 2 * u) + v * v;
    sr -= 0.5 * half_dof * log_one_plus(m);
    si -= half_dof * argument(1 - u, -v);
    if (kappa == 0) continue;
    if (j < t.centered) {
      add_centered(kappa, u, v, m, sr, si);
      continue;
    }
    const Real scale = kappa / (1 + m);  // rz / (1 - rz)
    sr += scale * (u - (u * u + v * v));
    si += scale * v;
  }
  store(re, sr);
  store(im, si);
}

// prod (1 - r_j z) over a chunk, with the times that its argument wound around pi.
void add_chunk(const double* r, size_t n, double half_dof, const double* x, const double* y,
               double* re, double* im) {
  const Real vx = load(x), vy = load(y), zero = {};
  Real a = zero + 1, b = zero;
  Bits windings = {};
  for (size_t j = 0; j < n; ++j) {
    const Real fr = 1 - r[j] * vx, fi = -r[j] * vy;
    const Real p = a * fr - b * fi, q = a * fi + b * fr;
    // A factor rotates by less than pi, clockwise for r > 0; a true mask is -1.
    windings += r[j] > 0 ? -((b < 0) & (q >= 0)) : ((b > 0) & (q <= 0));
    a = p;
    b = q;
  }
  Real whole = zero;
  for (size_t i = 0; i < N; ++i) whole[i] = double(windings[i]);
  store(re, load(re) - 0.5 * half_dof * log_one_plus(a * a + b * b - 1));
  store(im, load(im) - half_dof * (argument(a, b) - 2 * pi * whole));
}

// Chunks so short that |product| stays below huge_factor.
void add_group(const SaddleTerms& t, const FormGroup& g, double reach, const double* x,
               const double* y, double* re, double* im) {
  constexpr size_t longest = 32;
  constexpr double log_huge = 345;
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
    else add_chunk(t.r + j, n, g.half_dof, x, y, re, im);
    j += n ? n : 1;
  }
}

// sum_p moments[p-1] u^p at all nodes, by Horner's rule.
inline void taylor(const double* moments, size_t degree, const Real& ur, const Real& ui, Real& sr, Real& si) {
  sr = si = Real{};
  for (size_t p = degree; p-- > 0;) {
    const Real a = sr + moments[p], b = si;
    sr = a * ur - b * ui;
    si = a * ui + b * ur;
  }
}

// A cluster beyond the reach of squares, where u is -1 to rounding.
void add_far_cluster(const SaddleCluster& c, const double* x, const double* y, double* re, double* im) {
  double sum = 0, other = 0;
  for (size_t p = form_moments; p-- > 0;) sum = -(sum + c.dof_moments[p]);
  if (c.noncentrality_moments) other = -c.half_noncentrality - c.noncentral_at_saddle;
  for (size_t i = 0; i < N; ++i) {
    far_term(c.r, c.half_dof, 0, x[i], y[i], re[i], im[i]);
    re[i] += sum - c.at_saddle + other;
  }
}

void add_cluster(const SaddleCluster& c, double reach, const double* x, const double* y, double* re, double* im) {
  if (std::fabs(c.r) * reach > huge_factor) return add_far_cluster(c, x, y, re, im);
  const Real a = c.r * load(x), b = c.r * load(y), m = (a * a - 2 * a) + b * b;
  const Real inverse = 1 / (1 + m), top = c.u0 + a;  // u = (u0 + rz) / (1 - rz)
  const Real ur = (top * (1 - a) - b * b) * inverse, ui = (b * (1 - a) + top * b) * inverse;
  Real sr, si;
  taylor(c.dof_moments, c.degree, ur, ui, sr, si);
  sr -= 0.5 * c.half_dof * log_one_plus(m) + c.at_saddle;
  si -= c.half_dof * argument(1 - a, -b);
  if (c.noncentrality_moments) {  // l/2 (1/(1 - 2wt) - 1) = l/2 ((1 + u) sum e^p u^p - 1)
    Real fr, fi;
    taylor(c.noncentrality_moments, c.degree, ur, ui, fr, fi);
    sr += c.half_noncentrality * ur - c.noncentral_at_saddle + (fr * (1 + ur) - fi * ui);
    si += c.half_noncentrality * ui + (fr * ui + fi * (1 + ur));
  }
  store(re, load(re) + sr);
  store(im, load(im) + si);
}

// K(t0 + z) - K(t0) at one register of nodes.
void exponents(const SaddleTerms& terms, const double* x, const double* y, double* re,
               double* im) {
  double reach = 0;
  for (size_t i = 0; i < N; ++i) {
    re[i] = im[i] = 0;
    const double size = std::fabs(x[i]) + std::fabs(y[i]);
    reach = reach > size ? reach : size;
  }
  add_terms(terms, 0, terms.general, reach, x, y, re, im);
  for (size_t g = 0; g < terms.group_count; ++g)
    add_group(terms, terms.groups[g], reach, x, y, re, im);
  for (size_t c = 0; c < terms.cluster_count; ++c) add_cluster(terms.clusters[c], reach, x, y, re, im);
}

// 1e6 turns: beyond, the C library reduces the angle.
void phases(const Real& angle, Real& sine, Real& cosine) {
  bool small = true;
  for (size_t i = 0; i < N; ++i) small &= std::fabs(angle[i]) < 6e6;
  if (small) return sine_cosine(angle, sine, cosine);
  for (size_t i = 0; i < N; ++i) {
    sine[i] = std::sin(angle[i]);
    cosine[i] = std::cos(angle[i]);
  }
}

// sqrt(x^2 + y^2) that overflows no square.
inline Real length(const Real& x, const Real& y) {
  const Real ax = magnitude(x), ay = magnitude(y), top = select(ax > ay, ax, ay);
  const Real a = x / top, b = y / top, squares = a * a + b * b;
  Real root;
  for (size_t i = 0; i < N; ++i) root[i] = std::sqrt(squares[i]);
  return top * root;
}

void nodes(const FormPath& path, const SaddleTerms& terms, const double* sinh_u,
           const double* cosh_u, FormValues& out, size_t at) {
  const Real y = path.width * load(sinh_u), root = length(Real{} + path.radius, y);
  const Real bend = path.bend * y / root, x = path.bend * y * (y / (root + path.radius));
  double xs[N], ys[N], re[N], im[N];
  store(xs, x);
  store(ys, y);
  exponents(terms, xs, ys, re, im);
  const double s2 = path.normal_variance;
  Real size = exponential(load(re) + path.drift * x + 0.5 * s2 * (x - y) * (x + y)) *
                    (path.width * load(cosh_u));
  Real sine, cosine;
  phases(load(im) + path.drift * y + s2 * x * y, sine, cosine);
  // exp(..) dt/du / i, and the pole's t0 / (t0 + z)
  Real gr = size * (cosine + sine * bend), gi = size * (sine - cosine * bend);
  if (path.second > 0) {
    const Real a = 1 + x * path.second, b = y * path.second, inverse = 1 / length(a, b);
    const Real c = a * inverse, d = b * inverse, re_part = gr * c + gi * d;
    gi = (gi * c - gr * d) * inverse;
    gr = re_part * inverse;
    size *= inverse;
  }
  const Real dr = 1 + x / path.t, di = y / path.t, inverse = 1 / length(dr, di);
  const Real rr = (dr * inverse) * inverse, ri = -(di * inverse) * inverse;
  store(out.density_re + at, gr);
  store(out.density_im + at, gi);
  store(out.ratio_re + at, rr);
  store(out.ratio_im + at, ri);
  store(out.size + at, size);
  store(out.tail + at, gr * rr - gi * ri);
  store(out.z_re + at, x);
  store(out.z_im + at, y);
}

void moved(const FormValues* blocks, size_t n, double delta, FormMoved& out, size_t at) {
  Real tail = {}, density = {}, size = {}, reach = {};
  for (const FormValues* v = blocks; v != blocks + n; ++v) {
    const Real scale = exponential(-delta * load(v->z_re + at));
    Real sine, cosine;
    phases(-delta * load(v->z_im + at), sine, cosine);
    const Real a = load(v->density_re + at), b = load(v->density_im + at);
    const Real rr = load(v->ratio_re + at), ri = load(v->ratio_im + at);
    const Real gr = scale * (a * cosine - b * sine), gi = scale * (a * sine + b * cosine);
    density += gr;
    tail += gr * rr - gi * ri;
    size = scale * load(v->size + at);
    reach = size * (magnitude(rr) + magnitude(ri));
  }
  store(out.tail + at, tail);
  store(out.density + at, density);
  if (at + N < form_block) return;
  out.last_density = size[N - 1];
  out.last_tail = reach[N - 1];
}

}  // namespace

void form_nodes(const FormPath& path, const SaddleTerms& terms, const double* sinh_u,
                const double* cosh_u, FormValues& out) {
  for (size_t i = 0; i < form_block; i += N)
    nodes(path, terms, sinh_u + i, cosh_u + i, out, i);
}

// Several registers of weights at a time: their powers' chains run together.
double form_power_sums(const double* e, const double* mass, size_t n, double* out) {
  constexpr size_t chains = 32 / N;
  Real sums[form_moments] = {}, total = {};
  for (size_t j = 0; j < n; j += chains * N) {
    double padded[2][chains * N] = {};
    const size_t here = n - j < chains * N ? n - j : chains * N;
    for (size_t i = 0; i < here; ++i) padded[0][i] = e[j + i], padded[1][i] = mass[j + i];
    Real factor[chains], power[chains];
    for (size_t c = 0; c < chains; ++c) {
      factor[c] = load(padded[0] + c * N);
      total += power[c] = load(padded[1] + c * N);
    }
    for (size_t p = 0; p < form_moments; ++p)
      for (size_t c = 0; c < chains; ++c) sums[p] += power[c] *= factor[c];
  }
  for (size_t p = 0; p < form_moments; ++p)
    for (size_t i = 0; i < N; i += 2) out[p] += sums[p][i] + sums[p][i + 1];
  double mass_sum = 0;
  for (size_t i = 0; i < N; ++i) mass_sum += total[i];
  return mass_sum;
}

void form_moved(const FormValues* blocks, size_t n, double delta, FormMoved& out) {
  for (size_t i = 0; i < form_block; i += N) moved(blocks, n, delta, out, i);
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
