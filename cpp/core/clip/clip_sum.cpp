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
  return Doubles(static_cast<double*>(
      ::operator new[]((doubles + 1) * sizeof(double), std::align_val_t{64})));
}

Batch part_of(const Batch& batch, std::size_t first, std::size_t n) {
  Batch part = batch;
  part.data = row_at(batch, first);
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

ClipCounts run_shares(const Kernels& kernels, const Region& region, std::vector<Share>& shares) {
  run_parts(shares.size(), [&](std::size_t t) {
    Share& share = shares[t];
    share.counts =
        kernels.clip_sum(share.batch, region, share.scratch.get(), share.partial.data());
  });
  ClipCounts counts{0, 0};
  for (const Share& share : shares) {
    counts.clipped += share.counts.clipped;
    counts.nonfinite += share.counts.nonfinite;
  }
  return counts;
}

}  // namespace

ClipCounts clip_sum(const Kernels& kernels, const Batch& batch, const Region& given,
                    std::int64_t* partial, int threads, std::int64_t* absent) {
  if (batch.n > std::size_t(clip_rows_limit))
    throw Exception(Error::invalid_argument, "internal: more rows than a partial sum can hold");
  Region region = on_the_line(given, batch.d);
  Doubles packed;
  if (region.matrix) {
    packed = allocate(packed_doubles(batch.d));
    kernels.pack_matrix(batch.d, region.matrix, packed.get());
    region.packed = packed.get();
  }
  const std::size_t count = std::min(std::size_t(threads), std::max<std::size_t>(batch.n, 1));
  std::vector<Share> shares = make_shares(batch, region, count);
  const ClipCounts counts = run_shares(kernels, region, shares);
  const std::size_t sums = sums_of(region);
  for (const Share& share : shares) {
    for (std::size_t j = 0; j < sums; ++j) partial[j] += share.partial[j];
    for (std::size_t j = 0; absent && j < batch.d; ++j) absent[j] += share.partial[sums + j];
  }
  return counts;
}

}  // namespace ellipsum
