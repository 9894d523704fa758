// Rows counted by their distance. Every row is compared with every edge, so that neither a branch
// nor an address depends on a distance: for 16 rows and an edge 2.5 vector operations (AVX-512).

constexpr std::size_t waiting_rows = 256;  // 16 vectors, so that adding up lanes costs little

struct Bins {
  std::size_t edges;      // one less than bins
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

static __attribute__((noinline)) void count_waiting(Bins& bins) {
  std::memset(bins.waiting + bins.filled, 0, (waiting_rows - bins.filled) * sizeof *bins.waiting);
  bins.filled = 0;
  for (std::size_t k = 0; k < bins.edges; ++k) {
    std::int32_t edge2 = bins.edge2[k];
    // Or compilers may take sixteen edges at a time, and the others one by one.
    __asm__("" : "+r"(edge2));
    std::int32_t above = 0;
    for (std::size_t i = 0; i < waiting_rows; ++i) above += bins.waiting[i] > edge2;
    bins.above[k] += above;
  }
}

static inline void count_distances(Bins& bins, const Vec& norm2) {
  store_upper_halves(bins.waiting + bins.filled, norm2);
  bins.filled += vec_lanes;
  if (bins.filled == waiting_rows) count_waiting(bins);
}

static Bins make_bins(const Region& region, Scratch& scratch) {
  if (region.task != Task::distances) return {};
  Bins bins{};
  bins.edges = region.bins - 1;
  bins.edge2 = reinterpret_cast<std::int32_t*>(scratch.take(region.bins));
  bins.waiting = reinterpret_cast<std::int32_t*>(scratch.take(waiting_rows));
  bins.above = reinterpret_cast<std::int64_t*>(scratch.take(region.bins));
  for (std::size_t k = 0; k < bins.edges; ++k) {
    bins.edge2[k] = upper_half(region.edges[k] * region.edges[k]);
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
