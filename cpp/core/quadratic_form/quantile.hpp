// The search for a quantile: charts in which the tail is nearly straight.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "quadratic_form/form.hpp"

namespace ellipsum {

// Both tails of sign * Q at x, in scaled units.
struct SidedTail {
  double x, log_tail, log_other, log_pdf, error;
  double logit() const { return log_tail - log_other; }
};

// sign * Q, its tails counted; log_tail <= log 1/2 is what P(sign * Q > x) shall be.
struct SidedForm {
  const QuadraticForm& form;
  const double sign, log_tail, log_other;
  const Kernels& kernels;
  int evaluations = 0;
  double error = 1;  // of the last tail, with its miss

  SidedForm(const QuadraticForm& f, double log_p, bool upper, const Kernels& k)
      : form(f), sign(upper ? 1 : -1), log_tail(log_p), log_other(std::log1p(-std::exp(log_p))), kernels(k) {}
  SidedTail at(double x);
  bool met(const SidedTail& t);  // near enough for one interpolation without a tail
  double logit() const { return log_tail - log_other; }
  double highest() const { return sign > 0 ? form.highest : -form.lowest; }
  double lowest() const { return sign > 0 ? form.lowest : -form.highest; }
};

// Where b(a) = target, from points that know their slope: the inverse cubic through two, or
// Newton's method, or false position, kept in the bracket.
class Search {
 public:
  struct Point {
    double a, b, slope;
  };
  double target;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  explicit Search(double b) : target(b) {}
  void add(const Point& p, bool root_above);
  bool inside(double a) const { return a > low && a < high; }
  bool empty() const { return points_.empty(); }
  double next();
  // Newton's step from the last point, as a difference: a itself may be rounded.
  double last_step() const {
    return fresh_ ? (target - points_.back().b) / points_.back().slope : 0;
  }

 private:
  std::vector<Point> points_;
  Point at_low_{0, 0, 0}, at_high_{0, 0, 0};
  bool has_low_ = false, has_high_ = false, fresh_ = false;  // fresh: the last point has a slope
  std::size_t halved_ = 0;
  double outward() const;
};

// The heaviest weights, of few degrees of freedom in all, beside which the rest is narrow.
struct Spike {
  std::vector<FormTerm> heavy;  // with signs as in sign * Q; empty: there is none
  double mean = 0, sd = 0;      // of the rest
};

Spike find_spike(const SidedForm& form);

// x by the logit of the tail against x, or at the edge 0 of the support against -log|x|.
double plain_search(SidedForm& form, double x, Search bounds, const std::vector<SidedTail>& known);

// x for a spike, whose saddlepoint approximation says nothing.
double spike_search(SidedForm& form, const Spike& spike, const std::vector<SidedTail>& known);

// Where the saddlepoint approximation has the wanted tail.
double saddle_start(const SidedForm& form);

}  // namespace ellipsum
