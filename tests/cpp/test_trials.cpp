// What is found by trials, on a clock that is made up: speeds that are known, and noise.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "clip/arrangement.hpp"
#include "clip/trials.hpp"

namespace {

using ellipsum::Batch;
using ellipsum::Dtype;
using ellipsum::Region;
using ellipsum::Task;
using ellipsum::Trials;

int failures = 0;
void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

// splitmix64 as doubles in [0, 1).
struct Random {
  std::uint64_t state;
  double operator()() {
    std::uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return double((x ^ x >> 31) >> 11) * 0x1p-53;
  }
};

constexpr std::size_t mebi = std::size_t{1} << 20;

struct Job {
  Trials trials;
  std::size_t bytes = 0;  // that were measured
  // Seconds a row of a variant.
  std::function<double(std::size_t variant)> seconds;

  Job(const std::vector<bool>& out, std::function<double(std::size_t)> seconds_of,
      bool columns = false)
      : seconds(std::move(seconds_of)) {
    bool left_out[Trials::most_variants];
    std::copy(out.begin(), out.end(), left_out);
    trials.begin(out.size(), left_out, columns);
  }

  // As many slices as a batch of so many bytes holds.
  void pass(std::size_t batch) {
    if (!trials.is_due(batch)) return;
    while (trials.elects()) {
      const Trials::Slice slice = trials.next();
      if (slice.bytes > batch) break;
      batch -= slice.bytes;
      bytes += slice.bytes;
      trials.record(seconds(slice.variant), slice.bytes);
    }
  }
};

void without_noise_the_fastest_is_found() {
  for (std::size_t best = 0; best < 25; ++best) {
    Job job(std::vector<bool>(25),
            [&](std::size_t k) { return 1 + 0.01 * double((k + 25 - best) % 25); });
    job.pass(SIZE_MAX);
    expect(job.trials.fastest() == int(best), "the fastest is found");
    expect(job.bytes < 512 * mebi, "in some hundreds of megabytes");
  }
}

void nothing_runs_but_what_is_to_be_tried() {
  std::vector<bool> out(25, true);
  out[3] = out[24] = false;
  Job job(out, [&](std::size_t k) {
    expect(!out[k], "nothing but what is to be tried");
    return k == 3 ? 1.01 : 1.0;
  });
  job.pass(SIZE_MAX);
  expect(job.trials.fastest() == 24, "of two the faster");
}

void what_is_hopeless_is_not_run_again() {
  std::vector<int> runs(25);
  Job job(std::vector<bool>(25), [&](std::size_t k) {
    ++runs[k];
    return k == 7 ? 1.0 : 3.0;
  });
  job.pass(SIZE_MAX);
  for (std::size_t k = 0; k < runs.size(); ++k) expect(k == 7 || runs[k] == 2, "two slices");
}

// Every slice up to a tenth slower than it could be, one in twenty twice as slow: the best one is lost
// where both of its slices of a stage are hit.
void with_noise_it_is_near_the_best() {
  int near = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random{seed};
    std::vector<double> speeds(25);
    for (double& each : speeds) each = 1 + random();
    Job job(std::vector<bool>(25), [&](std::size_t k) {
      return speeds[k] * (1 + 0.1 * random()) * (random() < 0.05 ? 2 : 1);
    });
    while (job.trials.fastest() < 0) job.pass((seed % 3 ? 256 : 24) * mebi);
    const double best = *std::min_element(speeds.begin(), speeds.end());
    near += speeds[std::size_t(job.trials.fastest())] < 1.05 * best;
  }
  expect(near >= 285, "near the best");
  std::printf("within 5 %% of the best in %d of 300 cases\n", near);
}

// One slice in seven takes half as long again, as on a host with neighbours.
void among_outliers_it_is_near_the_best(bool columns) {
  int near = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random{seed};
    std::vector<double> speeds(columns ? 12 : 25);
    for (double& each : speeds) each = 1 + 0.6 * random();
    const auto seconds = [&](std::size_t k) {
      return speeds[k] * (1 + 0.05 * random()) * (random() < 1.0 / 7 ? 1.5 : 1);
    };
    Job job(std::vector<bool>(speeds.size()), seconds, columns);
    job.pass(SIZE_MAX);
    const double best = *std::min_element(speeds.begin(), speeds.end());
    near += speeds[std::size_t(job.trials.fastest())] < 1.05 * best;
  }
  const char* lie = columns ? "columns" : "rows";
  expect(near >= 985, "near the best among outliers");
  std::printf("among outliers within 5 %% of the best in %d of 1000 cases of %s\n", near, lie);
}

void slices_that_do_not_fit_wait() {
  Job job(std::vector<bool>(3), [](std::size_t k) { return 1 + 0.1 * double(k); });
  for (int k = 0; k < 1000; ++k) job.pass(mebi / 2);
  expect(job.bytes == 0 && job.trials.leader() < 0, "no slice is longer than the batch");
  for (int k = 0; k < 1000; ++k) job.pass(mebi);
  expect(job.trials.leader() == 0 && job.trials.fastest() < 0, "a stage may end, the next waits");
}

// Passes of 64 MiB, until so many bytes were passed over.
void pass_on(Job& job, std::size_t gibi) {
  for (std::size_t k = 0; k < 16 * gibi; ++k) job.pass(64 * mebi);
}

constexpr std::size_t best_of_all = 11;
double true_seconds(std::size_t k) { return k == best_of_all ? 1 : 1.3 + 0.01 * double(k); }

// The host is busy while one election runs, with the one before or behind it undisturbed.
void a_disturbed_election_is_made_good() {
  for (bool first : {false, true}) {
    bool busy = first;
    Job job(std::vector<bool>(25), [&](std::size_t k) {
      return busy && k == best_of_all && job.trials.next().bytes < 12 * mebi ? 2 : true_seconds(k);
    });
    pass_on(job, 1);
    expect((job.trials.fastest() == int(best_of_all)) != first, "the first election is believed");
    const std::size_t bytes = job.bytes;
    busy = !first;
    pass_on(job, 4);
    expect(job.bytes > bytes, "there is a second one");
    expect(job.trials.fastest() == int(best_of_all), "and no second one does harm");
  }
}

// One that was lucky in the second election does not beat who won before in the duel.
void luck_does_not_last() {
  std::size_t slices = 0;
  Job job(std::vector<bool>(25), [&](std::size_t k) {
    const bool second = job.trials.fastest() >= 0;
    if (second && k == 3) return ++slices <= 7 ? 0.5 : 1.2;  // all of its slices but in the duel
    return true_seconds(k);
  });
  pass_on(job, 5);
  expect(slices == 11, "a duel");
  expect(job.trials.fastest() == int(best_of_all), "which luck does not win");
}

void nothing_is_measured_for_ever() {
  Job job(std::vector<bool>(25), true_seconds);
  std::size_t passed = 0, last = 0;
  for (std::size_t measured = 0; passed < 512 * 1024 * mebi; passed += 64 * mebi) {
    job.pass(64 * mebi);
    if (job.bytes > measured) last = passed;
    measured = job.bytes;
  }
  expect(job.bytes < 1536 * mebi && last > 8 * 1024 * mebi, "three elections");
  expect(last < 128 * 1024 * mebi, "and then no more");
}

// Slices with holes tell nothing: the one that they would have told of must not run for as long as they last.
void a_known_winner_runs_where_slices_tell_nothing() {
  Trials trials;
  bool out[Trials::most_variants] = {};
  trials.begin(25, out, false);
  while (trials.elects()) {
    const Trials::Slice slice = trials.next();
    trials.record(true_seconds(slice.variant), slice.bytes);
  }
  std::size_t in_vain = 0, batches = 0;
  for (; batches < 100000; ++batches)
    if (trials.is_due(mebi) && trials.elects()) trials.break_off(), ++in_vain;
  expect(in_vain > 1 && in_vain < batches / 1000, "an election that tells nothing is put off");
}

// Is a way that keeps what it reads among those that a pass is measured in?
bool tries_kept(Dtype dtype, Task task, bool columns, bool moved) {
  constexpr std::size_t n = std::size_t{1} << 25, d = 64;  // of which nothing is read
  const std::ptrdiff_t size = dtype == Dtype::float32 ? 4 : 8, near = size;
  const Batch batch{nullptr,
                    dtype,
                    n,
                    d,
                    columns ? near : size * std::ptrdiff_t(d),
                    columns ? size * std::ptrdiff_t(n) : near};
  const double ends[d] = {};
  Region region{};
  region.task = task, region.d = d;
  if (moved) region.lower = region.upper = ends;
  bool kept = false;
  const ellipsum::Choice choice("");
  choice.measure(batch, region, [&](const ellipsum::Variant& variant, std::size_t, std::size_t) {
    kept |= variant.arrangement->keeps;
    return std::int64_t{0};
  });
  return kept;
}

// Where that is another pass: of float32 whose numbers wait for the norm of their row, or (in columns, in a
// box) for the block that they are in.
void kept_numbers_are_tried_where_they_matter() {
  for (bool columns : {false, true})
    for (Task task : {Task::ball, Task::halves, Task::box, Task::distances}) {
      const bool waits = task == Task::box ? columns : task != Task::distances;
      expect(tries_kept(Dtype::float32, task, columns, false) == waits, "kept where they wait");
      expect(!tries_kept(Dtype::float64, task, columns, false), "doubles are y");
      expect(!tries_kept(Dtype::float32, task, columns, true), "moved cells are y");
    }
}

}  // namespace

int main() {
  without_noise_the_fastest_is_found();
  nothing_runs_but_what_is_to_be_tried();
  what_is_hopeless_is_not_run_again();
  with_noise_it_is_near_the_best();
  for (bool columns : {false, true}) among_outliers_it_is_near_the_best(columns);
  slices_that_do_not_fit_wait();
  a_disturbed_election_is_made_good();
  luck_does_not_last();
  nothing_is_measured_for_ever();
  a_known_winner_runs_where_slices_tell_nothing();
  kept_numbers_are_tried_where_they_matter();
  std::printf(failures ? "%d failures\n" : "trials: all as they should be\n", failures);
  return failures != 0;
}
