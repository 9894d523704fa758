// The nodes of the contour at an anchor q serve a q' nearby: there the integrand is
//
//   exp(K(t) - tq') = exp(K(t) - tq) exp(-(q' - q) z - (q' - q) t0),   z = t - t0,
//
// one exponential a node instead of K. Sorted q are handed out in runs of fixed length, so that
// no bit depends on the number of threads.
//
// How exact: the three levels of the rule are summed again at q' (Convergence), 3e-14 wanted, and
// where they do not say so q' has a contour of its own.
#include "quadratic_form/batch.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dispatch.hpp"
#include "quadratic_form/contour.hpp"
#include "quadratic_form/low_dof.hpp"
#include "quadratic_form/tail.hpp"
#include "threads.hpp"

namespace ellipsum {
namespace {

constexpr double shared_reach = 0.6;     // of q' from the anchor, in sd of the tilted distribution
constexpr double served_reach = 0.5;     // of q' ahead, in 1/hazard: where an anchor is worth it
constexpr double largest_log = -0.72;    // of a tail that may be shared: below a half
constexpr double tolerance = 3e-14;      // stricter than the anchor's own rule: no halving follows
constexpr double largest_change = 1e-8;  // of the last two levels
constexpr double anchor_error = 1e-13;
constexpr double end_size = 1e-15;           // of the last node against the sum
constexpr std::ptrdiff_t fewest_served = 2;  // q' ahead that pay for recording the nodes
constexpr std::size_t run_length = 512;      // q's, whatever the threads: they change no bit

// A contour that served one q, and what its nodes were: exp(-(q' - q) z) takes them to q'.
struct Anchor {
  bool valid = false;
  double q = 0, sign = 1;
  FormSaddle saddle;
  FormIntegral at;
  std::vector<FormValues> blocks;
};

void set_anchor(Anchor& a, const QuadraticForm& f, double q, bool upper, const Kernels& kernels) {
  a.sign = upper ? 1 : -1;
  a.q = a.sign * q;
  a.saddle = find_saddle(f, a.q, a.sign, 1);
  a.blocks.clear();
  a.valid = false;
  if (a.q == 0) return;
  a.at = integrate(f, a.saddle, a.q, FormMoment::tail, kernels, &a.blocks);
  a.valid = a.at.error < anchor_error && a.at.pdf_error < anchor_error;
}

// One functional on a moved anchor: the sum over all nodes, and the coarser levels in it.
struct Levels {
  double all = 0, half = 0, quarter = 0;
  void add(const double* places, bool finest) {
    for (std::size_t i = 0; i < form_block; ++i) {
      all += places[i];
      if (finest) continue;
      if (i % 2 == 0) half += places[i];
      if (i % 4 == 0) quarter += places[i];
    }
  }
  // Where the first step was halved, the nodes of the finest level come last, by themselves.
  void refine() {
    quarter = half;
    half = all;
  }
  Convergence convergence() const {
    return {relative_change(all, 2 * half), relative_change(half, 2 * quarter)};
  }
};

// The tail at q on the anchor's nodes; false where they do not serve.
bool shared(const Anchor& a, double q, bool upper, FormTail& out, const Kernels& kernels) {
  if (!a.valid || upper != (a.sign > 0)) return false;
  const double x = a.sign * q, delta = (x - a.q) * std::ldexp(1.0, a.saddle.unit);
  if (!(x * a.q > 0) || !(std::fabs(delta) < shared_reach * std::sqrt(a.saddle.phi2))) return false;
  const std::size_t blocks = a.blocks.size(), coarse = a.at.halved ? blocks / 2 : blocks;
  Levels tail, density;
  FormMoved m;
  kernels.form_moved(a.blocks.data(), coarse, delta, m);
  tail.add(m.tail, false);
  density.add(m.density, false);
  if (a.at.halved) {
    tail.refine();
    density.refine();
    kernels.form_moved(a.blocks.data() + coarse, blocks - coarse, delta, m);
    tail.add(m.tail, true);
    density.add(m.density, true);
  }
  const bool ends = m.last_tail < end_size * tail.all && m.last_density < end_size * density.all;
  const Convergence c = tail.convergence(), pdf = density.convergence();
  const double error = c.error(), pdf_error = pdf.error();
  if (!ends || !(std::max(error, pdf_error) < tolerance) ||
      !(std::max(c.change, pdf.change) < largest_change))
    return false;
  const double step = a.at.step / pi;
  const double factor = a.saddle.log_factor - (x - a.q) * a.saddle.point.t;
  out = {factor - std::log(a.saddle.t) + std::log(tail.all * step),
         factor + std::log(density.all * step) + a.saddle.unit * ln2,
         error,
         pdf_error,
         upper,
         int(blocks * form_block)};
  return out.log_small < largest_log;
}

// A run of sorted q's.
struct Run {
  const double* q;
  const std::size_t *begin, *end;  // into q and out
  FormTail* out;
};

void tails_of_run(const QuadraticForm& f, const Run& run, const Kernels& kernels) {
  const bool bare = f.terms.empty() && f.clusters.empty();
  Anchor anchor;
  for (const std::size_t* i = run.begin; i != run.end; ++i) {
    FormTail& out = run.out[*i];
    const double x = std::ldexp(run.q[*i], -f.exponent);
    if (std::isfinite(x) && shared(anchor, x, anchor.sign > 0, out, kernels)) {
      out.log_pdf -= f.exponent * ln2;
      continue;
    }
    out = form_tail(f, run.q[*i], kernels);
    anchor.valid = false;
    if (bare || has_low_dof(f, x) || is_far(f, x) || !(out.log_small < largest_log) ||
        !std::isfinite(out.log_small))
      continue;
    const double hazard = std::exp(out.log_pdf + f.exponent * ln2 - out.log_small);
    const std::size_t* ahead = i;  // the last that this contour could serve from there
    while (ahead + 1 != run.end &&
           (std::ldexp(run.q[ahead[1]], -f.exponent) - x) * hazard < served_reach)
      ++ahead;
    if (ahead - i >= fewest_served)
      set_anchor(anchor, f, std::ldexp(run.q[*ahead], -f.exponent), out.upper, kernels);
  }
}

}  // namespace

void form_tails(const QuadraticForm& f, const double* q, std::size_t n, FormTail* out,
                std::size_t threads, const Kernels& kernels) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [q](std::size_t a, std::size_t b) {
    return q[a] < q[b] || (q[b] != q[b] && q[a] == q[a]);  // NaN last
  });
  const std::size_t runs = (n + run_length - 1) / run_length, parts = std::min(threads, runs);
  run_parts(parts, [&](std::size_t part) {
    for (std::size_t r = runs * part / parts; r < runs * (part + 1) / parts; ++r) {
      const std::size_t* begin = order.data() + r * run_length;
      tails_of_run(f, {q, begin, begin + std::min(run_length, n - r * run_length), out}, kernels);
    }
  });
}

void form_quantiles(const QuadraticForm& f, const double* log_tail, const double* upper,
                    std::size_t n, FormQuantile* out, std::size_t threads, const Kernels& kernels) {
  const std::size_t parts = std::min(threads, n);
  run_parts(parts, [&](std::size_t part) {
    for (std::size_t i = n * part / parts; i < n * (part + 1) / parts; ++i)
      out[i] = form_quantile(f, log_tail[i], upper[i] != 0, kernels);
  });
}

}  // namespace ellipsum
