#include "clip/clip_sum.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "clip/clip.hpp"
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

ClipCounts run_shares(const Choice& choice, const Region& region, std::vector<Share>& shares) {
  run_parts(shares.size(), [&](std::size_t t) { run_share(choice, region, shares[t], t == 0); });
  ClipCounts counts{0, 0};
  for (const Share& share : shares) add(counts, share.counts);
  return counts;
}

}  // namespace

ClipCounts clip_sum(const Choice& choice, const Batch& batch, const Region& given,
                    std::int64_t* partial, int threads, std::int64_t* absent) {
  if (batch.n > std::size_t(clip_rows_limit))
    throw Exception(Error::invalid_argument, "internal: more rows than a partial sum can hold");
  Region region = on_the_line(given, batch.d);
  Doubles packed;
  if (region.matrix) {
    packed = allocate(packed_doubles(batch.d));
    choice.kernels().pack_matrix(batch.d, region.matrix, packed.get());
    region.packed = packed.get();
  }
  const std::size_t count = std::min(std::size_t(threads), std::max<std::size_t>(batch.n, 1));
  std::vector<Share> shares = make_shares(batch, region, count);
  const ClipCounts counts = run_shares(choice, region, shares);
  const std::size_t sums = sums_of(region);
  for (const Share& share : shares) {
    for (std::size_t j = 0; j < sums; ++j) partial[j] += share.partial[j];
    for (std::size_t j = 0; absent && j < batch.d; ++j) absent[j] += share.partial[sums + j];
  }
  return counts;
}

}  // namespace ellipsum
