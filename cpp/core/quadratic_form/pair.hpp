// The privacy loss L = log dP/dQ of two Gaussians, by the spectrum of one against the other.
//
// A term of kappa = 1 + e has m rows and the shift S = kappa c^2 (in Q's metric). Under P
//
//   K(t) = log E exp(tL) = sum -m/2 (D(te) + t D(-e)) + S t (1 + t) / (2 (1 - te)),
//
// D(x) = log(1 - x) + x <= 0: for t > 0 a sum of positive numbers, however small e is. Where |te|
// is not small, the same is
//
//   sum -m/2 log(1 - te) + S kappa / (2 e^2) te / (1 - te) - t (m/2 log kappa + S / (2e)),
//
// whose linear part, with t epsilon, is summed in twice the precision: near the end of L's
// support, or deep in a tail, hardly anything is left of it. e = 0 is the normal term.
#pragma once
#include <vector>

#include "quadratic_form/hockey_stick.hpp"
#include "quadratic_form/pair_terms.hpp"

namespace ellipsum {

struct Kernels;

// As Python hands it over; pairs of doubles add up to one number.
struct PairRow {
  double excess;  // e = kappa - 1
  double log_kappa, log_kappa_low;
  double shift;         // S
  double end, end_low;  // S / (2e), or 0 where e is
  double dof;           // m
};

struct PairTerm {
  double excess, kappa, shift, dof;
  double defect;                // D(-e) = log kappa - e
  double log_end, log_end_low;  // m/2 log kappa
  double end, end_low;
};

struct GaussianPair {
  std::vector<PairTerm> terms;  // one by one first, then the groups
  std::size_t general = 0;
  std::vector<FormGroup> groups;
  std::vector<double> columns;     // of the terms, for the kernels
  bool shifted = false;            // is any S above 0?
  double normal = 0;               // c^2 of e = 0
  double highest = 0, lowest = 0;  // of e; 0 where there is none of that sign
  double edge = 0, edge_low = 0;   // where the e are of one sign, L's support ends at -edge
  double edge_roundoff = 0;        // of the pairs of doubles, relative
  double mean = 0, variance = 0;   // K' and K'' at 0
  QuadraticForm form;              // only how it decays: its normal term, its dof

  PairColumns view() const;
};

// Rows of e = 0 become the normal term; `edge_roundoff` says how good their pairs are.
GaussianPair prepare_pair(const PairRow* rows, std::size_t n, double edge_roundoff);

// The saddlepoint of K(t) - t epsilon - log t - log(1 + t).
FormSaddle pair_saddle(const GaussianPair& pair, double epsilon, const Kernels& kernels);

void pair_hockey_sticks(const GaussianPair& pair, const double* epsilon, std::size_t n,
                        FormTail* out, std::size_t threads, const Kernels& kernels);

// K, K', K'' at t > -1 within the domain.
struct PairCumulants {
  double log_mgf, slope, bend;
};
PairCumulants pair_cumulants(const GaussianPair& pair, double t);

}  // namespace ellipsum
