// The generalized chi-square distribution Q = sum_j w_j chi2'(k_j, l_j) + s Z.
//
// P(Q > q) = (1/2 pi i) int exp(K(t) - t q) dt / t over a path through the saddlepoint on
// (0, 1/(2 max w)); K(t) = sum -k/2 log(1 - 2wt) + l wt/(1 - 2wt) + s^2 t^2/2 (Rice 1980;
// Helstrom 1996). The offset is subtracted by the caller; the lower tail is the upper tail
// of -Q. Always the smaller tail is integrated, and its logarithm is the result.
#pragma once
#include <complex>
#include <cstddef>
#include <vector>

#include "quadratic_form/nodes.hpp"

namespace ellipsum {

struct Kernels;

// One weight's share; equal weights are merged.
struct FormTerm {
  double weight, dof, noncentrality;
  bool counts() const { return weight != 0 && (dof > 0 || noncentrality > 0); }
};

// Many weights c(1 + e_j), |e_j| <= spread, by Taylor moments about their centre.
struct FormCluster {
  double centre, spread;
  double half_dof, half_noncentrality;  // sums
  bool noncentral;
  bool shared;              // central and of one small dof: its members may be multiplied
  std::size_t begin, end;   // of QuadraticForm::members; none where degree_needed is never 0
  double dof_moments[form_moments], noncentrality_moments[form_moments];
};

// Prepared: zero weights dropped, scaled by 2^-exponent so that the largest |w| (or s) is
// about one, equal weights merged.
struct QuadraticForm {
  std::vector<FormTerm> terms;                 // one by one first, then the groups
  std::size_t general = 0;
  std::vector<FormGroup> groups;
  std::vector<FormCluster> clusters;
  std::vector<FormTerm> members;               // of the clusters
  double normal_sd = 0;
  int exponent = 0;
  double lowest = 0, highest = 0;              // extreme weights; 0 where there is none of that sign
  double total_dof = 0;
  double mean = 0, variance = 0, third = 0;    // cumulants, scaled
};

// How many moments do along a path through the saddlepoint where u is u0; 0: the members only.
std::size_t degree_needed(const FormCluster& cluster, double u0);

// Weights as given, and the scale: two factors, since 2^-exponent may be beyond the doubles.
struct FormInput {
  const double *weights, *dof, *noncentrality;
  std::size_t n;
  double scale, rest;
  FormTerm term(std::size_t j) const {
    return {weights[j] * scale * rest, dof[j], noncentrality[j]};
  }
};

// Extreme weights that count, 0 where there is none of that sign.
struct FormRange {
  double lowest, highest;
};

// Fills terms, clusters and members. For many weights: a few dozen are terms as they are.
void cluster_terms(QuadraticForm& form, const FormInput& input, const FormRange& range,
                   const Kernels& kernels);

// A product of factors loses the last bits of each, times k/2: only small dof may share.
inline bool shares(const FormTerm& t) { return t.noncentrality == 0 && t.dof <= 4; }

QuadraticForm prepare_form(const double* weights, const double* dof, const double* noncentrality,
                           std::size_t n, double normal_sd, const Kernels& kernels);

// What an expectation over {Q > q} weighs the density with.
enum class FormMoment {
  tail,      // 1
  excess,    // Q - q
  root,      // sqrt(Q), q >= 0
  shortfall  // (sqrt(Q) - sqrt(q))^2, q >= 0
};

// One integral: the logarithm of the tail (or moment) and of the density at q.
struct FormIntegral {
  double log_value;   // log E[g(Q); Q beyond q]
  double log_pdf;     // log density at q
  double error;       // estimated relative error of exp(log_value)
  double pdf_error;   // the same for the density
  int nodes;          // in all
  FormPath path{};    // of the trapezoid rule in the end,
  int count = 0;      // its nodes,
  double step = 0;    // their distance,
  bool halved = false;  // and whether the first one did not do
};

// Both tails of the distribution at q, the smaller one integrated.
struct FormTail {
  double log_small, log_pdf;
  double error, pdf_error;
  bool upper;  // the smaller tail is P(Q > q)
  int nodes;
};

// The q beyond which (upper) or below which lies exp(log_tail) <= 1/2 of the probability.
struct FormQuantile {
  double q;
  double error;     // the last miss of the log tail, and the tail's own error
  int evaluations;  // of the tail
};
FormQuantile form_quantile(const QuadraticForm& form, double log_tail, bool upper,
                           const Kernels& kernels);

// The nodes t of the contour at q and their weights: E-style functionals of the density are
// sums of Re(weight G(t)), with G = 1 for the density itself; in the caller's units.
struct FormContour {
  std::vector<std::complex<double>> t, weight;
};
FormContour form_contour(const QuadraticForm& form, double q, const Kernels& kernels);

// form_tail at every q: neighbours share the nodes of one contour, out[i] belongs to q[i].
// The same bits for any number of threads.
void form_tails(const QuadraticForm& form, const double* q, std::size_t n, FormTail* out,
                std::size_t threads, const Kernels& kernels);

FormTail form_tail(const QuadraticForm& form, double q, const Kernels& kernels);

// form_quantile of every log_tail[i], of the upper tail where upper[i] is not 0.
void form_quantiles(const QuadraticForm& form, const double* log_tail, const double* upper,
                    std::size_t n, FormQuantile* out, std::size_t threads, const Kernels& kernels);

// E[g(Q); Q > q] for sign +1; for sign -1 the same of -Q and -q, the lower tail. The caller
// has checked that q is inside the support, in scaled units.
FormIntegral form_integral(const QuadraticForm& form, double q, double sign, FormMoment moment,
                           const Kernels& kernels);

// The same for q in the caller's units, edges of the support included.
FormIntegral form_moment(const QuadraticForm& form, double q, double sign, FormMoment moment,
                         const Kernels& kernels);

}  // namespace ellipsum
