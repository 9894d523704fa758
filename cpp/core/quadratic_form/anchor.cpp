// The nodes of the contour at an anchor q serve a q' nearby: there the integrand is
//
//   exp(K(t) - tq') = exp(K(t) - tq) exp(-(q' - q) z - (q' - q) t0),   z = t - t0,
//
// one exponential a node instead of K. Sorted q are handed out in runs of fixed length, so that
// no bit depends on the number of threads.
//
// How exact: the three levels of the rule are summed again at q' (Convergence), 3e-14 wanted, and
// where they do not say so q' has a contour of its own.
#include "quadratic_form/anchor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "constants.hpp"
#include "dispatch.hpp"
#include "threads.hpp"

namespace ellipsum {
namespace {

constexpr double shared_reach = 0.6;     // of q' from the anchor, in sd of the tilted distribution
constexpr double tolerance = 3e-14;      // stricter than the anchor's own rule: no halving follows
constexpr double largest_change = 1e-8;  // of the last two levels
constexpr double anchor_error = 1e-13;   // of an anchor that may serve other q's
constexpr double end_size = 1e-15;       // of the last node against the sum
constexpr std::size_t run_length = 512;  // q's, whatever the threads: they change no bit

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

}  // namespace

void FormAnchor::settle(const QuadraticForm& f, FormMoment moment, const Kernels& kernels) {
  blocks.clear();
  valid = false;
  if (q + edge == 0) return;
  at = integrate(f, saddle, q + edge, moment, kernels, &blocks);
  valid = std::max(at.error, at.pdf_error) - saddle.rounding < anchor_error;
}

bool FormAnchor::serve(double x, FormTail& out, const Kernels& kernels) const {
  if (!valid) return false;
  const double delta = (x - q) * std::ldexp(1.0, saddle.unit);
  if (!((x + edge) * (q + edge) > 0) || !(std::fabs(delta) < shared_reach * std::sqrt(saddle.phi2)))
    return false;
  const std::size_t n = blocks.size(), coarse = at.halved ? n / 2 : n;
  Levels tail, density;
  FormMoved m;
  kernels.form_moved(blocks.data(), coarse, delta, m);
  tail.add(m.tail, false);
  density.add(m.density, false);
  if (at.halved) {
    tail.refine();
    density.refine();
    kernels.form_moved(blocks.data() + coarse, n - coarse, delta, m);
    tail.add(m.tail, true);
    density.add(m.density, true);
  }
  const bool ends = m.last_tail < end_size * tail.all && m.last_density < end_size * density.all;
  const Convergence c = tail.convergence(), pdf = density.convergence();
  const double error = c.error(), pdf_error = pdf.error();
  if (!ends || !(std::max(error, pdf_error) < tolerance) ||
      !(std::max(c.change, pdf.change) < largest_change))
    return false;
  const double step = at.step / pi;
  const double factor = saddle.log_factor - (x - q) * saddle.point.t;
  out = {factor - std::log(saddle.t) + saddle.log_second() + std::log(tail.all * step),
         factor + std::log(density.all * step) + saddle.unit * ln2 + saddle.log_density_second(),
         error + saddle.rounding,
         pdf_error + saddle.rounding,
         false,
         int(n * form_block)};
  return true;
}

void in_sorted_runs(const double* q, std::size_t n, std::size_t threads,
                    const std::function<void(const std::size_t*, const std::size_t*)>& run) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [q](std::size_t a, std::size_t b) {
    return q[a] < q[b] || (q[b] != q[b] && q[a] == q[a]);  // NaN last
  });
  const std::size_t runs = (n + run_length - 1) / run_length, parts = std::min(threads, runs);
  run_parts(parts, [&](std::size_t part) {
    for (std::size_t r = runs * part / parts; r < runs * (part + 1) / parts; ++r) {
      const std::size_t* begin = order.data() + r * run_length;
      run(begin, begin + std::min(run_length, n - r * run_length));
    }
  });
}

}  // namespace ellipsum
