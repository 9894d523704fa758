// Rows in columns, a block of them at a time: of each column a run of 512 bytes or up to 4 KB is read to its end
// before the next one's, so that the memory sees one stream, or two (columns_at_once). (Slabs read a
// line or two of each column and ask for the next ones meanwhile: with columns a power of two apart, or
// many that begin on pages, those lines push each other out of the cache before they are read.)
//
// Column by column, eight rows to a vector: the accumulators of the rows' norms are in memory, and
// columns come in their order, so that one of the eight is in use at a time. The y of a run, or its
// numbers as they were read, wait for the factors in the second level of cache (or, where columns are
// many, in the third), and are added while the next block's run is read into their place, so that the
// memory never rests.
// Cost per 8 coordinates: 8 vector operations (of unscaled float32 7, around 0 five; of kept numbers once more
// what makes y), 4 loads and 2 stores (ball; by twos 3 and 1.5); with holes 3 operations more (kept numbers:
// 4), and a load and a store of a byte.
//
// A block with an exceptional row is dropped and read again with its holes filled and counted, as are
// the next ones after a hole, at once; and one that still has a huge row then, in slabs (up to five
// readings in all, of the slab that the row is in).

struct Block {
  double* lanes;                       // 8 numbers a row
  double* factors;                     // one a row
  HoleCounts<most_block_rows>* holes;  // of each row
  double* y;            // one a row and column, or as many numbers as they were read; and then
  std::uint64_t* gone;  // a bit for each, of holes, in whole words for a column
  std::size_t rows;     // a whole number of block_step
  std::size_t ahead;    // columns from what is read to what is asked for
  Fetch fetch;  // near: to the first level of cache, and not only to the second; both: there too,
                // right before it is read
  bool waits = false;   // to be added
  bool filled = false;  // was it read with its holes filled?
};

// Where what waits of a column lies.
template <class T, Reading how>
static ELLIPSUM_INLINE char* block_at(const Block& b, std::size_t place) {
  constexpr std::size_t size = keeps(how) ? sizeof(T) : sizeof(double);
  return reinterpret_cast<char*>(b.y) + place * b.rows * size;
}
static ELLIPSUM_INLINE std::uint64_t* gone_at(const Block& b, std::size_t place) {
  return b.gone + place * words_of_bits(b.rows);
}

// How a column's numbers come to y.
struct OfColumn {
  Vec center, scale, limit;
  ELLIPSUM_INLINE void find(const Region& region, std::size_t j) {
    center = fill(region.center[j]), scale = fill(region.scale[j]);
    limit = fill(region.task == Task::box ? region.limit[j] : 0.0);
  }
  template <class T, Task task, Form form> ELLIPSUM_INLINE Vec y(const Vec& x) const {
    return scaled<T, task, form>(x, center, scale);
  }
};

// What waits of eight rows: the integers of a column's sums (and those above 0) get them. Where numbers are
// kept, bits of `gone` say which of them are holes.
template <class T, Task task, Reading how, Form form>
static ELLIPSUM_INLINE void add_eight(const char* waiting, std::uint8_t gone, const Vec& factor,
                                      const OfColumn& column, VecInt& sum, VecInt& upper) {
  Vec y;
  if constexpr (keeps(how)) y = column.y<T, task, form>(load<T>(waiting));
  else y = load<double>(waiting);
  if (how == Reading::kept_filled) y = empty_holes(y, with_gone(Holes{}, gone));
  if (task == Task::box && keeps(how)) y = within(y, column.limit);
  add_clipped<task>(task == Task::box ? y : y * factor, sum, upper);
}

// A column's sums (and those above 0), while they are added to.
template <Task task> struct Adding {
  std::int64_t *sums, *uppers;
  VecInt sum, upper;
  ELLIPSUM_INLINE void begin(const Columns& s, std::size_t place) {
    sums = sums_at(s, column_sum, place), uppers = sums_at(s, column_upper, place);
    sum = load_ints(sums);
    if (task == Task::halves) upper = load_ints(uppers);
  }
  ELLIPSUM_INLINE void keep() const {
    store(sums, sum);
    if (task == Task::halves) store(uppers, upper);
  }
};

// By twos columns take 0.95 of the time (median, AVX-512 on a Xeon), by fours up to 1.3; those with holes
// 0.79 to 1.03 (a Zen 5). On AVX2 registers are too few. Columns of their own types come one by one.
constexpr std::size_t columns_at_once = register_lanes == 8 ? 2 : 1;

// Bytes from what is read of a block to what is asked for right before, of all columns that are read side by side
// (of each at most a run).
constexpr std::size_t soon_bytes = 1024;

// Where runs of columns lie, and what is asked for meanwhile: those of other columns, whose numbers have `size`
// bytes, and the ones that are read next.
template <std::size_t columns> struct Runs {
  const char *at[columns], *asked[columns], *next[columns];
  std::size_t size;
};

// Reads the runs of columns j, j + 8, ... of one lane in the block from row i on, after what waits in their places was
// added, if `adds`. The first columns of a lane begin it. Norms and factors are loaded once for all of them.
template <class T, Task task, Reading how, Form form, bool adds, bool begins, std::size_t columns>
static ELLIPSUM_INLINE void read_runs(const Columns& s, const Block& b, std::size_t i,
                                      std::size_t j, std::size_t place, const Runs<columns>& runs) {
  constexpr std::size_t line = 64, step = line / sizeof(T);
  constexpr std::size_t waiting_size = keeps(how) ? sizeof(T) : sizeof(double);
  constexpr bool holes = fills(how), sums = adds && task != Task::distances;
  constexpr bool waits_with_holes = sums && how == Reading::kept_filled;
  double* lane = b.lanes + j % norm_lanes * b.rows;
  const char *from[columns], *asked[columns], *next[columns];
  char* to[columns];
  const std::size_t size = runs.size;
  OfColumn column[columns];
  Adding<task> adding[columns];
  // A bit for each number: where none is there, and where a hole is. Looked up and counted vector by
  // vector a block took up to 1.3 times as long (Zen 5, float64).
  HoleBits<holes ? most_block_rows : 64> gone[columns], found[columns], waited[columns];
  ELLIPSUM_UNROLL
  for (std::size_t k = 0; k < columns; ++k) {
    const std::size_t jk = j + k * norm_lanes, at = place + k;
    from[k] = as_one(runs.at[k]), asked[k] = runs.asked[k], next[k] = runs.next[k];
    to[k] = block_at<T, how>(b, at);
    column[k].find(s.region, jk);
    adding[k].begin(s, at);
    if (holes) gone[k].read(s.valid ? gaps_from(s.valid[jk], s.before + i) : Gaps{}, b.rows);
    if (holes) found[k].clear(b.rows);
    if (waits_with_holes) waited[k].copy(gone_at(b, at), b.rows);
  }
  const auto ask = [&](std::size_t at) {
    ELLIPSUM_UNROLL
    for (std::size_t k = 0; k < columns; ++k)
      if (b.fetch == Fetch::near) __builtin_prefetch(asked[k] + at, 0, 3);
      else __builtin_prefetch(asked[k] + at, 0, 2);
  };
  const auto ask_step = [&](std::size_t bytes) {
    ask(0);
    if (bytes > line) ask(line);
    ELLIPSUM_UNROLL
    for (std::size_t k = 0; k < columns; ++k) asked[k] = later(asked[k] + bytes);
  };
  const std::size_t run = b.rows * sizeof(T), soon = std::min(soon_bytes / columns, run);
  const auto ask_soon = [&](std::size_t at) {
    ELLIPSUM_UNROLL
    for (std::size_t k = 0; k < columns; ++k)
      __builtin_prefetch(at < run ? from[k] + at : next[k] + (at - run), 0, 3);
  };
  if (size) ask(b.rows * size - 1);
  for (std::size_t r0 = 0; r0 < b.rows; r0 += step) {
    ask_step(step * size);
    if (b.fetch == Fetch::both) ask_soon(r0 * sizeof(T) + soon);
    ELLIPSUM_UNROLL
    for (std::size_t r = r0; r < r0 + step; r += vec_lanes) {
      const Vec factor = sums ? load<double>(b.factors + r) : fill(0.0);
      Vec norm2 = begins ? fill(0.0) : load<double>(lane + r);
      ELLIPSUM_UNROLL
      for (std::size_t k = 0; k < columns; ++k) {
        char* waiting = to[k] + r * waiting_size;
        const std::uint8_t waiting_gone = waits_with_holes ? waited[k].bytes()[r / vec_lanes] : 0;
        if (sums)
          add_eight<T, task, how, form>(waiting, waiting_gone, factor, column[k], adding[k].sum,
                                        adding[k].upper);
        Vec x;
        if constexpr (keeps(how)) x = copy_numbers<T>(from[k] + r * sizeof(T), waiting);
        else x = load<T>(from[k] + r * sizeof(T));
        if (holes) hold(x);
        Vec y = column[k].template y<T, task, form>(x);
        if (holes) {
          const Holes hole = with_gone(holes_of(x), gone[k].bytes()[r / vec_lanes]);
          found[k].bytes()[r / vec_lanes] = byte_of(hole);
          y = empty_holes(y, hole);
        }
        norm2 = add_square<task, squares_are_exact<T, task, form>>(norm2, y, column[k].limit);
        if (task != Task::distances && !keeps(how)) store(reinterpret_cast<double*>(waiting), y);
      }
      store(lane + r, norm2);
    }
  }
  ELLIPSUM_UNROLL
  for (std::size_t k = 0; k < columns; ++k) {
    if (sums) adding[k].keep();
    if constexpr (holes) {
      const std::size_t at = place + k;
      *integers_at(s.copies + at) = found[k].count(b.rows);  // the block's, not added yet
      if (keeps(how)) found[k].copy_to(gone_at(b, at), b.rows);
      b.holes->add(found[k], b.rows);
    }
  }
}

template <class T, Task task, Reading how, Form form, bool adds, std::size_t columns>
static ELLIPSUM_INLINE void read_columns(const Columns& s, const Block& b, std::size_t i,
                                         std::size_t j, std::size_t place,
                                         const Runs<columns>& runs) {
  if (j < norm_lanes) read_runs<T, task, how, form, adds, true>(s, b, i, j, place, runs);
  else read_runs<T, task, how, form, adds, false>(s, b, i, j, place, runs);
}

// One column of a batch whose columns have types of their own, or are moved into a box.
template <class T, Task task, Reading how, bool adds>
static __attribute__((noinline)) void read_typed(const Columns& s, const Block& b, std::size_t i,
                                                 std::size_t j, std::size_t place,
                                                 const char* at_asked, std::size_t asked,
                                                 const char* next) {
  alignas(64) double run[column_run_bytes / sizeof(double)];
  const std::size_t size = size_of(type_of_column(s.batch, asked));  // 0: one line of bits
  Runs<1> runs{{number_at(s.batch, j, i)}, {at_asked}, {next}, size};
  constexpr Form form = Form::ellipsoid;
  const bool made = is_made(s.batch, s.region, j);
  if (made) {
    make_run(s.batch, s.region, j, i, b.rows, run);
    runs.at[0] = reinterpret_cast<const char*>(run);
  }
  if (!made && type_of_column(s.batch, j) == Dtype::float32)
    read_columns<float, task, how, form, adds>(s, b, i, j, place, runs);
  else read_columns<T, task, how, form, adds>(s, b, i, j, place, runs);
}

// The columns in the order of each_column, round and round.
struct Round {
  std::size_t column = 0, lane = 0;
  bool again = false;
  ELLIPSUM_INLINE void step(std::size_t d) {
    column += norm_lanes;
    if (column < d) return;
    column = ++lane;
    if (lane < norm_lanes && column < d) return;
    column = lane = 0, again = true;
  }
};

// Reads the block from row i on, and adds the one that waits, if `adds`; asks for what follows. The
// copies tell the compiler that no store changes a pointer.
template <class T, Task task, Reading how, Form form, bool adds>
static __attribute__((noinline)) void read_block(const Columns& columns, const Block& block,
                                                 std::size_t i) {
  const Region region = columns.region;
  const Batch batch = columns.batch;
  const Block b = block;
  const Columns s = without_counts(columns, region, batch);
  const std::size_t d = batch.d, next = i + b.rows < batch.n ? i + b.rows : i;
  if (fills(how)) b.holes->clear();
  Round round, after;  // of what is read
  for (std::size_t k = 0; k < b.ahead; ++k) round.step(d);
  const auto ask = [&](Round& of) {
    const char* at = number_at(batch, of.column, of.again ? next : i);
    of.step(d);
    return at;
  };
  if constexpr (sizeof(T) == sizeof(double)) {
    if (has_runs<T>(s))
      return each_column(d, [&](std::size_t j, std::size_t place) {
        const std::size_t asked = round.column;
        const char* at_asked = ask(round);
        after.step(d);
        read_typed<T, task, how, adds>(s, b, i, j, place, at_asked, asked,
                                       number_at(batch, after.column, after.again ? next : i));
      });
  }
  each_columns<columns_at_once>(d, [&](std::size_t j, std::size_t place, auto columns) {
    Runs<columns> runs;
    for (std::size_t k = 0; k < columns; ++k) {
      runs.at[k] = number_at(batch, j + k * norm_lanes, i);
      runs.asked[k] = ask(round), after.step(d);
    }
    Round soon = after;
    for (std::size_t k = 0; k < columns; ++k) runs.next[k] = ask(soon);
    runs.size = sizeof(T);
    read_columns<T, task, how, form, adds>(s, b, i, j, place, runs);
  });
}

// The squared norms (of a box: as of Group), to the first lane. Is no row exceptional?
template <Task task, bool holes>
static inline bool norms_of_block(const Columns& s, const Block& b) {
  bool ordinary = true;
  for (std::size_t r = 0; r < b.rows; r += vec_lanes) {
    const auto lane = [&](std::size_t l) { return load<double>(b.lanes + l * b.rows + r); };
    Vec norm2 =
        ((lane(0) + lane(4)) + (lane(2) + lane(6))) + ((lane(1) + lane(5)) + (lane(3) + lane(7)));
    if (holes && s.region.stretch)
      norm2 = norm2 * stretches_of(as_doubles(b.holes->of(r)), s.batch.d);
    ordinary &= (task == Task::box && holes) || all_below(norm2, fill(exceptional_norm2));
    store(b.lanes + r, norm2);
  }
  return ordinary;
}

template <Task task> static inline void finish_block(Columns& s, const Block& b, double most) {
  for (std::size_t r = 0; r < b.rows; r += vec_lanes) {
    Slab<1> slab;
    slab.norm2[0] = load<double>(b.lanes + r);
    finish_slab<1, task>(s, slab, most);
    store(b.factors + r, slab.factor[0]);
  }
}

// Adds a block that waits while nothing is read.
template <class T, Task task, Reading how, Form form = Form::ellipsoid>
static __attribute__((noinline)) void add_block(const Columns& s, const Block& b) {
  if (task == Task::distances) return;
  each_column(s.batch.d, [&](std::size_t j, std::size_t place) {
    constexpr std::size_t size = keeps(how) ? sizeof(T) : sizeof(double);
    OfColumn column;
    column.find(s.region, j);
    const char* from = block_at<T, how>(b, place);
    HoleBits<most_block_rows> gone;
    if (how == Reading::kept_filled) gone.copy(gone_at(b, place), b.rows);
    Adding<task> adding;
    adding.begin(s, place);
    for (std::size_t r = 0; r < b.rows; r += vec_lanes) {
      const std::uint8_t eight = how == Reading::kept_filled ? gone.bytes()[r / vec_lanes] : 0;
      add_eight<T, task, how, form>(from + r * size, eight, load<double>(b.factors + r), column,
                                    adding.sum, adding.upper);
    }
    adding.keep();
  });
}

// How blocks with holes are read where others are as `fast`.
constexpr Reading filled_as(Reading fast) {
  return keeps(fast) ? Reading::kept_filled : Reading::filled;
}

// Adds the block that waits, if one does.
template <class T, Task task, Reading fast, Form form>
static inline void add_waiting_block(const Columns& s, Block& b) {
  if (b.waits && b.filled) add_block<T, task, filled_as(fast)>(s, b);
  else if (b.waits) add_block<T, task, fast, form>(s, b);
  b.waits = false;
}

// Adds the holes of a block; how many rows have some?
static inline std::int64_t add_holes(Columns& s, const Block& b) {
  each_column(s.batch.d, [&](std::size_t, std::size_t place) {
    *sums_at(s, column_absent, place) += *integers_at(s.copies + place);
  });
  const std::int64_t rows = b.holes->rows(b.rows);
  s.counts.nonfinite += rows;
  return rows;
}

// The block from row i on, which waits then, unless it has rows that it cannot add; the one that waits
// is added in any case.
template <class T, Task task, Reading how, Form form = Form::ellipsoid>
static inline bool take_block(Columns& s, Block& b, std::size_t i) {
  if (b.waits) read_block<T, task, how, form, true>(s, b, i);
  else read_block<T, task, how, form, false>(s, b, i);
  constexpr bool holes = fills(how);
  b.waits = false, b.filled = holes;  // constants: later branches depend on no row
  if (!__builtin_expect(norms_of_block<task, holes>(s, b), 1)) return false;
  finish_block<task>(s, b, radius_of<T, task, form>(s));
  b.waits = true;
  if (!holes) return true;
  const std::size_t slabs = b.rows / block_step;
  if (add_holes(s, b)) s.careful = careful_slabs;
  else s.careful -= slabs < s.careful ? slabs : s.careful;
  return true;
}

// Whole steps from row `i` on, in blocks of at most b.rows.
template <class T, Task task, Form form, Reading fast = Reading::plain>
static void add_blocks(Columns& s, Block b, std::size_t& i) {
  const std::size_t d = s.batch.d, end = s.batch.n / block_step * block_step;
  for (; i < end; i += b.rows) {
    const bool careful = s.careful || has_gaps(s, i, b.rows < end - i ? b.rows : end - i);
    // What waits of others is y, whether holes were filled or not.
    const bool otherwise = keeps(fast) && b.filled != careful;
    if (otherwise || b.rows > end - i) add_waiting_block<T, task, fast, form>(s, b);
    if (b.rows > end - i) b.rows = end - i;
    if (!careful && take_block<T, task, fast, form>(s, b, i)) continue;
    if (take_block<T, task, filled_as(fast)>(s, b, i)) continue;
    AskingColumns nothing{d, d, 0, 0, 0, false};
    Slab<block_step / vec_lanes> slab;
    for (std::size_t r = i; r < i + b.rows; r += block_step)
      take_slab<T, block_step / vec_lanes, task>(s, r, nothing, slab);
    add_waiting<block_step / vec_lanes, task>(s, slab);
  }
  add_waiting_block<T, task, fast, form>(s, b);
}
