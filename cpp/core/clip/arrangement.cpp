#include "clip/arrangement.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <mutex>

#include "dispatch.hpp"
#include "error.hpp"

namespace ellipsum {
namespace {

// Names say rows in flight and who asks the memory. The distances: a page, since nearer lines
// arrive too late; for the second level 14 KB, which the first could not hold beside the scratch.
constexpr Arrangement wide[] = {{"8-far", 8, 14336, 0, Fetch::far, false},
                                {"8-near", 8, 4096, 0, Fetch::near, false},
                                {"8-kept", 8, 4096, 0, Fetch::near, true},
                                {"4-near", 4, 4096, 0, Fetch::near, false},
                                {"4-far", 4, 14336, 0, Fetch::far, false},
                                {"4-kept", 4, 4096, 0, Fetch::near, true},
                                {"2-near", 2, 4096, 0, Fetch::near, false},
                                {"2-far", 2, 8192, 0, Fetch::far, false},
                                {"1-near", 1, 8192, 0, Fetch::near, false},
                                {"1-far", 1, 16384, 0, Fetch::far, false},
                                {"4-beside", 4, 2048, 0, Fetch::beside, false},
                                {"3-beside", 3, 3072, 0, Fetch::beside, false},
                                {"8-registers", 8, 4096, 0, Fetch::near, false, true}};
constexpr const Arrangement &eight_near = wide[1], &four_near = wide[3], &two_near = wide[6];
// Of 128 bits: eight rows in flight cost more than they save.
constexpr const Arrangement* narrow = &four_near;
constexpr std::size_t widest_count = sizeof wide / sizeof *wide, wide_count = widest_count - 1,
                      narrow_count = wide_count - 3;
// Of columns: slabs of so many vectors of rows, or blocks (of which as much waits), asked for two pages
// ahead. What waits of blocks that are asked for to the first level fills two second levels of Zens, or
// goes to their third, of which a core has 4 MB: longer runs of many columns are worth more than that.
constexpr std::size_t near_block = std::size_t{1} << 21, far_block = std::size_t{1} << 20;
constexpr Arrangement columns[] = {{"columns-4", 4, 4096, 0, Fetch::far, false},
                                   {"columns-2", 2, 4096, 0, Fetch::far, false},
                                   {"columns-near", 4, 8192, near_block, Fetch::near, false},
                                   {"columns-far", 4, 8192, far_block, Fetch::far, false},
                                   {"columns-near-kept", 4, 8192, near_block, Fetch::near, true},
                                   {"columns-far-kept", 4, 8192, far_block, Fetch::far, true}};
constexpr const Arrangement &slabs = columns[0], &blocks = columns[2];
// Of more columns what waits of a slab leaves the first level: blocks were faster on all that were met.
constexpr std::size_t most_in_slabs = 64;
constexpr std::size_t column_count = sizeof columns / sizeof *columns;

// From here on a pass is timed: rows of d <= 8 and products with a matrix have one way each.
constexpr std::size_t least_d = 9;
// Trials go by stages, of a few rounds each, on slices of so many bytes. The first sorts out what is
// hopeless, on slices that are short: every pass begins cold, and so those that ask far ahead, or of many
// rows, are judged too hard by them. The last is for few: some are at their full speed after megabytes
// only (on a Zen 5 float32 of d = 256 `4-far`, which has 32 GB/s in the first four slices of 4 MiB, and 38
// from then on). Of columns all are longer, since every column begins cold.
struct Stage {
  std::size_t rounds, bytes, column_bytes;
  double hopeless;   // times the leader's seconds: those are not in the next stage,
  std::size_t most;  // nor those behind so many
};
constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr Stage stages[] = {{2, mebi, 4 * mebi, 1.5, SIZE_MAX},
                            {2, 4 * mebi, 16 * mebi, 1.2, 9},
                            {1, 16 * mebi, 16 * mebi, 1.1, 3},
                            {2, 16 * mebi, 16 * mebi, 1, 1}};
constexpr std::size_t stage_count = sizeof stages / sizeof *stages;
// Slices of which more than one row in so many has a hole tell nothing: such rows go another way
// (clip_rows; the widest vectors' own limit is 12 in 256).
constexpr std::int64_t many_holed = 16;
// At least so many rows, that the first and the last group count less, and whole groups of every
// arrangement (1, 2, 3, 4 or 8 rows), or the rows left over decide.
constexpr std::size_t slice_rows = 48;
constexpr std::size_t most_variants = 2 * widest_count + narrow_count;
// Of d there is a class for each quarter of an octave, and of the last bits for all that are longer:
// where scratch leaves a level of cache, an arrangement loses half of its speed within an octave.
constexpr std::size_t bits_of_d = 24, quarters = 4, types = 2, tasks = 4;

// Seconds since it was made that its thread ran: what else the machine does is not in them, as files are
// read meanwhile. Where a thread's clock ticks too rarely to tell, as on some virtual machines, by the
// wall.
class Watch {
 public:
  double seconds() const {
    const double ran = of_thread() - thread_, passed = of_wall() - wall_;
    return ran > 0 && ran < 1.1 * passed ? ran : passed;
  }

 private:
  static double of_wall() {
    using Clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }
  static double of_thread() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
    timespec now{};
    if (!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now))
      return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
#endif
    return 0;
  }
  double wall_ = of_wall(), thread_ = of_thread();
};

bool is_wide(const Kernels& target) { return std::string_view(target.name) != "baseline"; }

std::size_t element_size(const Batch& batch) { return batch.dtype == Dtype::float32 ? 4 : 8; }

bool in_rows(const Batch& batch) {
  return !batch.columns && batch.column_stride == std::ptrdiff_t(element_size(batch));
}
bool in_columns(const Batch& batch) {
  return !in_rows(batch) && batch.row_stride == std::ptrdiff_t(element_size(batch));
}

// What a class of trials lies in. Tables come from those who decode them, which leaves them in the cache,
// and what was converted is there; arrays come from memory, where rows with gaps between them are other
// lines; and a ball's pass has half the scratch.
enum class Layout { converted, nulls, table, columns, gaps, ball, rows };
constexpr std::size_t layouts = std::size_t(Layout::rows) + 1;

Layout layout_of(const Batch& batch, const Region& region) {
  if (batch.converts) return Layout::converted;
  if (batch.columns) return batch.valid ? Layout::nulls : Layout::table;
  if (in_columns(batch)) return Layout::columns;
  if (batch.row_stride != std::ptrdiff_t(batch.d * element_size(batch))) return Layout::gaps;
  return region.form == Form::ellipsoid ? Layout::rows : Layout::ball;
}

// Is a pass that keeps what it reads another one than that which does not?
bool keeps_apart(const Batch& batch, const Region& region) {
  return batch.dtype == Dtype::float32 &&
         (region.task == Task::ball || region.task == Task::halves);
}

template <class Take> void each_arrangement(const Kernels& target, const Take& take) {
  for (const ArrangementList& all : {row_arrangements(target), column_arrangements(target)})
    for (std::size_t i = 0; i < all.count; ++i) take(all.first[i]);
}

const Arrangement* named(const Kernels& target, std::string_view name) {
  const Arrangement* found = nullptr;
  std::string known;
  each_arrangement(target, [&](const Arrangement& each) {
    if (name == each.name) found = &each;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  });
  if (found) return found;
  throw Exception(Error::unknown_target, "ELLIPSUM_CPU=" + std::string(target.name) + ":" +
                                             std::string(name) + " is unknown: " + target.name +
                                             " has the arrangements " + known);
}

void add_all(const Kernels& target, const ArrangementList& all, std::vector<Variant>& variants) {
  for (std::size_t i = 0; i < all.count; ++i) variants.push_back({&target, all.first + i});
}

}  // namespace

ArrangementList row_arrangements(const Kernels& target) {
  if (!is_wide(target)) return {narrow, narrow_count};
  return {wide, std::string_view(target.name) == "avx512" ? widest_count : wide_count};
}

ArrangementList column_arrangements(const Kernels&) { return {columns, column_count}; }

std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  const KernelTable targets = kernel_table();
  for (std::size_t t = 0; t < targets.count; ++t) {
    if (!targets.first[t].supported()) continue;
    each_arrangement(targets.first[t], [&](const Arrangement& each) {
      names.push_back(std::string(targets.first[t].name) + ":" + each.name);
    });
  }
  return names;
}

// On Zen 3, Zen 5 and Xeons: many rows in flight, or columns in slabs, while their scratch and the sums
// fit the first level of cache, fewer, or blocks, beyond. Batches too small to be measured are in the
// cache: requests to its first level serve them, too.
const Arrangement& first_arrangement(const Kernels& target, const Batch& batch) {
  if (in_columns(batch)) return batch.d <= most_in_slabs ? slabs : blocks;
  const std::size_t row = batch.d * element_size(batch);
  if (is_wide(target) && row <= 256) return eight_near;
  if (row <= 4096 || batch.d > 2048) return four_near;
  return two_near;
}

struct Choice::PassClass {
  std::mutex measuring;
  std::atomic<int> fastest{-1}, leader{-1};  // leader: of the stage before, until then
  std::size_t stage = 0, trial = 0;          // trial: of the stage
  bool begun = false, out[most_variants] = {};
  float least[most_variants];  // seconds a row

  void begin(const std::vector<Variant>& variants, const Batch& batch, const Region& region) {
    if (begun) return;
    begun = true;
    const bool keeping_matters = keeps_apart(batch, region), columns = in_columns(batch);
    for (std::size_t k = 0; k < variants.size(); ++k) {
      const Arrangement& each = *variants[k].arrangement;
      out[k] = (each.keeps && !keeping_matters) ||
               (each.registers && batch.d > most_in_registers) ||
               (columns && !each.block && batch.d > most_in_slabs);
    }
    begin_stage(variants.size());
  }

  void begin_stage(std::size_t variants) {
    std::fill_n(least, variants, HUGE_VALF);
    trial = 0;
    while (out[trial]) ++trial;
  }

  void record(std::size_t variants, double seconds) {
    float& best = least[trial % variants];
    best = std::min(best, float(seconds));
    const std::size_t all = stages[stage].rounds * variants;
    do ++trial;
    while (trial < all && out[trial % variants]);
    if (trial >= all) end_stage(variants);
  }

  void end_stage(std::size_t variants) {
    const int best = int(std::min_element(least, least + variants) - least);
    if (stage + 1 == stage_count) return fastest.store(best, std::memory_order_release);
    leader.store(best, std::memory_order_release);
    const auto [rounds, bytes, column_bytes, hopeless, most] = stages[stage];
    float sorted[most_variants];
    std::copy_n(least, variants, sorted);
    std::sort(sorted, sorted + variants);
    const double limit =
        std::min(hopeless * double(least[best]), double(sorted[std::min(most, variants) - 1]));
    for (std::size_t k = 0; k < variants; ++k) out[k] |= double(least[k]) > limit;
    ++stage;
    begin_stage(variants);
  }
};

Choice::Choice(std::string_view forced) {
  const std::size_t colon = forced.find(':');
  const Kernels& target = choose_kernels(forced.substr(0, colon));
  name_ = target.name;
  if (colon != std::string_view::npos) {
    variants_.push_back({&target, named(target, forced.substr(colon + 1))});
    name_ += std::string(forced.substr(colon));
    return;
  }
  const auto add = [&](const Kernels& kernels) {
    add_all(kernels, row_arrangements(kernels), variants_);
    add_all(kernels, column_arrangements(kernels), column_variants_);
  };
  add(target);
  // Two vectors of 256 bits may be faster than one of 512.
  if (forced.empty() && is_wide(target) && name_ != "avx2") add(choose_kernels("avx2"));
  classes_ = std::make_unique<PassClass[]>(layouts * tasks * types * bits_of_d * quarters);
}

Choice::~Choice() = default;

Choice::PassClass* Choice::class_of(const Batch& batch, const Region& region) const {
  const bool columns = in_columns(batch);
  if (!classes_ || region.matrix || region.rank || batch.d < 2 ||
      !(columns || (in_rows(batch) && batch.d >= least_d)))
    return nullptr;
  std::size_t bits = 0;
  for (std::size_t d = batch.d - 1; d; d >>= 1) ++bits;
  const std::size_t quarter = ((batch.d - 1) * quarters >> (bits - 1)) % quarters;  // 9, 10 are one
  bits = std::min(bits, bits_of_d - 1);
  std::size_t index = std::size_t(layout_of(batch, region));
  index = index * tasks + std::size_t(region.task);
  index = index * types + (batch.dtype == Dtype::float32);
  index = index * bits_of_d + bits;
  return &classes_[index * quarters + quarter];
}

const std::vector<Variant>& Choice::variants_of(const Batch& batch) const {
  return in_columns(batch) ? column_variants_ : variants_;
}

Chosen Choice::choose(const Batch& batch, const Region& region) const {
  if (!classes_) return {variants_[0], Chosen::unmeasured};
  if (const PassClass* pass = class_of(batch, region)) {
    const int fastest = pass->fastest.load(std::memory_order_acquire);
    if (fastest >= 0) return {variants_of(batch)[std::size_t(fastest)], Chosen::fastest};
    // Batches that hold no slice of the next stage go by what led in the one before.
    const int leader = pass->leader.load(std::memory_order_acquire);
    if (leader >= 0) return {variants_of(batch)[std::size_t(leader)], Chosen::leader};
  }
  return {{&kernels(), &first_arrangement(kernels(), batch)}, Chosen::unmeasured};
}

std::size_t Choice::measure(const Batch& batch, const Region& region, const Run& run) const {
  PassClass* pass = class_of(batch, region);
  if (!pass || pass->fastest.load(std::memory_order_acquire) >= 0) return 0;
  const std::unique_lock<std::mutex> held(pass->measuring, std::try_to_lock);
  if (!held) return 0;
  const std::vector<Variant>& variants = variants_of(batch);
  const bool columns = in_columns(batch);
  pass->begin(variants, batch, region);
  std::size_t done = 0;
  while (pass->fastest.load(std::memory_order_relaxed) < 0) {
    const Stage& stage = stages[pass->stage];
    const std::size_t bytes = columns ? stage.column_bytes : stage.bytes;
    const std::size_t fit = bytes / (batch.d * element_size(batch));
    const std::size_t slice = std::max(fit / slice_rows, std::size_t{1}) * slice_rows;
    if (batch.n - done < slice) break;
    const Watch watch;
    const std::int64_t holed = run(variants[pass->trial % variants.size()], done, slice);
    const double seconds = watch.seconds();
    done += slice;
    if (!columns && holed * many_holed > std::int64_t(slice)) break;
    pass->record(variants.size(), seconds / double(slice));
  }
  return done;
}

}  // namespace ellipsum
