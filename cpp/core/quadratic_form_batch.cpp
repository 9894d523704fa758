#include <algorithm>
#include <cmath>
#include <numeric>

#include "form_saddle.hpp"

namespace ellipsum {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double ln2 = 0.69314718055994530942;
constexpr double shared_reach = 0.6;    // in standard deviations of the tilted distribution
constexpr double largest_log = -0.72;   // of a tail that may be shared: below a half

// A contour that served one q, and what its nodes were: exp(-(q' - q) z) takes them to q'.
struct Anchor {
  bool valid = false;
  double q = 0, sign = 1;
  FormSaddle saddle;
  FormIntegral at;
  std::vector<FormValues> blocks;
};

bool anchor_at(Anchor& a, const QuadraticForm& f, double q, bool upper, const Kernels& kernels) {
  a.sign = upper ? 1 : -1;
  a.q = a.sign * q;
  a.saddle = find_saddle(f, a.q, a.sign, 1);
  a.blocks.clear();
  a.valid = false;
  if (a.q == 0) return false;
  a.at = integrate(f, a.saddle, a.q, FormMoment::tail, kernels, &a.blocks);
  a.valid = a.at.error < 1e-13 && a.at.pdf_error < 1e-13;
  return a.valid;
}

// The tail at q on the anchor's nodes; false where they do not serve. The last halving's
// change bounds the error as it does in the contour's own rule.
bool shared(const Anchor& a, double q, bool upper, FormTail& out) {
  if (!a.valid || upper != (a.sign > 0)) return false;
  const double x = a.sign * q, delta = (x - a.q) * std::ldexp(1.0, a.saddle.unit);
  if (!(x * a.q > 0) || !(std::fabs(delta) < shared_reach * std::sqrt(a.saddle.phi2))) return false;
  double value = 0, pdf = 0, half_value = 0, half_pdf = 0, last = 0, last_pdf = 0;
  const std::size_t blocks = a.blocks.size();
  for (std::size_t b = 0; b < blocks; ++b) {
    const FormValues& v = a.blocks[b];
    if (b == blocks / 2) half_value = value, half_pdf = pdf;
    last = last_pdf = 0;
    for (std::size_t i = 0; i < form_block; ++i) {
      const double rr = v.ratio_re[i], ri = v.ratio_im[i], square = rr * rr + ri * ri;
      const double zr = a.saddle.t * (rr / square - 1), zi = -a.saddle.t * ri / square;
      const double size = std::exp(-delta * zr), angle = -delta * zi;
      const double c = size * std::cos(angle), s = size * std::sin(angle);
      const double gr = v.density_re[i] * c - v.density_im[i] * s;
      const double gi = v.density_re[i] * s + v.density_im[i] * c;
      value += gr * rr - gi * ri;
      pdf += gr;
      const double g = std::fabs(gr) + std::fabs(gi);
      last = std::max(last, g * (std::fabs(rr) + std::fabs(ri)));
      last_pdf = std::max(last_pdf, g);
    }
  }
  const double change = std::fabs(1 - 2 * half_value / value);
  const double pdf_change = std::fabs(1 - 2 * half_pdf / pdf);
  const bool ends = last < 1e-15 * value && last_pdf < 1e-15 * pdf;
  if (!ends || !(std::max(change, pdf_change) < 1e-9)) return false;
  const double step = a.at.step / pi;
  const double factor = a.saddle.log_factor - (x - a.q) * a.saddle.point.t;
  out = {factor - std::log(a.saddle.t) + std::log(value * step),
         factor + std::log(pdf * step) + a.saddle.unit * ln2,
         10 * change * change + 1e-15, 10 * pdf_change * pdf_change + 1e-15, upper,
         int(blocks * form_block)};
  return out.log_small < largest_log;
}

}  // namespace

void form_tails(const QuadraticForm& f, const double* q, std::size_t n, FormTail* out,
                const Kernels& kernels) {
  constexpr std::size_t fewest = 8;
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t(0));
  const bool inside = n >= fewest && (!f.terms.empty() || !f.clusters.empty());
  if (inside) std::sort(order.begin(), order.end(), [q](std::size_t a, std::size_t b) {
    return q[a] < q[b] || (q[b] != q[b] && q[a] == q[a]);  // NaN last
  });
  Anchor anchor;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = order[i];
    const double x = std::ldexp(q[at], -f.exponent);
    if (inside && std::isfinite(x) && shared(anchor, x, anchor.sign > 0, out[at])) {
      out[at].log_pdf -= f.exponent * ln2;
      continue;
    }
    out[at] = form_tail(f, q[at], kernels);
    // The next few q may lie as near: put the contour ahead of this one.
    if (!inside || i + 2 >= n || !(out[at].log_small < largest_log)) continue;
    const double next = std::ldexp(q[order[i + 2]], -f.exponent);
    anchor.valid = false;
    if (std::isfinite(next) && std::isfinite(out[at].log_small) &&
        std::fabs(next - x) * std::exp(out[at].log_pdf + f.exponent * ln2 - out[at].log_small) < 2)
      anchor_at(anchor, f, next, out[at].upper, kernels);
  }
}

}  // namespace ellipsum
