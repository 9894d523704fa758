// How a pass over long rows is laid out: the same integers from each arrangement, at different
// speeds. Which one is fastest depends on the processor, the type and the length of a row, so it
// is measured, on rows that have to be added anyway.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batch.hpp"

namespace ellipsum {

struct Kernels;

// What asks the memory for lines: the hardware alone, or prefetches in the order of addresses, to
// the first level of cache, to the second, or to both (further ahead to the second), or row by row
// beside the rows that are read (columns in slabs: each beside itself, to the second); or `far` for what
// rows are made of (made_rows.inl).
enum class Fetch { hardware, near, far, both, beside, made };

// Which rows a pass takes before it leaves the others: all, those until many have holes, or those of
// which many have, from the first one on.
enum class Takes { all, plain, holed };

// Bytes of a column that are read or asked for at once, at most: beyond a page longer runs gain nothing.
constexpr std::size_t column_run_bytes = 4096;

struct Arrangement {
  const char* name;
  std::size_t rows;   // in flight: 1, 2, 3, 4 or 8; they share the loads of center, scale and sums;
                      // by columns: vectors of 8 rows in a slab (a block has its own number)
  std::size_t ahead;  // bytes, at least, from a group of rows (beside: from a row) to what is asked
                      // (both: to the first level; columns: to the second, beside of float64, and
                      // half as many of float32)
  std::size_t block;  // by columns: bytes of a block that wait, or 0 for slabs
  Fetch fetch;
  bool keeps;              // the rows in flight as they were read, in the place of their y
  bool registers = false;  // up to the most below wait in no scratch if they can
  std::size_t run = column_run_bytes;  // bytes of a column in a block, at most
  Takes takes = Takes::all;
};
constexpr std::size_t most_in_registers = 16;  // coordinates: 8 rows take 16 of AVX-512's 32
// Of which rows that follow each other go eight side by side, one coordinate of all of them in a vector (but for
// most_eights in rows.inl), and columns: lines of more, a power of two apart, are more than a cache has places for
// (Zen 4: 15 of float64 have half of the speed of slabs). The other targets have no registers for them, and rows
// alone.
constexpr std::size_t most_side_by_side = 14;

struct ArrangementList {
  const Arrangement* first;
  std::size_t count;
};
// Those that a target is measured in, with rows and with columns.
ArrangementList row_arrangements(const Kernels& target);
ArrangementList column_arrangements(const Kernels& target);

// All of every target that this machine runs, as "target:arrangement".
std::vector<std::string> variant_names();

// What to begin with before anything is measured.
const Arrangement& first_arrangement(const Kernels& target, const Batch& batch);

// A target's kernels in one of its arrangements.
struct Variant {
  const Kernels* kernels;
  const Arrangement* arrangement;
};

// One that a pass should run, and how that is known.
struct Chosen {
  Variant variant;
  enum Known { unmeasured, leader, fastest } known;
};

// The variants that a process may use, and the fastest of them for each task, type, layout and class
// of d (a quarter of an octave). Calls from any number of threads are safe.
class Choice {
 public:
  // `forced`: a target, "target:arrangement", or empty for the best of all; throws for what is
  // unknown or not supported.
  explicit Choice(std::string_view forced);
  ~Choice();
  Choice(const Choice&) = delete;
  Choice& operator=(const Choice&) = delete;

  const Kernels& kernels() const { return *variants_[0].kernels; }
  const std::string& name() const { return name_; }
  // What a pass should run: the fastest, or before it is known the one to begin with.
  Chosen choose(const Batch& batch, const Region& region) const;
  Variant variant(const Batch& batch, const Region& region) const {
    return choose(batch, region).variant;
  }

  // Runs slices of the batch, from its first row on, in one variant after the other, until each
  // was timed as often as it should (in this call or earlier ones), the rows end, or a slice has so many
  // rows with holes that it tells how fast these are; returns how many rows were run. None where nothing
  // is to be measured, or another thread is measuring. Run returns how many rows had holes. What is found
  // is measured anew later on, twice (Trials).
  using Run = std::function<std::int64_t(const Variant&, std::size_t first, std::size_t rows)>;
  std::size_t measure(const Batch& batch, const Region& region, const Run& run) const;

 private:
  struct PassClass;
  PassClass* class_of(const Batch& batch, const Region& region) const;
  const std::vector<Variant>& variants_of(const Batch& batch) const;
  std::string name_;
  std::vector<Variant> variants_, column_variants_;
  std::unique_ptr<PassClass[]> classes_;
};

}  // namespace ellipsum
