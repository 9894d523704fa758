// A root of b(a) = target where each point knows its slope, in a chart where b is nearly
// straight: the logit of the tail against x. P and density together make the slope:
// d logit / dx = -pdf / (tail (1 - tail)).
//
// How exact: a miss of the log tail below `interpolated` is followed by one Newton step without
// a tail, whose error is its square; the bracket makes every search end.
#include "quadratic_form/search.hpp"

#include <algorithm>

#include "quadratic_form/saddle.hpp"
#include "quadratic_form/tail.hpp"

namespace ellipsum {
namespace {

constexpr double interpolated = 1e-7;     // a miss of the log tail that one more step squares
constexpr double underflow = 700;         // of -log|x|: the doubles end there
constexpr double slow = 0.2;              // the least miss against that of all but the last two:
constexpr std::size_t stall_points = 4;   //   above, after so many points, the bracket is halved
constexpr double least_share = 0.05;      // of the bracket, that false position leaves on a side
constexpr double smallest_step = 1e-300;  // outward from 0, where doubling would stay

// The cubic a(b) through two points with their slopes; false where it need not be monotone.
bool cubic(const Search::Point& p, const Search::Point& q, double b, double& a) {
  const double h = q.b - p.b, secant = (q.a - p.a) / h;
  const double m = 1 / (p.slope * secant), n = 1 / (q.slope * secant);
  if (!(h != 0 && m > 0 && n > 0 && ((m <= 3 && n <= 3) || m + n < 4))) return false;
  const double t = (b - p.b) / h, t2 = t * t, t3 = t2 * t;
  const double toward = (3 * t2 - 2 * t3) + (t3 - 2 * t2 + t) * m + (t3 - t2) * n;
  a = p.a + (q.a - p.a) * toward;
  const bool between = t >= 0 && t <= 1;
  return between || std::fabs(a - q.a) < 2 * std::fabs(q.a - p.a);
}

}  // namespace

SidedTail SidedForm::at(double x) {
  const FormTail t = scaled_tail(form, sign * x, kernels);
  ++evaluations;
  const double large = std::log1p(-std::exp(t.log_small));
  const bool mine = t.upper == (sign > 0);
  const double share = mine ? 1 : std::exp(t.log_small - large);  // of the error, in log_tail
  const SidedTail out{x, mine ? t.log_small : large, mine ? large : t.log_small, t.log_pdf,
                      share * t.error};
  error = std::fmax(out.error, std::fabs(out.log_tail - log_tail));
  return out;
}

bool SidedForm::met(const SidedTail& t) {
  const double miss = std::fabs(t.log_tail - log_tail);
  if (!(miss < std::fmax(interpolated, t.error))) return false;
  error = t.error + miss * miss;
  return true;
}

void Search::add(const Point& p, bool root_above) {
  fresh_ = std::isfinite(p.b) && std::isfinite(p.slope) && p.slope != 0;
  if (fresh_) points_.push_back(p);
  if (root_above) low = p.a, at_low_ = p, has_low_ = true;
  else high = p.a, at_high_ = p, has_high_ = true;
}

double Search::next() {
  const auto miss = [&](const Point& p) { return std::fabs(p.b - target); };
  std::vector<Point> near = points_;
  std::sort(near.begin(), near.end(),
            [&](const Point& p, const Point& q) { return miss(p) < miss(q); });
  const bool bracketed = std::isfinite(low) && std::isfinite(high);
  bool stalled = false;  // the last two points have brought little
  if (bracketed && points_.size() >= halved_ + stall_points) {
    double before = infinity;
    for (std::size_t i = 0; i + 2 < points_.size(); ++i)
      before = std::fmin(before, miss(points_[i]));
    stalled = miss(near[0]) > slow * before;
    if (stalled) halved_ = points_.size() - 1;
  }
  if (stalled) return 0.5 * (low + high);
  for (std::size_t i = 1; i < std::min<std::size_t>(near.size(), 3); ++i) {
    double a;
    if (cubic(near[i], near[0], target, a) && inside(a)) return a;
  }
  if (!near.empty()) {
    const double newton = near[0].a + (target - near[0].b) / near[0].slope;
    if (inside(newton)) return newton;
  }
  if (has_low_ && has_high_ && bracketed && std::isfinite(at_low_.b - at_high_.b)) {
    const double share = (target - at_low_.b) / (at_high_.b - at_low_.b);
    return low + std::fmin(std::fmax(share, least_share), 1 - least_share) * (high - low);
  }
  return bracketed ? 0.5 * (low + high) : outward();
}

double Search::outward() const {
  const double from = std::isfinite(low) ? low : high;
  const double away = points_.size() > 1 ? 2 * std::fabs(from - points_[0].a) : 0;
  const double step = std::fmax(std::fmax(away, std::fabs(from)), smallest_step);
  return std::isfinite(low) ? from + step : from - step;
}

Search within_support(const SidedForm& s) {
  Search all(s.logit());
  if (!s.smooth() && s.lowest() == 0) all.low = 0;
  return all;
}

double saddlepoint_start(const SidedForm& s) {
  double x = 0;
  saddle_of_tail(s.form, s.log_tail, s.sign, x);
  return !s.smooth() && s.lowest() == 0 && !(x > 0) ? 0.5 * s.sign * s.form.mean : x;
}

double logit_search(SidedForm& s, double x, Search search, const std::vector<SidedTail>& known) {
  const bool edge = !s.smooth() && s.highest() == 0;
  if (edge && !(x < 0)) {
    s.error = 0;
    return 0;
  }
  const auto chart = [=](double at) { return edge ? -std::log(-at) : at; };
  const auto back = [=](double a) { return edge ? -std::exp(-a) : a; };
  const auto put = [&](const SidedTail& t) {
    const double slope = -std::exp(t.log_pdf - t.log_tail - t.log_other) * (edge ? -t.x : 1);
    search.add({chart(t.x), t.logit(), slope}, t.logit() > search.target);
  };
  if (edge) {
    search.low = std::isfinite(search.low) ? chart(search.low) : -infinity;
    search.high = search.high < 0 ? chart(search.high) : infinity;
  }
  for (const SidedTail& t : known) put(t);
  double a = chart(x);
  if (!search.empty() || !search.inside(a)) a = search.next();
  for (int step = 0; step < most_tails; ++step) {
    if (edge && a > underflow) {
      s.error = 0;
      return 0;
    }
    const SidedTail t = s.at(back(a));
    if (std::isnan(t.log_tail)) return t.x;
    put(t);
    if (s.met(t)) return edge ? t.x * std::exp(-search.last_step()) : t.x + search.last_step();
    const double next = search.next();
    if (next == a) return back(a);
    a = next;
  }
  return back(a);
}

}  // namespace ellipsum
