// Rows in columns, a block of them at a time: of each column a run is read to its end before the
// next one's, so that the memory sees one stream. (Slabs read a line or two of each column and ask
// for the next block meanwhile: with columns a power of two apart, or many that begin on pages, those
// lines push each other out of the cache before they are read.)
//
// Column by column, eight rows to a vector: the accumulators of the rows' norms are in memory, eight
// a row, coordinate j in the one of j mod 8 in the order of j. The y of a run wait for the factors.
// Cost per 8 coordinates: 8 vector operations, 4 loads and 2 stores (ball); with holes 5 operations, a
// load and a store more.
//
// A block with an exceptional row is dropped and read again with its holes filled and counted, as are
// the next ones after a hole, at once; and one that still has a huge row then, in slabs.

struct Block {
  double* lanes;     // 8 numbers a row
  double* factors;   // one a row
  double* missing;   // holes of a row
  double* y;         // one a row and column
  std::size_t rows;  // a whole number of block_step
};

constexpr std::size_t box_lane = 0, changed_lane = 1;  // of a box: what `Slab` says

// The run of column j in the block from row i on; asks for as much from `next` on.
template <class T, Task task, bool holes>
static ELLIPSUM_INLINE void read_run(const Columns& s, const Block& b, std::size_t i, std::size_t j,
                                     const char* next) {
  constexpr std::size_t line = 64, step = line / sizeof(T);
  const char* from = column_at(s.batch, j) + i * sizeof(T);
  const Vec center = fill(s.region.center[j]), scale = fill(s.region.scale[j]);
  const Vec limit = fill(task == Task::box ? s.region.limit[j] : 0.0);
  double* lane = b.lanes + (task == Task::box ? box_lane : j % norm_lanes) * b.rows;
  double *changed = b.lanes + changed_lane * b.rows, *to = b.y + j * b.rows;
  const Validity valid = holes && s.batch.valid ? s.batch.valid[j] : Validity{};
  VecInt absent{};
  __builtin_prefetch(next + b.rows * sizeof(T) - 1, 0, 2);
  for (std::size_t r0 = 0; r0 < b.rows; r0 += step) {
    __builtin_prefetch(next + r0 * sizeof(T), 0, 2);
    ELLIPSUM_UNROLL
    for (std::size_t r = r0; r < r0 + step; r += vec_lanes) {
      Vec x = load<T>(from + r * sizeof(T));
      if (task == Task::box || holes) x = held(x);
      if (holes) {
        VecInt hole = holes_of(x);
        if (valid.bits) hole = with_gaps(hole, valid, s.before + i + r);
        std::int64_t* missing = integers_at(b.missing + r);
        store(missing, count_holes(load_ints(missing), hole));
        absent = count_holes(absent, hole);
        x = fill_holes(x, hole, center);
      }
      Vec y = (x - center) * scale;
      if (task == Task::box) {
        const Vec inside = clamp(y, limit);
        std::int64_t* bits = integers_at(changed + r);
        store(bits, or_difference(load_ints(bits), y, inside));
        store(lane + r, load<double>(lane + r) + x * fill(0.0));
        y = inside;
      } else {
        store(lane + r, load<double>(lane + r) + y * y);
      }
      if (task != Task::distances) store(to + r, y);
    }
  }
  if (holes) store(integers_at(s.copies + j * vec_lanes), absent);  // the block's, not yet counted
}

// y and the accumulators of the block from row i on; asks for what follows `ahead` columns later.
template <class T, Task task, bool holes>
static __attribute__((noinline)) void read_block(const Columns& s, const Block& b, std::size_t i,
                                                 std::size_t ahead) {
  const std::size_t d = s.batch.d, next = i + b.rows < s.batch.n ? i + b.rows : i;
  std::memset(b.lanes, 0, norm_lanes * b.rows * sizeof *b.lanes);
  if (holes) std::memset(b.missing, 0, b.rows * sizeof *b.missing);
  for (std::size_t j = 0; j < d; ++j) {
    const bool here = ahead < d - j;
    const char* ask = column_at(s.batch, here ? j + ahead : j + ahead - d);
    read_run<T, task, holes>(s, b, i, j, ask + (here ? i : next) * sizeof(T));
  }
}

// The squared norms (of a box: 0 or NaN), to the first lane. Is no row exceptional?
template <Task task, bool holes>
static inline bool norms_of_block(const Columns& s, const Block& b) {
  bool ordinary = true;
  for (std::size_t r = 0; r < b.rows; r += vec_lanes) {
    const auto lane = [&](std::size_t l) { return load<double>(b.lanes + l * b.rows + r); };
    Vec norm2 = task == Task::box ? lane(box_lane)
                                  : ((lane(0) + lane(4)) + (lane(2) + lane(6))) +
                                        ((lane(1) + lane(5)) + (lane(3) + lane(7)));
    if (holes && s.region.stretch)
      norm2 = norm2 * stretches_of(load_ints(integers_at(b.missing + r)), s.batch.d);
    ordinary &= bool(all_below(norm2, fill(exceptional_norm2)));
    store(b.lanes + r, norm2);
  }
  return ordinary;
}

template <Task task> static inline void finish_block(Columns& s, const Block& b) {
  for (std::size_t r = 0; r < b.rows; r += vec_lanes) {
    Slab<1> slab;
    slab.norm2[0] = load<double>(b.lanes + r);
    slab.changed[0] = load_ints(integers_at(b.lanes + changed_lane * b.rows + r));
    finish_slab<1, task>(s, slab);
    store(b.factors + r, slab.factor[0]);
  }
}

template <Task task> static inline void add_block(const Columns& s, const Block& b) {
  if (task == Task::distances) return;
  each_column(s.batch.d, [&](std::size_t j, std::size_t place) {
    std::int64_t *sums = sums_at(s, column_sum, place), *sizes = sums_at(s, column_size, place);
    const double* y = b.y + j * b.rows;
    VecInt sum = load_ints(sums), size{};
    if (task == Task::halves) size = load_ints(sizes);
    for (std::size_t r0 = 0; r0 < b.rows; r0 += block_step) ELLIPSUM_UNROLL
    for (std::size_t r = r0; r < r0 + block_step; r += vec_lanes) {
      const Vec clipped = load<double>(y + r) * load<double>(b.factors + r);
      sum = add_bits(sum, clipped + fill(rounding_magic));
      if (task == Task::halves) size = add_bits(size, magnitude(clipped) + fill(rounding_magic));
    }
    store(sums, sum);
    if (task == Task::halves) store(sizes, size);
  });
}

// Adds the holes of a block; how many rows have some?
static inline std::int64_t add_holes(Columns& s, const Block& b) {
  each_column(s.batch.d, [&](std::size_t j, std::size_t place) {
    add_to(sums_at(s, column_absent, place), load_ints(integers_at(s.copies + j * vec_lanes)));
  });
  std::int64_t rows = 0;
  for (std::size_t r = 0; r < b.rows; r += vec_lanes)
    rows += count_nonzero(load_ints(integers_at(b.missing + r)));
  s.counts.nonfinite += rows;
  return rows;
}

// The block from row i on, unless it has rows that it cannot add: then nothing is changed.
template <class T, Task task, bool holes>
static inline bool take_block(Columns& s, const Block& b, std::size_t i, std::size_t ahead) {
  read_block<T, task, holes>(s, b, i, ahead);
  if (!__builtin_expect(norms_of_block<task, holes>(s, b), 1)) return false;
  finish_block<task>(s, b);
  add_block<task>(s, b);
  if (!holes) return true;
  const std::size_t slabs = b.rows / block_step;
  if (add_holes(s, b)) s.careful = careful_slabs;
  else s.careful -= slabs < s.careful ? slabs : s.careful;
  return true;
}

// Whole steps from row `i` on, in blocks of at most b.rows.
template <class T, Task task>
static void add_blocks(Columns& s, Block b, std::size_t ahead_bytes, std::size_t& i) {
  const std::size_t d = s.batch.d, columns = ahead_bytes / (b.rows * sizeof(T));
  const std::size_t ahead = columns < 1 ? 1 : columns < d ? columns : d - 1;
  const std::size_t end = s.batch.n / block_step * block_step;
  for (; i < end; i += b.rows) {
    if (b.rows > end - i) b.rows = end - i;
    const bool careful = s.careful || has_gaps(s, i, b.rows);
    if (!careful && take_block<T, task, false>(s, b, i, ahead)) continue;
    if (take_block<T, task, true>(s, b, i, ahead)) continue;
    AskingColumns nothing{d, d, 0, 0, 0, false};
    Slab<block_step / vec_lanes> slab;
    for (std::size_t r = i; r < i + b.rows; r += block_step)
      take_slab<T, block_step / vec_lanes, task, Reading::plain>(s, r, nothing, slab);
    add_waiting<T, block_step / vec_lanes, task, Reading::plain>(s, slab);
  }
}
