#include "clip/arrangement.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <mutex>

#include "clip/trials.hpp"
#include "dispatch.hpp"
#include "error.hpp"

namespace ellipsum {
namespace {

// Names say rows in flight and who asks the memory. The distances: a page, since nearer lines
// arrive too late; for the second level 14 KB, which the first could not hold beside the scratch; for both 2 KB,
// from the second level then, and 10 KB (beyond_bytes).
constexpr Arrangement wide[] = {{"8-far", 8, 14336, 0, Fetch::far, false},
                                {"8-near", 8, 4096, 0, Fetch::near, false},
                                {"8-both", 8, 2048, 0, Fetch::both, false},
                                {"4-near", 4, 4096, 0, Fetch::near, false},
                                {"4-far", 4, 14336, 0, Fetch::far, false},
                                {"4-both", 4, 2048, 0, Fetch::both, false},
                                {"4-kept", 4, 4096, 0, Fetch::near, true},
                                {"2-near", 2, 4096, 0, Fetch::near, false},
                                {"2-far", 2, 8192, 0, Fetch::far, false},
                                {"1-near", 1, 8192, 0, Fetch::near, false},
                                {"1-far", 1, 16384, 0, Fetch::far, false},
                                {"4-beside", 4, 2048, 0, Fetch::beside, false},
                                {"3-beside", 3, 3072, 0, Fetch::beside, false},
                                {"2-beside", 2, 4096, 0, Fetch::beside, false},
                                {"2-kept-beside", 2, 2048, 0, Fetch::beside, true},
                                {"8-registers", 8, 4096, 0, Fetch::near, false, true},
                                {"8-registers-far", 8, 8192, 0, Fetch::far, false, true},
                                {"8-registers-both", 8, 2048, 0, Fetch::both, false, true}};
constexpr const Arrangement &eight_near = wide[1], &four_near = wide[3], &two_near = wide[7],
                            &side_by_side = wide[15];
// A kept row fills its records with others of its group (stream_vectors has these groups alone).
constexpr bool keeps_known_groups() {
  for (const Arrangement& each : wide)
    if (each.keeps && each.rows != 2 && each.rows != 4) return false;
  return true;
}
static_assert(keeps_known_groups());
// Of 128 bits: eight rows in flight cost more than they save.
constexpr const Arrangement* narrow = &four_near;
constexpr std::size_t wide_count = sizeof wide / sizeof *wide, narrow_count = wide_count - 3;
// Of columns: slabs of so many vectors of rows, whose next ones are asked for together or each column's
// beside it, or blocks (of which as much waits), asked for two pages ahead, or as far as there are columns (for
// both levels: to the second, and to the first right before). What waits of blocks that are asked for to the first
// level fills two second levels of Zens, or goes to their third, of which a core has 4 MB: longer runs of many
// columns are worth more than that. Those for both levels are small: of 32 to 256 columns they were 1.04 to 1.42
// times as fast as with runs of a page (an Intel Xeon).
constexpr std::size_t near_block = std::size_t{1} << 21, far_block = std::size_t{1} << 20;
constexpr std::size_t small_run = 512,
                      step_bytes = 128;  // of a column; blocks are of whole steps (block_step)
constexpr Arrangement columns[] = {
    {"columns-4", 4, 4096, 0, Fetch::far, false},
    {"columns-4-beside", 4, 2048, 0, Fetch::beside, false},
    {"columns-near", 4, 8192, near_block, Fetch::near, false},
    {"columns-both", 4, 8192, near_block, Fetch::both, false, false, small_run},
    {"columns-near-kept", 4, 8192, near_block, Fetch::near, true},
    {"columns-both-kept", 4, 8192, near_block, Fetch::both, true, false, small_run},
    {"columns-far-kept", 4, 8192, far_block, Fetch::far, true},
    {"columns-registers", 4, 2048, 0, Fetch::beside, false, true}};
constexpr bool runs_fit() {
  for (const Arrangement& each : columns)
    if (each.run > column_run_bytes || each.run % step_bytes) return false;
  return true;
}
static_assert(runs_fit());
constexpr const Arrangement &slabs = columns[0], &blocks = columns[2],
                            &columns_in_registers = columns[7];
// Of more columns what waits of a slab leaves the first level: blocks were faster on all that were met,
// but for columns that begin at many places of a page (a Zen 5, up to 1.1 times, of memory of their own). Slabs
// that are asked for beside are measured for any number.
constexpr std::size_t most_in_slabs = 64, most_spread_in_slabs = 256;
constexpr std::size_t column_count = sizeof columns / sizeof *columns,
                      few_columns_count = column_count - 1;

// Of so many coordinates rows go one way, side by side, and what is asked for is measured alone. Columns are not
// timed there, nor are rows with gaps, which are copied, and a single coordinate; nor products with a matrix, which
// differ by the rows in flight alone, of which they go by those of their d.
constexpr std::size_t most_in_one_way = 8;
// Slices of which more than one row in so many has a hole tell nothing: such rows go another way
// (clip_rows; the widest vectors' own limit is 12 in 256).
constexpr std::int64_t many_holed = 16;
// At least so many rows, that the first and the last group count less, and whole groups of every
// arrangement (1, 2, 3, 4 or 8 rows), or the rows left over decide.
constexpr std::size_t slice_rows = 48;
constexpr std::size_t most_variants = 2 * wide_count + narrow_count;
static_assert(most_variants <= Trials::most_variants);
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

// Can eight rows of more than eight coordinates stay in them?
bool has_registers(const Kernels& target) { return std::string_view(target.name) == "avx512"; }
std::size_t most_of(const Kernels& target, bool columns) {
  return has_registers(target) && !columns ? most_in_registers : most_side_by_side;
}
bool is_wide(const Kernels& target) { return std::string_view(target.name) != "baseline"; }

std::size_t element_size(const Batch& batch) { return batch.dtype == Dtype::float32 ? 4 : 8; }

// Rows and columns that are read where they lie, but for their cells' box; others are made (made_rows.inl).
bool in_rows(const Batch& batch) {
  return !batch.columns && is_floating(batch.dtype) &&
         batch.column_stride == std::ptrdiff_t(element_size(batch));
}
bool in_columns(const Batch& batch) {
  return !in_rows(batch) && is_floating(batch.dtype) &&
         batch.row_stride == std::ptrdiff_t(element_size(batch));
}

// Do columns begin at many places of a page, that is of the first level of cache? (What is allocated by pages,
// or is a power of two apart, begins at the same one, and lines of more columns than it has ways push each
// other out.) At random ones of 64 the fullest has a few.
// Counted from where the first one begins, so that all parts of a batch are alike.
bool are_spread(const Batch& batch) {
  constexpr std::size_t places = 64, line = 64;
  std::size_t at[places] = {}, most = 0;
  const auto from_first = [&](std::size_t j) -> std::uintptr_t {
    if (!batch.columns) return j * std::uintptr_t(batch.column_stride);
    return reinterpret_cast<std::uintptr_t>(batch.columns[j]) -
           reinterpret_cast<std::uintptr_t>(batch.columns[0]);
  };
  for (std::size_t j = 0; j < batch.d; ++j)
    most = std::max(most, ++at[from_first(j) / line % places]);
  return most * 8 <= batch.d;
}

// What a class of trials lies in. Tables come from those who decode them, which leaves them in the cache;
// arrays come from memory, where rows with gaps between them are other lines. Converted are numbers that are
// no floats, and cells of columns that are moved into a box. A ball's rows have half the scratch, and its
// columns are kept as they were read for less.
enum Layout : std::size_t {
  of_converted,
  of_nulls,
  of_boxed,
  of_gaps,
  of_table,
  of_spread_table,
  of_columns,
  of_spread_columns,
  of_rows,
  of_balls
};
constexpr std::size_t layouts =
    of_balls + (of_balls - of_table);  // the last five once more, of balls

bool is_spread(const Batch& batch, const Region& region) {
  const bool lie = in_columns(batch) && !batch.converts && !batch.valid && !region.lower;
  return lie && are_spread(batch);
}

std::size_t layout_of(const Batch& batch, const Region& region) {
  if (batch.columns && batch.valid) return of_nulls;
  if (batch.converts || (region.lower && in_columns(batch))) return of_converted;
  if (region.lower) return of_boxed;
  const bool array = !batch.columns,
             dense = batch.row_stride == std::ptrdiff_t(batch.d * element_size(batch));
  if (array && !in_columns(batch) && !dense) return of_gaps;
  const bool spread = is_spread(batch, region);
  const Layout layout = batch.columns       ? (spread ? of_spread_table : of_table)
                        : in_columns(batch) ? (spread ? of_spread_columns : of_columns)
                                            : of_rows;
  return region.form == Form::ellipsoid ? layout : of_balls + layout - of_table;
}

// Is a pass that keeps what it reads another one than that which does not? Distances keep nothing, nor do
// rows in a box.
bool keeps_apart(const Batch& batch, const Region& region) {
  const bool waits = region.task == Task::box ? in_columns(batch) : region.task != Task::distances;
  return batch.dtype == Dtype::float32 && waits && !region.lower;
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
  return {wide, wide_count};
}

ArrangementList column_arrangements(const Kernels& target) {
  return {columns, has_registers(target) ? column_count : few_columns_count};
}

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

// On Zen 3, Zen 5 and Xeons: many rows in flight, or columns in slabs, while their scratch and the sums fit
// the first level of cache, fewer, or blocks, beyond; on a Zen 4 short rows side by side, and few columns in
// registers. Batches too small to be measured are in the cache: requests to its first level serve them, too.
const Arrangement& first_arrangement(const Kernels& target, const Batch& batch) {
  if (in_columns(batch) && batch.d <= most_side_by_side && has_registers(target))
    return columns_in_registers;
  if (in_columns(batch)) return batch.d <= most_in_slabs ? slabs : blocks;
  const std::size_t row = batch.d * element_size(batch);
  const bool gaps = in_rows(batch) && batch.row_stride != std::ptrdiff_t(row);
  if (batch.d <= most_side_by_side && !gaps) return side_by_side;
  if (is_wide(target) && row <= 256) return eight_near;
  if (row <= 4096 || batch.d > 2048) return four_near;
  return two_near;
}

struct Choice::PassClass {
  std::mutex measuring;
  Trials trials;

  void begin(const std::vector<Variant>& variants, const Batch& batch, const Region& region) {
    if (trials.begun()) return;
    const bool keeping_matters = keeps_apart(batch, region), columns = in_columns(batch),
               boxed = region.lower && !columns, one_way = !columns && batch.d <= most_in_one_way;
    const std::size_t in_slabs = is_spread(batch, region) ? most_spread_in_slabs : most_in_slabs;
    bool out[most_variants];
    for (std::size_t k = 0; k < variants.size(); ++k) {
      const Arrangement& each = *variants[k].arrangement;
      out[k] = (each.keeps && !keeping_matters) ||
               (one_way && (!each.registers || variants[k].kernels != variants[0].kernels)) ||
               (boxed && each.rows != 1 && each.rows != 2 && each.rows != 4 && each.rows != 8) ||
               (each.registers && batch.d > most_of(*variants[k].kernels, columns)) ||
               (columns && !each.block && each.fetch != Fetch::beside && batch.d > in_slabs);
    }
    trials.begin(variants.size(), out, columns);
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
  if (!classes_ || region.matrix || region.rank || batch.d < 2 || !(columns || in_rows(batch)))
    return nullptr;
  const bool dense = batch.row_stride == std::ptrdiff_t(batch.d * element_size(batch));
  if (batch.d <= most_in_one_way && (columns || !dense)) return nullptr;
  if (region.lower && !columns && region.task == Task::box) return nullptr;  // made rows
  std::size_t bits = 0;
  for (std::size_t d = batch.d - 1; d; d >>= 1) ++bits;
  const std::size_t quarter = ((batch.d - 1) * quarters >> (bits - 1)) % quarters;  // 9, 10 are one
  bits = std::min(bits, bits_of_d - 1);
  std::size_t index = layout_of(batch, region);
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
    const int fastest = pass->trials.fastest();
    if (fastest >= 0) return {variants_of(batch)[std::size_t(fastest)], Chosen::fastest};
    // Batches that hold no slice of the next stage go by what led in the one before.
    const int leader = pass->trials.leader();
    if (leader >= 0) return {variants_of(batch)[std::size_t(leader)], Chosen::leader};
  }
  return {{&kernels(), &first_arrangement(kernels(), batch)}, Chosen::unmeasured};
}

std::size_t Choice::measure(const Batch& batch, const Region& region, const Run& run) const {
  PassClass* pass = class_of(batch, region);
  const std::size_t row = batch.d * element_size(batch);
  if (!pass || !pass->trials.is_due(batch.n * row)) return 0;
  const std::unique_lock<std::mutex> held(pass->measuring, std::try_to_lock);
  if (!held) return 0;
  const std::vector<Variant>& variants = variants_of(batch);
  Trials& trials = pass->trials;
  pass->begin(variants, batch, region);
  std::size_t done = 0;
  while (trials.elects()) {
    const Trials::Slice next = trials.next();
    const std::size_t slice = std::max(next.bytes / row / slice_rows, std::size_t{1}) * slice_rows;
    if (batch.n - done < slice) break;
    const Watch watch;
    const std::int64_t holed = run(variants[next.variant], done, slice);
    const double seconds = watch.seconds();
    done += slice;
    if (!in_columns(batch) && holed * many_holed > std::int64_t(slice)) {
      trials.break_off();
      break;
    }
    trials.record(seconds / double(slice), slice * row);
  }
  return done;
}

}  // namespace ellipsum
