#include "clip/clip_sum.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "clip/clip.hpp"
#include "clip/table.hpp"
#include "error.hpp"
#include "threads.hpp"

namespace ellipsum {
using namespace compiled_once;
namespace {

struct Free {
  void operator()(double* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
using Doubles = std::unique_ptr<double[], Free>;

Doubles allocate(std::size_t doubles) {
  return Doubles(
      static_cast<double*>(::operator new[]((doubles + 1) * sizeof(double), std::align_val_t{64})));
}

Batch part_of(const Batch& batch, std::size_t first, std::size_t n) {
  Batch part = batch;
  if (batch.columns) part.first += first;
  else part.data = row_at(batch, first);
  part.n = n;
  return part;
}

// Numbers that are moved into a box at a time, which stay in the second level of cache (fewer pay
// the ends of a pass too often), and a line of the box that few coordinates are repeated to.
constexpr std::size_t moved_numbers = std::size_t{1} << 16, box_line = 256;

Batch moved_rows(const Region& region, double* numbers, std::size_t n) {
  constexpr std::ptrdiff_t size = sizeof(double);
  return {numbers, Dtype::float64, n, region.d, std::ptrdiff_t(region.d) * size, size};
}

std::size_t rows_moved(const Region& region) {
  return std::max<std::size_t>(moved_numbers / region.d, norm_lanes);
}

// Are cells moved into a box before a pass takes them?
bool moves_before(const Batch& batch, const Region& region) {
  return region.lower && !clip_plan(batch, region).columns;
}

// One thread's share: everything is allocated before the thread starts, so none can fail.
struct Share {
  Batch batch;
  Doubles scratch, moved;
  std::vector<std::int64_t> partial;
  ClipCounts counts{0, 0};
};

std::vector<Share> make_shares(const Batch& batch, const Region& region, std::size_t count) {
  std::vector<Share> shares(count);
  for (std::size_t t = 0; t < count; ++t) {
    Share& share = shares[t];
    const std::size_t first = batch.n / count * t + std::min(t, batch.n % count);
    share.batch = part_of(batch, first, batch.n / count + (t < batch.n % count));
    const bool moves = moves_before(batch, region);
    share.scratch =
        allocate(clip_plan(moves ? moved_rows(region, nullptr, 0) : batch, region).doubles);
    if (moves) share.moved = allocate(rows_moved(region) * region.d + norm_lanes);
    share.partial.resize(sums_of(region) + round_up(batch.d, norm_lanes));
  }
  return shares;
}

void add(ClipCounts& counts, const ClipCounts& more) {
  counts.clipped += more.clipped;
  counts.nonfinite += more.nonfinite;
}

// A region as kernels take it, with its matrix packed, and its box in lines.
struct Prepared {
  Region region;
  Doubles packed;
  std::vector<double> ends;
  std::size_t line = 0;  // rows
  Prepared(const Choice& choice, const Region& given, std::size_t n)
      : region(as_passed(given, given.d)) {
    if (n > std::size_t(clip_rows_limit))
      throw Exception(Error::invalid_argument, "internal: more rows than a partial sum can hold");
    if (region.lower) repeat_box();
    if (!is_mixed(region)) return;
    packed = allocate(packed_doubles(region));
    choice.kernels().pack_matrix(region, packed.get());
    region.packed = packed.get();
  }
  CellBox box() const {
    const std::size_t step = ends.size() / 3;
    return {ends.data(), ends.data() + step, ends.data() + 2 * step, line};
  }

 private:
  // Whole vectors of 8 where there are several rows: 8 of them at a time.
  void repeat_box() {
    line = region.d < box_line ? round_up((box_line + region.d - 1) / region.d, norm_lanes) : 1;
    for (const double* from : {region.lower, region.center, region.upper}) {
      for (std::size_t i = 0; i < line; ++i) ends.insert(ends.end(), from, from + region.d);
      ends.insert(ends.end(), norm_lanes, 0.0);
    }
  }
};

// The rows in blocks, their cells moved into the box.
void run_moved(const Choice& choice, const Region& region, const CellBox& box, Share& share) {
  const Batch& all = share.batch;
  const Variant variant = choice.variant(moved_rows(region, nullptr, 0), region);
  for (std::size_t first = 0, n; first < all.n; first += n) {
    n = std::min(rows_moved(region), all.n - first);
    choice.kernels().move_into_box(part_of(all, first, n), region, box, share.moved.get());
    add(share.counts,
        variant.kernels->clip_sum(moved_rows(region, share.moved.get(), n), region,
                                  *variant.arrangement, share.scratch.get(), share.partial.data()));
  }
}

void run_share(const Choice& choice, const Prepared& prepared, Share& share, bool measures) {
  const Region& region = prepared.region;
  const Batch& all = share.batch;
  if (moves_before(all, region)) return run_moved(choice, region, prepared.box(), share);
  const auto run = [&](const Variant& variant, std::size_t first, std::size_t n) {
    const ClipCounts seen = clip_rows(variant, choice.kernels(), part_of(all, first, n), region,
                                      share.scratch.get(), share.partial.data());
    add(share.counts, seen);
    return seen.nonfinite;
  };
  const std::size_t done = measures ? choice.measure(all, region, run) : 0;
  if (done < all.n || all.n == 0) run(choice.variant(all, region), done, all.n - done);
}

std::size_t shares_of(std::size_t n, int threads) {
  return std::min(std::size_t(threads), std::max<std::size_t>(n, 1));
}

ClipCounts collect(const std::vector<Share>& shares, const Region& region, std::int64_t* partial,
                   std::int64_t* absent) {
  ClipCounts counts{0, 0};
  const std::size_t sums = sums_of(region);
  for (const Share& share : shares) {
    add(counts, share.counts);
    for (std::size_t j = 0; j < sums; ++j) partial[j] += share.partial[j];
    for (std::size_t j = 0; absent && j < region.d; ++j) absent[j] += share.partial[sums + j];
  }
  return counts;
}

}  // namespace

ClipCounts clip_rows(const Variant& variant, const Kernels& widest, const Batch& rows,
                     const Region& region, double* scratch, std::int64_t* partial) {
  const bool alone = variant.kernels == &widest;
  const Variant wide{&widest, &first_arrangement(widest, rows)};
  ClipCounts counts{0, 0};
  Batch rest = rows;
  for (bool holed = false;; holed = !holed) {
    const Variant& now = holed ? wide : variant;
    Arrangement arrangement = *now.arrangement;
    if (!alone) arrangement.takes = holed ? Takes::holed : Takes::plain;
    const ClipCounts seen = now.kernels->clip_sum(rest, region, arrangement, scratch, partial);
    add(counts, seen);
    if (!seen.left) return counts;
    rest = part_of(rest, rest.n - seen.left, seen.left);
  }
}

ClipCounts clip_sum(const Choice& choice, const Batch& batch, const Region& given,
                    std::int64_t* partial, int threads, std::int64_t* absent) {
  const Prepared prepared(choice, given, batch.n);
  const Region& region = prepared.region;
  std::vector<Share> shares = make_shares(batch, region, shares_of(batch.n, threads));
  run_parts(shares.size(), [&](std::size_t t) { run_share(choice, prepared, shares[t], t == 0); });
  return collect(shares, region, partial, absent);
}

ClipCounts clip_sum(const Choice& choice, const Table& table, const Region& given,
                    std::int64_t* partial, int threads, std::int64_t* absent) {
  return clip_sum(choice, TableRows(table).batch(), given, partial, threads, absent);
}

}  // namespace ellipsum
