#include "clip/trials.hpp"

#include <algorithm>
#include <cmath>

namespace ellipsum {
namespace {

// Stages are of a few rounds each, on slices of so many bytes. The first sorts out what is hopeless, on
// slices that are short: every pass begins cold, and so those that ask far ahead, or of many rows, are
// judged too hard by them. The last is for few: some are at their full speed after megabytes only (on a
// Zen 5 float32 of d = 256 `4-far`, which has 32 GB/s in the first four slices of 4 MiB, and 38 from then
// on).
struct Stage {
  std::size_t rounds, bytes, column_bytes;
  double hopeless;   // times the leader's seconds: those are not in the next stage,
  std::size_t most;  // nor those behind so many
};
constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr Stage stages[] = {{2, mebi, 4 * mebi, 1.5, SIZE_MAX},
                            {2, 4 * mebi, 16 * mebi, 1.2, 8},
                            {2, 12 * mebi, 16 * mebi, 1.1, 3},
                            {1, 12 * mebi, 16 * mebi, 1, 1},
                            {4, 12 * mebi, 16 * mebi, 1, 1}};
// The last but one ends an election; in the last one who won meets who won before.
constexpr std::size_t duel = sizeof stages / sizeof *stages - 1;

// So many times the bytes that elections measured pass before the next one, which by count costs 2 to 3 % of the
// time of the first of them; after the last one there is none.
constexpr std::int64_t rests[] = {8, 64};
constexpr std::size_t most_elections = 1 + sizeof rests / sizeof *rests;

}  // namespace

void Trials::begin(std::size_t n, const bool* out, bool columns) {
  variants_ = n;
  std::copy_n(out, n, never_);
  columns_ = columns;
  begin_election();
}

bool Trials::is_due(std::size_t bytes) {
  if (rest_.load(std::memory_order_relaxed) <= 0) return true;
  return rest_.fetch_sub(std::int64_t(bytes), std::memory_order_relaxed) <= std::int64_t(bytes);
}

bool Trials::elects() {
  if (!elects_ && rest_.load(std::memory_order_relaxed) <= 0) begin_election();
  return elects_;
}

void Trials::begin_election() {
  std::copy_n(never_, variants_, out_);
  elects_ = true;
  stage_ = 0;
  begin_stage();
}

// One slice in seven may take half as long again as the others (Zen 5, a host with neighbours): what
// was seen on slices of the same length counts on, but in a duel (a slice that is in the cache takes less
// than any other).
void Trials::begin_stage() {
  const bool anew = stage_ == 0 || stage_ == duel || bytes_of(stage_) != bytes_of(stage_ - 1);
  for (std::size_t k = 0; k < variants_; ++k)
    if (anew || out_[k]) least_[k] = HUGE_VALF;
  trial_ = 0;
  while (out_[trial_]) ++trial_;
}

std::size_t Trials::bytes_of(std::size_t stage) const {
  return columns_ ? stages[stage].column_bytes : stages[stage].bytes;
}

Trials::Slice Trials::next() const { return {trial_ % variants_, bytes_of(stage_)}; }

void Trials::record(double seconds, std::size_t bytes) {
  bytes_ += std::int64_t(bytes);
  float& best = least_[trial_ % variants_];
  best = std::min(best, float(seconds));
  const std::size_t all = stages[stage_].rounds * variants_;
  do ++trial_;
  while (trial_ < all && out_[trial_ % variants_]);
  if (trial_ >= all) end_stage();
}

void Trials::end_stage() {
  const int best = int(std::min_element(least_, least_ + variants_) - least_);
  const int before = fastest_.load(std::memory_order_relaxed);
  if (stage_ == duel || (stage_ + 1 == duel && (before < 0 || best == before)))
    return end_election(best);
  leader_.store(best, std::memory_order_release);
  const Stage& stage = stages[stage_];
  float sorted[most_variants];
  std::copy_n(least_, variants_, sorted);
  std::sort(sorted, sorted + variants_);
  const double limit = std::min(stage.hopeless * double(least_[best]),
                                double(sorted[std::min(stage.most, variants_) - 1]));
  for (std::size_t k = 0; k < variants_; ++k)
    out_[k] |= double(least_[k]) > limit && int(k) != before;
  ++stage_;
  begin_stage();
}

void Trials::end_election(int best) {
  fastest_.store(best, std::memory_order_release);
  elects_ = false;
  ++elections_;
  rest();
}

void Trials::break_off() {
  if (fastest_.load(std::memory_order_relaxed) < 0) return;
  elects_ = false;
  rest();
}

void Trials::rest() {
  const std::int64_t bytes =
      elections_ < most_elections ? rests[elections_ - 1] * bytes_ : INT64_MAX;
  rest_.store(bytes, std::memory_order_relaxed);
}

}  // namespace ellipsum
