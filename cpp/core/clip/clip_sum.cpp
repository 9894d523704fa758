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
  if (batch.columns) part.offset += std::ptrdiff_t(first) * batch.row_stride;
  else part.data = row_at(batch, first);
  part.n = n;
  return part;
}

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
    const std::size_t first = batch.n / count * t + std::min(t, batch.n % count);
    shares[t].batch = part_of(batch, first, batch.n / count + (t < batch.n % count));
    shares[t].scratch = allocate(clip_plan(batch, region).doubles);
    shares[t].partial.resize(sums_of(region) + round_up(batch.d, norm_lanes));
  }
  return shares;
}

void add(ClipCounts& counts, const ClipCounts& more) {
  counts.clipped += more.clipped;
  counts.nonfinite += more.nonfinite;
}

void run_share(const Choice& choice, const Region& region, Share& share, bool measures) {
  const Batch& all = share.batch;
  const auto run = [&](const Variant& variant, std::size_t first, std::size_t n) {
    add(share.counts,
        variant.kernels->clip_sum(part_of(all, first, n), region, *variant.arrangement,
                                  share.scratch.get(), share.partial.data()));
  };
  const std::size_t done = measures ? choice.measure(all, region, run) : 0;
  if (done < all.n || all.n == 0) run(choice.variant(all, region), done, all.n - done);
}

// The same with the rows of a table, whose tiles are the thread's own.
void run_tiles(const Choice& choice, const Region& region, const Table& table, std::size_t first,
               Share& share) {
  Tiles tiles(table);
  const std::size_t end = first + share.batch.n;
  for (; first < end; first += tiles.rows()) {
    share.batch = tiles.block(first, std::min(tiles.rows(), end - first));
    run_share(choice, region, share, false);
  }
}

// A region as kernels take it, with its matrix packed.
struct Prepared {
  Region region;
  Doubles packed;
  Prepared(const Choice& choice, const Region& given, std::size_t n)
      : region(on_the_line(given, given.d)) {
    if (n > std::size_t(clip_rows_limit))
      throw Exception(Error::invalid_argument, "internal: more rows than a partial sum can hold");
    if (!is_mixed(region)) return;
    packed = allocate(packed_doubles(region));
    choice.kernels().pack_matrix(region, packed.get());
    region.packed = packed.get();
  }
};

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
  Tiles tiles(table);
  if (!tiles.copies())
    return clip_sum(choice, tiles.block(0, table.n), given, partial, threads, absent);
  const Prepared prepared(choice, given, table.n);
  const Region& region = prepared.region;
  Batch all = tiles.block(0, 0);
  all.n = table.n;
  std::vector<Share> shares = make_shares(all, region, shares_of(table.n, threads));
  std::vector<std::size_t> first(shares.size(), 0);
  for (std::size_t t = 1; t < shares.size(); ++t) first[t] = first[t - 1] + shares[t - 1].batch.n;
  run_parts(shares.size(),
            [&](std::size_t t) { run_tiles(choice, region, table, first[t], shares[t]); });
  return collect(shares, region, partial, absent);
}

}  // namespace ellipsum
