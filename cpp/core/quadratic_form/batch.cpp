// Sorted q are handed out in runs, which share contours (anchor.hpp).
#include "quadratic_form/batch.hpp"

#include <algorithm>
#include <cmath>

#include "dispatch.hpp"
#include "quadratic_form/anchor.hpp"
#include "quadratic_form/low_dof.hpp"
#include "quadratic_form/tail.hpp"
#include "threads.hpp"

namespace ellipsum {
namespace {

constexpr double largest_log = -0.72;        // of a tail that may be shared: below a half
constexpr std::ptrdiff_t fewest_served = 2;  // q' ahead that pay for recording the nodes

// An anchor of sign * Q.
struct Anchor : FormAnchor {
  double sign = 1;
};

void set_anchor(Anchor& a, const QuadraticForm& f, double q, bool upper, const Kernels& kernels) {
  a.sign = upper ? 1 : -1;
  a.q = a.sign * q;
  a.saddle = find_saddle(f, a.q, a.sign, 1);
  a.settle(f, FormMoment::tail, kernels);
}

// The tail at q on the anchor's nodes; false where they do not serve.
bool shared(const Anchor& a, double q, FormTail& out, const Kernels& kernels) {
  if (!a.serve(a.sign * q, out, kernels)) return false;
  out.upper = a.sign > 0;
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
    if (std::isfinite(x) && shared(anchor, x, out, kernels)) {
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
  in_sorted_runs(q, n, threads, [&](const std::size_t* begin, const std::size_t* end) {
    tails_of_run(f, {q, begin, end, out}, kernels);
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
