// The search for a quantile: charts in which the tail is nearly straight.
#pragma once
#include <cmath>
#include <vector>

#include "constants.hpp"
#include "quadratic_form/form.hpp"

namespace ellipsum {

struct Kernels;

constexpr int most_tails = 40;  // of one search; twelve are the most in 40,000 hard cases

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
      : form(f),
        sign(upper ? 1 : -1),
        log_tail(log_p),
        log_other(std::log1p(-std::exp(log_p))),
        kernels(k) {}
  SidedTail at(double x);
  bool met(const SidedTail& t);  // near enough for one interpolation without a tail
  double logit() const { return log_tail - log_other; }
  // Newton's step on the log tail.
  double newton(const SidedTail& t) const {
    return t.x + (t.log_tail - log_tail) * std::exp(t.log_tail - t.log_pdf);
  }
  bool smooth() const { return form.normal_sd > 0; }
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
  double low = -infinity;
  double high = infinity;

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

// A search for the wanted logit between the ends of the support.
Search within_support(const SidedForm& form);

// x by the logit of the tail against x, or at the edge 0 of the support against -log|x|.
double logit_search(SidedForm& form, double x, Search bounds, const std::vector<SidedTail>& known);

// Where the saddlepoint approximation has the wanted tail.
double saddlepoint_start(const SidedForm& form);

}  // namespace ellipsum
