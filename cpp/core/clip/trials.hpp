// Which variant of a pass is the fastest: it says what to run next, slice after slice, and is told
// how long that took. It has no clock, runs nothing, and allocates nothing.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ellipsum {

// Trials go by stages, until one is the fastest: an election of some hundred megabytes (of long rows more), and
// so of some tens of milliseconds, in which whatever else a host does is taken for the variants' own. So there are
// two others, much later, each among all variants, and who wins instead of the last winner meets it once more,
// by turns. One thread at a time calls what is not const but `is_due`; that, `fastest` and `leader` are for all.
class Trials {
 public:
  static constexpr std::size_t most_variants = 56;

  bool begun() const { return variants_ != 0; }
  // Of n variants those with `out[k]` are not tried. Every column of a slice begins cold: they take
  // longer ones.
  void begin(std::size_t n, const bool* out, bool columns);

  // The fastest variant, and the leader of the stage before; -1 where none is known.
  int fastest() const { return fastest_.load(std::memory_order_acquire); }
  int leader() const { return leader_.load(std::memory_order_acquire); }

  // Takes note of a pass over so many bytes. Is something to be measured in it?
  bool is_due(std::size_t bytes);

  // Is an election under way? Where one is due it begins.
  bool elects();

  // What is to be run next, in an election.
  struct Slice {
    std::size_t variant, bytes;
  };
  Slice next() const;
  // Takes what `next` took, a slice of so many bytes (at least some rows).
  void record(double seconds_a_row, std::size_t bytes);
  // What was run tells nothing. An election goes on; where a winner is known, it is put off: else what comes
  // next in it would run for as long as that.
  void break_off();

 private:
  void begin_election();
  void begin_stage();
  void end_stage();
  void end_election(int best);
  void rest();
  std::size_t bytes_of(std::size_t stage) const;
  std::atomic<int> fastest_{-1}, leader_{-1};
  std::atomic<std::int64_t> rest_{0};  // bytes to pass before the next election
  std::int64_t bytes_ = 0;             // that elections measured, all together
  std::size_t variants_ = 0, stage_ = 0, trial_ = 0, elections_ = 0;  // trial: of the stage
  bool columns_ = false, elects_ = false, never_[most_variants] = {}, out_[most_variants] = {};
  float least_[most_variants];  // seconds a row, on slices as long as this stage's
};

}  // namespace ellipsum
