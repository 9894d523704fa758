// Rows counted by their distance. Every row is compared with every edge, so that neither a branch
// nor an address depends on a distance: for 16 rows and an edge 2.25 vector operations (AVX-512).

struct Bins {
  std::size_t edges;      // one less than bins; behind them are some above everything
  std::int32_t* edge2;    // squares, as squared distances: their upper halves
  std::int32_t* waiting;  // squared distances not yet counted
  std::size_t filled;     // of `waiting`; lanes without a row hold 0, which is above no edge
  std::int64_t* above;    // rows above each edge
};

static std::int32_t upper_half(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return std::int32_t(bits >> 32);
}

// A register of such halves.
typedef std::int32_t UpperHalves __attribute__((vector_size(sizeof(Doubles))));
constexpr std::size_t upper_halves = sizeof(UpperHalves) / sizeof(std::int32_t);
// Share a load, and their loop is not so short that its speed hangs on where it lies.
constexpr std::size_t edges_at_once = 4;

// One more in each lane of a that is above b's.
static ELLIPSUM_INLINE UpperHalves count_lanes(UpperHalves count, UpperHalves a, UpperHalves b) {
#if defined(__AVX512F__)
  const __m512i before = __m512i(count);
  return UpperHalves(_mm512_mask_sub_epi32(before, _mm512_cmpgt_epi32_mask(__m512i(a), __m512i(b)),
                                           before, _mm512_set1_epi32(-1)));
#else
  return count - (a > b);
#endif
}

static __attribute__((noinline)) void count_waiting(Bins& bins) {
  const std::size_t end = round_up(bins.filled, upper_halves);
  std::memset(bins.waiting + bins.filled, 0, (end - bins.filled) * sizeof *bins.waiting);
  bins.filled = 0;
  for (std::size_t k = 0; k < bins.edges; k += edges_at_once) {
    UpperHalves edge2[edges_at_once], above[edges_at_once];
    ELLIPSUM_UNROLL
    for (std::size_t e = 0; e < edges_at_once; ++e)
      edge2[e] = UpperHalves{} + bins.edge2[k + e], above[e] = UpperHalves{};
    for (std::size_t i = 0; i < end; i += upper_halves) {
      UpperHalves norm2;
      std::memcpy(&norm2, bins.waiting + i, sizeof norm2);
      ELLIPSUM_UNROLL
      for (std::size_t e = 0; e < edges_at_once; ++e)
        above[e] = count_lanes(above[e], norm2, edge2[e]);
    }
    ELLIPSUM_UNROLL
    for (std::size_t e = 0; e < edges_at_once; ++e) {
      std::int32_t rows = 0;
      for (std::size_t l = 0; l < upper_halves; ++l) rows += above[e][l];
      bins.above[k + e] += rows;
    }
  }
}

static inline void count_distances(Bins& bins, const Vec& norm2) {
  store_upper_halves(bins.waiting + bins.filled, norm2);
  bins.filled += vec_lanes;
  if (bins.filled == waiting_distances) count_waiting(bins);
}

static Bins make_bins(const Region& region, Scratch& scratch) {
  if (region.task != Task::distances) return {};
  Bins bins{};
  bins.edges = region.bins - 1;
  bins.edge2 = reinterpret_cast<std::int32_t*>(scratch.take(region.bins));
  bins.waiting = reinterpret_cast<std::int32_t*>(scratch.take(waiting_distances / 2));
  bins.above = reinterpret_cast<std::int64_t*>(scratch.take(region.bins));
  for (std::size_t k = 0; k < round_up(bins.edges, edges_at_once); ++k) {
    bins.edge2[k] = k < bins.edges ? upper_half(region.edges[k] * region.edges[k]) : INT32_MAX;
    bins.above[k] = 0;
  }
  return bins;
}

// Adds the counts of `rows` rows: in a bin are those above the edge below and not above its own.
static void add_counts(Bins& bins, std::size_t rows, std::int64_t* partial) {
  count_waiting(bins);
  std::int64_t left = std::int64_t(rows);
  for (std::size_t k = 0; k < bins.edges; ++k) {
    partial[k] += left - bins.above[k];
    left = bins.above[k];
  }
  partial[bins.edges] += left;
}
