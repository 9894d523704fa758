#include "quadratic_form/quantile.hpp"

#include <algorithm>

#include "quadratic_form/saddle.hpp"

namespace ellipsum {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int most_steps = 40;
constexpr double interpolated = 1e-7;  // a miss of the log tail that one more step squares
constexpr double decent = 1;           // a miss of the logit from which the plain chart is safe
constexpr double underflow = 700;      // of -log|x|

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
  const SidedTail out{x, mine ? t.log_small : large, mine ? large : t.log_small, t.log_pdf, share * t.error};
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
  std::sort(near.begin(), near.end(), [&](const Point& p, const Point& q) { return miss(p) < miss(q); });
  const bool bracketed = std::isfinite(low) && std::isfinite(high);
  bool slow = false;  // the last two points have brought little
  if (bracketed && points_.size() >= halved_ + 4) {
    double before = infinity;
    for (std::size_t i = 0; i + 2 < points_.size(); ++i) before = std::fmin(before, miss(points_[i]));
    slow = miss(near[0]) > 0.2 * before;
    if (slow) halved_ = points_.size() - 1;
  }
  if (slow) return 0.5 * (low + high);
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
    return low + std::fmin(std::fmax(share, 0.05), 0.95) * (high - low);
  }
  return bracketed ? 0.5 * (low + high) : outward();
}

double Search::outward() const {
  const double from = std::isfinite(low) ? low : high;
  const double away = points_.size() > 1 ? 2 * std::fabs(from - points_[0].a) : 0;
  const double step = std::fmax(std::fmax(away, std::fabs(from)), 1e-300);
  return std::isfinite(low) ? from + step : from - step;
}

double saddle_start(const SidedForm& s) {
  double x = 0;
  saddle_of_tail(s.form, s.log_tail, s.sign, x);
  return s.form.normal_sd == 0 && s.lowest() == 0 && !(x > 0) ? 0.5 * s.sign * s.form.mean : x;
}

double plain_search(SidedForm& s, double x, Search search, const std::vector<SidedTail>& known) {
  const bool edge = s.form.normal_sd == 0 && s.highest() == 0;
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
  for (int step = 0; step < most_steps; ++step) {
    if (edge && a > underflow) {  // the doubles end there
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

namespace {

double normal_quantile(SidedForm& s) {
  double x = std::sqrt(std::fmax(-2 * s.log_tail - 1, 0.1)) * s.form.normal_sd;
  return plain_search(s, x, Search(s.logit()), {});
}

double quantile(SidedForm& s) {
  const QuadraticForm& f = s.form;
  if (f.terms.empty() && f.clusters.empty()) return normal_quantile(s);
  const bool open = f.normal_sd > 0;
  Search all(s.logit());
  if (!open && s.lowest() == 0) all.low = 0;
  const Spike spike = find_spike(s);
  std::vector<SidedTail> known;
  if (spike.heavy.empty()) return plain_search(s, saddle_start(s), all, known);
  if (spike.sd > 0) {
    const double x = saddle_start(s);
    if (open || s.highest() > 0 || x < 0) {
      known.push_back(s.at(x));
      if (s.met(known[0]) || std::fabs(known[0].logit() - s.logit()) < decent)
        return s.met(known[0]) ? x + (known[0].log_tail - s.log_tail) * std::exp(known[0].log_tail - known[0].log_pdf)
                               : plain_search(s, x, all, known);
    }
  }
  return spike_search(s, spike, known);
}

}  // namespace

FormQuantile form_quantile(const QuadraticForm& f, double log_tail, bool upper,
                           const Kernels& kernels) {
  SidedForm s(f, log_tail, upper, kernels);
  const double x = quantile(s);
  return {std::ldexp(s.sign * x, f.exponent) + 0.0, s.error, s.evaluations};
}

}  // namespace ellipsum
