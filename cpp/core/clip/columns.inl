// Rows whose coordinates lie in columns (Fortran order, tables), read where they are: eight rows
// to a vector, 8 V of them a slab (of few columns those that short_columns.inl leaves). Every
// lane of a vector is one row, and the eight accumulators of its norm are those of the rule: coordinate
// j into the one of j mod 8, in the order of j, then the same tree. A number is read once: a slab's y
// wait in scratch for its factors, and are added column by column while the next slab is read into their
// place, so that the memory never rests.
//
// A column gives 8 V numbers at a time, too few in a row for the memory, so the lines of the next
// block of slabs are asked for meanwhile, column by column, up to 4 KB of each; they wait in the
// second level of cache, or on their way to it in the first. All that misses the first level waits in
// line with them: y that fit it beside the sums are worth more than loads that are shared.
// What is kept of columns lies in the order of the accumulators, in which they are read: in their own,
// 1024 columns of float64 took 1.3 to 1.4 times as long.
// Or each column's own lines are asked for, 256 rows on: on a Zen 4 up to 1.6 times as fast from 9 to 32
// columns, which its prefetchers follow no further.
// Cost per 8 coordinates: 8 vector operations (of unscaled float32 seven, around 0 five), 2 + 3/V loads and
// 1 + 1/V stores (ball).

// A slab with an exceptional row is read again as a whole, its holes filled and counted in vectors, and
// waits like that; one with a huge row a third time, beside copies of its numbers, which the row comes
// from, and is added at once. What was seen of it before is dropped each time. Where numbers are left out (Validity) it is read like that at once, and what lies there is nothing.

// What is kept of columns, 8 numbers of each: sums, of those above 0 (halves), holes.
enum ColumnSums : std::size_t { column_sum, column_upper, column_absent };
constexpr std::size_t careful_slabs = 64;  // after a slab with holes

struct Columns {
  const Region& region;
  const Batch& batch;
  double* sums;    // see sums_at
  double* y;       // of a slab: 8 V numbers of each column
  double* copies;  // of one with an exceptional row
  RowScratch alone;
  Bins bins;
  ClipCounts counts;
  std::size_t before;               // rows before this batch, of the columns' own
  std::size_t careful = 0;          // slabs to come that are read as if they had holes
  std::size_t beside = 0;           // how slabs are asked for (AskingColumns)
  double radius = 0;                // of unscaled numbers, in their units (units_of)
  const Validity* valid = nullptr;  // of the batch, but for cells that are moved into a box
};

// May there be columns of other types than the batch's, or cells that are moved into a box (column_runs.inl)?
template <class T> static ELLIPSUM_INLINE bool has_runs(const Columns& s) {
  return sizeof(T) == sizeof(double) && (s.batch.types || s.region.lower);
}

// What of the next block is asked for: `run` bytes of each column.
struct AskingColumns {
  std::size_t column, columns;
  std::size_t from, run, done;  // bytes from a column's first number
  bool near;                    // to the first level of cache, and not only to the second
  std::size_t beside = 0;       // or so many rows on in the column that is read, if not 0
};

// How a slab or a block is read, and what of it waits for its factors: y, or (blocks alone) the numbers
// as they were read (`kept`); the same where holes are filled, with how many each column has; and y of a
// slab with a huge row, which is added at once, beside copies of its numbers.
enum class Reading { plain, kept, filled, kept_filled, copied };
constexpr bool keeps(Reading how) { return how == Reading::kept || how == Reading::kept_filled; }
constexpr bool fills(Reading how) { return how >= Reading::filled; }

template <int V> struct Slab {
  Vec norm2[V], factor[V];
  VecInt holes[V];               // with holes: how many a row has
  bool waits = false, filled{};  // to be added; was it read as `filled`?
};

// The next V vectors of the run; a line that two blocks share came with the block before.
template <class T, int V>
static ELLIPSUM_INLINE void ask_columns(const Batch& batch, AskingColumns& asking) {
  if (asking.column == asking.columns) return;
  constexpr std::size_t line = 64, bytes = V * vec_lanes * sizeof(T);
  const std::size_t row = (asking.from + asking.done) / sizeof(T);
  const char* at = as_one(number_at(batch, asking.column, row));
  ELLIPSUM_UNROLL
  for (std::size_t k = line - 1; k < bytes + line - 1; k += line) {
    if (asking.near) __builtin_prefetch(at + k, 0, 3);
    else __builtin_prefetch(at + k, 0, 2);
    at = later(at);
  }
  asking.done += bytes;
  if (asking.done >= asking.run) asking.done = 0, ++asking.column;
}

// The lines of V vectors.
template <class T, int V> static ELLIPSUM_INLINE void ask_beside(const char* from) {
  constexpr int line = 64;
  ELLIPSUM_UNROLL
  for (int k = 0; k < V * vec_lanes * int(sizeof(T)); k += line) {
    if (k) from = later(from);
    __builtin_prefetch(from + k, 0, 2);
  }
}

// Calls f(j, place, columns) for the columns in the order in which they are read, that of the accumulators;
// all that is kept of columns lies in this order, so that it is walked from one end to the other. f takes
// `columns` of them, j, j + 8, ...: a constant, `at_once` while an accumulator has so many, then 1.
template <std::size_t at_once, class F>
static ELLIPSUM_INLINE void each_columns(std::size_t d, const F& f) {
  constexpr std::integral_constant<std::size_t, at_once> several{};
  constexpr std::integral_constant<std::size_t, 1> one{};
  std::size_t place = 0;
  for (std::size_t l = 0; l < norm_lanes; ++l) {
    std::size_t j = l;
    if constexpr (at_once > 1)
      for (; j + (at_once - 1) * norm_lanes < d; j += at_once * norm_lanes, place += at_once)
        f(j, place, several);
    for (; j < d; j += norm_lanes) f(j, place++, one);
  }
}

// One by one, in the same order: f(j, place).
template <class F> static ELLIPSUM_INLINE void each_column(std::size_t d, const F& f) {
  each_columns<1>(d, [&](std::size_t j, std::size_t place, auto) { f(j, place); });
}

static ELLIPSUM_INLINE std::int64_t* sums_at(const Columns& s, ColumnSums what, std::size_t place) {
  return integers_at(s.sums + (what * s.batch.d + place) * vec_lanes);
}

// Slabs and blocks that are read with their holes filled are scaled, whatever others are, and so are slabs of
// few vectors: their factors have the scale or not, and both wait alike.
template <class T, Task task, Form form> static ELLIPSUM_INLINE double radius_of(const Columns& s) {
  return is_unscaled<T, task, form> ? s.radius : s.region.radius;
}

// Column j of rows i, i + 1, ...: y to scratch, its square to `lane` (of a box, that of what is outside).
template <class T, int V, Task task, Reading how, Form form, bool runs>
static ELLIPSUM_INLINE void read_column(const Columns& s, const char* from, Dtype type,
                                        std::size_t i, std::size_t j, std::size_t place,
                                        Vec (&lane)[V], Slab<V>& slab) {
  constexpr bool holes = fills(how);
  const std::size_t bytes = runs ? bytes_of_eight(type) : vec_lanes * sizeof(T);
  const Vec center = fill(s.region.center[j]), scale = fill(s.region.scale[j]);
  const Gaps gaps = holes && s.valid ? gaps_from(s.valid[j], s.before + i) : Gaps{};
  double* to = s.y + place * V * vec_lanes;
  VecInt absent{};
  ELLIPSUM_UNROLL
  for (int v = 0; v < V; ++v) {
    const char* eight = from + std::size_t(v) * bytes;
    Vec x = runs ? load_as(type, eight, unsigned(s.before % 8)) : load<T>(eight);
    if (holes) hold(x);
    if (holes) {
      Holes hole = holes_of(x);
      if (gaps.at) hole = with_gaps(hole, gaps, std::size_t(v));
      absent = count_holes(absent, hole);
      slab.holes[v] = count_holes(slab.holes[v], hole);
      x = fill_holes(x, hole, center);
    }
    if (how == Reading::copied) store(s.copies + (place * V + std::size_t(v)) * vec_lanes, x);
    Vec y = scaled<T, task, form>(x, center, scale);
    const Vec limit = fill(task == Task::box ? s.region.limit[j] : 0.0);
    lane[v] = add_square<task, squares_are_exact<T, task, form>>(lane[v], y, limit);
    if (task != Task::distances) store(to + v * vec_lanes, y);
  }
  if (how == Reading::filled) store(integers_at(s.copies + place * vec_lanes), absent);
  if (how == Reading::copied) add_to(sums_at(s, column_absent, place), absent);
}

// Adds what waits of a column.
template <int V, Task task, bool filled>
static ELLIPSUM_INLINE void add_column(const Columns& s, std::size_t place,
                                       const Vec (&factor)[V]) {
  if (filled)
    add_to(sums_at(s, column_absent, place), load_ints(integers_at(s.copies + place * vec_lanes)));
  if (task == Task::distances) return;
  const double* y = s.y + place * V * vec_lanes;
  std::int64_t *sums = sums_at(s, column_sum, place), *uppers = sums_at(s, column_upper, place);
  VecInt sum = load_ints(sums), upper{};
  if (task == Task::halves) upper = load_ints(uppers);
  ELLIPSUM_UNROLL
  for (int v = 0; v < V; ++v) {
    add_clipped<task>(load<double>(y + v * vec_lanes) * factor[v], sum, upper);
  }
  store(sums, sum);
  if (task == Task::halves) store(uppers, upper);
}

// Of copies of its region and batch, which tell the compiler that no store changes a pointer.
static ELLIPSUM_INLINE Columns without_counts(const Columns& s, const Region& region,
                                              const Batch& batch) {
  return {region, batch, s.sums, s.y, s.copies, {}, {}, {0, 0}, s.before, 0, 0, 0, s.valid};
}

// Norms (of a box: as of Group) of the slab from row i on; before a column's place is written, what waits
// there is added, if `slab` waits.
template <class T, int V, Task task, Reading how, Form form, bool runs>
static inline void read_slab_of(const Columns& columns, std::size_t i, AskingColumns& asked,
                                Slab<V>& slab) {
  const Region region = columns.region;
  const Batch batch = columns.batch;
  const Columns s = without_counts(columns, region, batch);
  const bool waits = slab.waits;
  AskingColumns asking = asked;
  Vec lane[norm_lanes][V], factor[V];
  for (int v = 0; v < V; ++v) {
    factor[v] = slab.factor[v];
    slab.holes[v] = VecInt{};
  }
  for (std::size_t l = 0, place = 0; l < norm_lanes; ++l) {
    Vec sum[V];
    ELLIPSUM_UNROLL
    for (int v = 0; v < V; ++v) sum[v] = fill(0.0);
    for (std::size_t j = l; j < batch.d; j += norm_lanes, ++place) {
      if (!asking.beside) ask_columns<T, V>(batch, asking);
      const char* from = as_one(number_at(batch, j, i));
      if (waits) add_column<V, task, how == Reading::filled>(s, place, factor);
      if (asking.beside) ask_beside<T, V>(from + bytes_of(batch, j, asking.beside));
      Dtype type = batch.dtype;
      alignas(64) double run[V * vec_lanes];
      if (runs) {
        type = type_of_column(batch, j);
        if (region.lower || !is_loaded(type)) {
          make_run(batch, region, j, i, V * vec_lanes, run);
          from = reinterpret_cast<const char*>(run), type = Dtype::float64;
        }
      }
      read_column<T, V, task, how, form, runs>(s, from, type, i, j, place, sum, slab);
    }
    ELLIPSUM_UNROLL
    for (int v = 0; v < V; ++v) lane[l][v] = sum[v];
  }
  ELLIPSUM_UNROLL
  for (int v = 0; v < V; ++v)
    slab.norm2[v] = ((lane[0][v] + lane[4][v]) + (lane[2][v] + lane[6][v])) +
                    ((lane[1][v] + lane[5][v]) + (lane[3][v] + lane[7][v]));
  asked = asking;
}
template <class T, int V, Task task, Reading how, Form form = Form::ellipsoid>
static inline void read_slab(const Columns& s, std::size_t i, AskingColumns& asking,
                             Slab<V>& slab) {
  if (has_runs<T>(s))
    return read_slab_of<T, V, task, how, form, sizeof(T) == sizeof(double)>(s, i, asking, slab);
  read_slab_of<T, V, task, how, form, false>(s, i, asking, slab);
}

// Is a number of the rows from i on left out?
static inline bool has_gaps(const Columns& s, std::size_t i, std::size_t rows) {
  bool gaps = false;
  for (std::size_t j = 0; s.valid && j < s.batch.d && !gaps; ++j)
    gaps = !all_valid(s.valid[j], s.before + i, rows);
  return gaps;
}

template <int V> static inline bool is_ordinary(const Slab<V>& slab) {
  bool ordinary = true;
  for (int v = 0; v < V; ++v) ordinary &= bool(all_below(slab.norm2[v], fill(exceptional_norm2)));
  return ordinary;
}

// Norms of vector v of a slab of V that was read with its holes filled: of huge rows 0, so that
// their factor is 1, or the infinity that distances count.
template <int V, Task task>
__attribute__((noinline, cold)) static Vec replace_huge(Columns& s, int v, const Vec& norm2,
                                                        const VecInt& holes) {
  double n2[vec_lanes];
  std::int64_t missing[vec_lanes];
  store(missing, holes);
  store(n2, norm2);
  for (std::size_t l = 0; l < vec_lanes; ++l) {
    if (n2[l] < exceptional_norm2) continue;
    n2[l] = task == Task::distances ? double(INFINITY) : 0;
    if (task == Task::distances) continue;
    const std::size_t at = std::size_t(v) * vec_lanes + l;
    each_column(s.batch.d, [&](std::size_t j, std::size_t place) {
      s.alone.x[j] = s.copies[place * V * vec_lanes + at];
    });
    s.alone.stretch = stretch_of(s.region, missing[l]);
    s.counts.clipped += clip_huge_row(s.region, s.alone);
    each_column(s.batch.d, [&](std::size_t j, std::size_t place) {
      s.y[place * V * vec_lanes + at] = s.alone.y[j];
    });
  }
  return load<double>(n2);
}

// Factors of a slab, `most` the radius in its units; exactly 1, or the scale, for a row inside.
template <int V, Task task> static inline void finish_slab(Columns& s, Slab<V>& slab, double most) {
  for (int v = 0; v < V; ++v) {
    if (task == Task::box) s.counts.clipped += count_above(slab.norm2[v], fill(0.0));
    slab.factor[v] = fill(1.0);
    if (task == Task::distances) count_distances(s.bins, slab.norm2[v]);
    if (task == Task::box || task == Task::distances) continue;
    const Vec norm = square_root(slab.norm2[v]), radius = fill(most);
    s.counts.clipped += count_above(norm, radius);
    slab.factor[v] = fill(s.region.radius) / maximum(norm, radius);
  }
}

template <int V, Task task, bool filled>
static __attribute__((noinline)) void add_slab(const Columns& s, Slab<V>& slab) {
  Vec factor[V];
  for (int v = 0; v < V; ++v) factor[v] = slab.factor[v];
  each_column(s.batch.d, [&](std::size_t, std::size_t place) {
    add_column<V, task, filled>(s, place, factor);
  });
  slab.waits = false;
}

// Adds the slab that waits, if one does.
template <int V, Task task> static inline void add_waiting(const Columns& s, Slab<V>& slab) {
  if (!slab.waits) return;
  if (slab.filled) add_slab<V, task, true>(s, slab);
  else add_slab<V, task, false>(s, slab);
}

// Norms of a slab that was read with its holes filled, as they count. Is no row exceptional? (No finite
// one is to a box.)
template <int V, Task task> static inline bool stretch_norms(const Columns& s, Slab<V>& slab) {
  for (int v = 0; v < V && s.region.stretch; ++v)
    slab.norm2[v] = slab.norm2[v] * stretches_of(as_doubles(slab.holes[v]), s.batch.d);
  return task == Task::box || is_ordinary(slab);
}

// The slab from row i on, with its holes; one that waits was read like that, too.
template <class T, int V, Task task>
__attribute__((noinline)) static void read_carefully(Columns& s, std::size_t i,
                                                     AskingColumns& asking, Slab<V>& slab) {
  read_slab<T, V, task, Reading::filled>(s, i, asking, slab);
  slab.filled = true;
  slab.waits = true;
  if (!stretch_norms<V, task>(s, slab)) {
    slab.waits = false;
    read_slab<T, V, task, Reading::copied>(s, i, asking, slab);
    stretch_norms<V, task>(s, slab);
    for (int v = 0; v < V; ++v)
      if (!all_below(slab.norm2[v], fill(exceptional_norm2)))
        slab.norm2[v] = replace_huge<V, task>(s, v, slab.norm2[v], slab.holes[v]);
  }
  std::int64_t rows = 0;
  for (int v = 0; v < V; ++v) rows += count_nonzero(slab.holes[v]);
  s.counts.nonfinite += rows;
  if (rows) s.careful = careful_slabs;
  else if (s.careful) --s.careful;
  finish_slab<V, task>(s, slab, s.region.radius);
  if (!slab.waits) add_slab<V, task, false>(s, slab);
}

// Reads the slab from row i on, which waits then, and adds the one that waits.
template <class T, int V, Task task, Form form = Form::ellipsoid>
static __attribute__((noinline)) void take_slab(Columns& s, std::size_t i, AskingColumns& asking,
                                                Slab<V>& slab) {
  const bool careful = s.careful > 0 || has_gaps(s, i, V * vec_lanes);
  if (slab.filled != careful) add_waiting<V, task>(s, slab);
  if (!careful) {
    read_slab<T, V, task, Reading::plain, form>(s, i, asking, slab);
    slab.filled = false;
    // A constant on each side: later branches depend on no row.
    slab.waits = true;
    if (__builtin_expect(is_ordinary(slab), 1))
      return finish_slab<V, task>(s, slab, radius_of<T, task, form>(s));
    slab.waits = false;
  }
  read_carefully<T, V, task>(s, i, asking, slab);
}

// Whole slabs from row `i` on, to before `last`.
template <class T, int V, Task task, Form form = Form::ellipsoid>
static void add_slabs(Columns& s, std::size_t& i, std::size_t last) {
  constexpr std::size_t rows = V * vec_lanes;
  const std::size_t columns = s.batch.d > 1 ? s.batch.d : 1;
  const std::size_t fit = column_block_bytes / (columns * sizeof(T)) / rows;
  const std::size_t run = column_run_bytes / sizeof(T) / rows;
  const std::size_t block = rows * (fit < 1 ? 1 : fit < run ? fit : run);
  Slab<V> slab;
  while (i + rows <= last) {
    const std::size_t next = i + block, end = next < last ? next : last;
    AskingColumns asking{next + rows <= s.batch.n ? 0 : s.batch.d,
                         s.batch.d,
                         next * sizeof(T),
                         block * sizeof(T),
                         0,
                         columns <= near_columns,
                         s.beside};
    for (; i + rows <= end; i += rows) take_slab<T, V, task, form>(s, i, asking, slab);
    if (end < next) break;
  }
  add_waiting<V, task>(s, slab);
}

// The lanes of all sums, `rows` magic numbers in each column's.
template <Task task>
static void add_column_sums(const Columns& s, std::size_t rows, std::int64_t* partial,
                            std::int64_t* absent) {
  const std::uint64_t magic = rows * rounding_magic_bits;
  each_column(s.batch.d, [&](std::size_t j, std::size_t place) {
    const auto total = [&](ColumnSums what) {
      return total_of(load_ints(sums_at(s, what, place)));
    };
    absent[j] += std::int64_t(total(column_absent));
    if (task == Task::distances) return;
    const std::int64_t sum = std::int64_t(total(column_sum) - magic);
    if (task == Task::halves)
      add_halves(sum, std::int64_t(total(column_upper) - magic), s.batch.d, j, partial);
    else partial[j] += sum;
  });
}
