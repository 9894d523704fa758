#include "clip/clip_sum.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
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

// Fewer coordinates of a box are repeated to a line of so many numbers, two vectors; of more each one's ends are
// loaded once for all rows of a window (move_rows).
constexpr std::size_t box_line = 16;

// One thread's share: everything is allocated before the thread starts, so none can fail.
struct Share {
  Batch batch;
  Doubles scratch;
  std::vector<std::int64_t> partial;
  ClipCounts counts{0, 0};
};

std::vector<Share> make_shares(const Batch& batch, const Region& region, std::size_t count) {
  std::vector<Share> shares(count);
  for (std::size_t t = 0; t < count; ++t) {
    Share& share = shares[t];
    const std::size_t first = batch.n / count * t + std::min(t, batch.n % count);
    share.batch = part_of(batch, first, batch.n / count + (t < batch.n % count));
    share.scratch = allocate(clip_plan(batch, region).doubles);
    share.partial.resize(sums_of(region) + round_up(batch.d, norm_lanes));
  }
  return shares;
}

void add(ClipCounts& counts, const ClipCounts& more) {
  counts.clipped += more.clipped;
  counts.nonfinite += more.nonfinite;
}

// A region as kernels take it, with its matrix packed, and its box in lines.
class Prepared {
 public:
  Region region;
  Doubles packed, ends;
  CellBox box{};
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
  Prepared(const Prepared&) = delete;  // the region points into it
  Prepared& operator=(const Prepared&) = delete;

 private:
  // Whole vectors of 8 where there are several rows.
  void repeat_box() {
    const std::size_t d = region.d, whole = norm_lanes / std::gcd(d, norm_lanes),
                      line = d < box_line ? round_up((box_line + d - 1) / d, whole) : 1;
    const std::size_t step = round_up(line * d, norm_lanes) + norm_lanes;  // whole cache lines
    ends = allocate(3 * step);
    double* to = ends.get();
    box = {to, to + step, to + 2 * step, line};
    for (const double* from : {region.lower, region.center, region.upper}) {
      for (std::size_t k = 0; k < step; ++k) to[k] = k < line * d ? from[k % d] : 0.0;
      to += step;
    }
    region.box = &box;
  }
};

void run_share(const Choice& choice, const Region& region, Share& share, bool measures) {
  const Batch& all = share.batch;
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
  run_parts(shares.size(), [&](std::size_t t) { run_share(choice, region, shares[t], t == 0); });
  return collect(shares, region, partial, absent);
}

ClipCounts clip_sum(const Choice& choice, const Table& table, const Region& given,
                    std::int64_t* partial, int threads, std::int64_t* absent) {
  return clip_sum(choice, TableRows(table).batch(), given, partial, threads, absent);
}

}  // namespace ellipsum
