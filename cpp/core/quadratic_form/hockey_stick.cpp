#include "quadratic_form/hockey_stick.hpp"

#include <cmath>
#include <vector>

#include "constants.hpp"
#include "dispatch.hpp"
#include "quadratic_form/anchor.hpp"

namespace ellipsum {
namespace {

FormTail alone(const HockeySource& source, double x, const Kernels& kernels) {
  FormTail out;
  if (source.known(x, out)) return out;
  const FormIntegral i =
      integrate(source.form, source.saddle(x), x + source.edge, FormMoment::hockey_stick, kernels);
  return {i.log_value, i.log_pdf, i.error, i.pdf_error, true, i.nodes};
}

void run(const HockeySource& source, const double* x, const std::size_t* begin,
         const std::size_t* end, FormTail* out, const Kernels& kernels) {
  FormAnchor anchor;
  anchor.edge = source.edge;
  for (const std::size_t* i = begin; i != end; ++i) {
    FormTail& found = out[*i];
    const double here = x[*i];
    if (std::isfinite(here) && anchor.serve(here, found, kernels)) {
      found.upper = true;
      continue;
    }
    found = alone(source, here, kernels);
    anchor.valid = false;
    if (found.nodes == 0) continue;
    const double hazard = std::exp(found.log_pdf - found.log_small) * source.unit;
    const std::size_t* ahead = i;  // the last that this contour could serve from there
    while (ahead + 1 != end && (x[ahead[1]] - here) * hazard < served_reach) ++ahead;
    FormTail unused;
    if (ahead - i < fewest_served || source.known(x[*ahead], unused)) continue;
    anchor.q = x[*ahead];
    anchor.saddle = source.saddle(anchor.q);
    anchor.settle(source.form, FormMoment::hockey_stick, kernels);
  }
}

FormTail exactly(double log_delta, double log_slope) {
  return {log_delta, log_slope, 0, 0, true, 0};
}

// Where L > epsilon always: 1 - e^(epsilon + K(-1)).
FormTail below_support(double log_mean) {
  return {std::log(-std::expm1(log_mean)), log_mean, 4e-16, 4e-16, true, 0};
}

// K(-1), of a form in scaled units whose weights are all positive.
double log_mean_exponential(const QuadraticForm& f) {
  Compensated sum;
  const double unit = std::ldexp(1.0, f.exponent);
  const auto add = [&](double weight, double dof, double noncentrality) {
    const double x = 2 * weight * unit;
    sum.add(-0.5 * dof * std::log1p(x));
    sum.add(-0.5 * noncentrality * x / (1 + x));
  };
  for (const FormTerm& t : f.terms) add(t.weight, t.dof, t.noncentrality);
  for (const FormCluster& c : f.clusters) {
    for (std::size_t j = c.begin; j < c.end; ++j)
      add(f.members[j].weight, f.members[j].dof, f.members[j].noncentrality);
    if (c.begin != c.end) continue;
    add(c.center, 2 * c.half_dof, 2 * c.half_noncentrality);
    const double x = 2 * c.center * unit, u = -x / (1 + x);  // of the moments, |u| < 1
    double dof = 0, noncentrality = 0;
    for (std::size_t p = form_moments; p-- > 0;) {
      dof = (dof + c.dof_moments[p]) * u;
      noncentrality = (noncentrality + c.noncentrality_moments[p]) * u;
    }
    sum.add(dof + (1 + u) * noncentrality);
  }
  return sum.value();
}

bool known_of_form(const QuadraticForm& f, double x, FormTail& out) {
  const bool bare = f.terms.empty() && f.clusters.empty(), smooth = f.normal_sd > 0;
  const double epsilon = std::ldexp(x, f.exponent);
  const bool above = !smooth && (bare || f.highest == 0) && x >= 0;
  const bool below = !smooth && (bare || f.lowest == 0) && x <= 0;
  if (std::isnan(x)) out = exactly(x, x);
  else if (x == -infinity) out = exactly(0, -infinity);
  else if (above || x == infinity) out = exactly(-infinity, -infinity);
  else if (below) out = below_support(bare ? epsilon : epsilon + log_mean_exponential(f));
  else return false;
  return true;
}

}  // namespace

void hockey_sticks(const HockeySource& source, const double* x, std::size_t n, FormTail* out,
                   std::size_t threads, const Kernels& kernels) {
  if (n == 1) {
    *out = alone(source, *x, kernels);
    return;
  }
  in_sorted_runs(x, n, threads, [&](const std::size_t* begin, const std::size_t* end) {
    run(source, x, begin, end, out, kernels);
  });
}

void form_hockey_sticks(const QuadraticForm& f, const double* epsilon, std::size_t n, FormTail* out,
                        std::size_t threads, const Kernels& kernels) {
  const double pole = std::ldexp(1.0, f.exponent);  // t = -1
  const HockeySource source{f, 0, pole,
                            [&](double x, FormTail& known) { return known_of_form(f, x, known); },
                            [&](double x) { return find_saddle(f, x, 1, 1, pole); }};
  std::vector<double> scaled(n);
  for (std::size_t i = 0; i < n; ++i) scaled[i] = std::ldexp(epsilon[i], -f.exponent);
  hockey_sticks(source, scaled.data(), n, out, threads, kernels);
}

}  // namespace ellipsum
