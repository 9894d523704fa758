// Rows whose coordinates lie in columns (Fortran order, tables), read where they are: eight rows
// to a vector, 8 V of them a slab. Every lane of a vector is one row, and the eight accumulators of
// its norm are those of the rule: coordinate j into the one of j mod 8, in the order of j, then the
// same tree. A slab's y stay in scratch until its factors are known: a number is read once.
//
// A column gives 8 V numbers at a time, too few in a row for the memory, so the lines of the next
// block of slabs are asked for meanwhile, column by column, up to 4 KB of each; they wait in the
// second level of cache, or on their way to it in the first. All that misses the first level waits in
// line with them: y that fit it beside the sums are worth more than loads that are shared, and float32
// may be kept as it was read, in half the scratch, and its y be made again.
// Cost per 8 coordinates: 8 vector operations, 2 + 3/V loads and 1 + 1/V stores (ball).

// A slab with an exceptional row is read again as a whole, and what was seen of it before is
// dropped: holes are filled and counted in vectors, and a huge row comes from the copy made then.
// Where numbers are left out (Validity) it is read like that at once, and what lies there is nothing.

// A record for each column: sums, magnitudes (halves), holes.
constexpr std::size_t column_sum_slot = 0, column_size_slot = 8, column_absent_slot = 16;
constexpr std::size_t column_stride = column_slots * vec_lanes;  // doubles of a record
constexpr std::size_t careful_slabs = 64;                        // after a slab with holes

struct Columns {
  const Region& region;
  const Batch& batch;
  double* records;
  double* y;       // of a slab: 8 V numbers of each column, or as many as they were read
  double* copies;  // of one with an exceptional row
  RowScratch alone;
  Bins bins;
  ClipCounts counts;
  std::size_t before;       // rows before this batch, of the columns' own
  std::size_t careful = 0;  // slabs to come that are read as if they had holes
};

// What of the next block is asked for: `run` bytes of each column.
struct AskingColumns {
  std::size_t column, columns;
  std::size_t from, run, done;  // bytes from a column's first number
  bool near;                    // to the first level of cache, and not only to the second
};

template <int V> struct Slab {
  Vec norm2[V], factor[V];
  VecInt changed[V], holes[V];  // of a box; with holes: how many a row has
};

// The address as one number: else the compiler keeps each sum of its parts in a register of its own.
static ELLIPSUM_INLINE const char* as_one(const char* address) {
  __asm__("" : "+r"(address));
  return address;
}

// The next `bytes` of the run; a line that two blocks share came with the block before.
template <int bytes>
static ELLIPSUM_INLINE void ask_columns(const Batch& batch, AskingColumns& asking) {
  if (asking.column == asking.columns) return;
  constexpr std::size_t line = 64;
  const char* at = as_one(column_at(batch, asking.column) + asking.from + asking.done);
  ELLIPSUM_UNROLL
  for (std::size_t k = line - 1; k < bytes + line - 1; k += line)
    if (asking.near) __builtin_prefetch(at + k, 0, 3);
    else __builtin_prefetch(at + k, 0, 2);
  asking.done += bytes;
  if (asking.done >= asking.run) asking.done = 0, ++asking.column;
}

// Column j of rows i, i + 1, ...: y (or what was read) to scratch, its square to `lane` (of a box, what
// shows a number that is not finite).
template <class T, int V, Task task, bool holes, bool keeps>
static ELLIPSUM_INLINE void read_column(const Columns& s, const char* from, std::size_t i,
                                        std::size_t j, double* to, Vec (&lane)[V], Slab<V>& slab) {
  const Vec center = fill(s.region.center[j]), scale = fill(s.region.scale[j]);
  const Validity valid = holes && s.batch.valid ? s.batch.valid[j] : Validity{};
  std::int64_t* count = integers_at(s.records + j * column_stride + column_absent_slot);
  VecInt absent = holes ? load_ints(count) : VecInt{};
  ELLIPSUM_UNROLL
  for (int v = 0; v < V; ++v) {
    const char* at = from + v * vec_lanes * int(sizeof(T));
    Vec x;
    if constexpr (keeps)
      x = copy_numbers<T>(at, reinterpret_cast<char*>(to) + v * vec_lanes * int(sizeof(T)));
    else x = load<T>(at);
    if (task == Task::box || holes) x = held(x);
    if (holes) {
      VecInt hole = holes_of(x);
      if (valid.bits) hole = with_gaps(hole, valid, s.before + i + std::size_t(v) * vec_lanes);
      absent = count_holes(absent, hole);
      slab.holes[v] = count_holes(slab.holes[v], hole);
      x = fill_holes(x, hole, center);
      store(s.copies + (j * V + std::size_t(v)) * vec_lanes, x);
    }
    Vec y = (x - center) * scale;
    if (task == Task::box) {
      const Vec inside = clamp(y, fill(s.region.limit[j]));
      slab.changed[v] = or_difference(slab.changed[v], y, inside);
      lane[v] = lane[v] + x * fill(0.0);
      y = inside;
    } else {
      lane[v] = lane[v] + y * y;
    }
    if (task != Task::distances && !keeps) store(to + v * vec_lanes, y);
  }
  if (holes) store(count, absent);
}

// Norms (of a box: 0 or NaN) of the slab from row i on. The copies tell the compiler that no store
// changes a pointer.
template <class T, int V, Task task, bool holes, bool keeps>
static inline void read_slab(const Columns& columns, std::size_t i, AskingColumns& asked,
                             Slab<V>& slab) {
  constexpr std::size_t width = V * vec_lanes;
  const Region region = columns.region;
  const Batch batch = columns.batch;
  const Columns s{region, batch, columns.records, columns.y,     columns.copies,
                  {},     {},    {0, 0},          columns.before};
  AskingColumns asking = asked;
  Vec lane[norm_lanes][V];
  for (int v = 0; v < V; ++v) slab.changed[v] = slab.holes[v] = VecInt{};
  for (std::size_t l = 0; l < norm_lanes; ++l) {
    Vec sum[V];
    ELLIPSUM_UNROLL
    for (int v = 0; v < V; ++v) sum[v] = fill(0.0);
    for (std::size_t j = l; j < batch.d; j += norm_lanes) {
      ask_columns<width* int(sizeof(T))>(batch, asking);
      const char* from = as_one(column_at(batch, j) + i * sizeof(T));
      double* to = s.y + j * width * (keeps ? sizeof(T) : sizeof(double)) / sizeof(double);
      read_column<T, V, task, holes, keeps>(s, from, i, j, to, sum, slab);
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

// Is a number of the rows from i on left out?
static inline bool has_gaps(const Columns& s, std::size_t i, std::size_t rows) {
  bool gaps = false;
  for (std::size_t j = 0; s.batch.valid && j < s.batch.d && !gaps; ++j)
    gaps = !all_valid(s.batch.valid[j], s.before + i, rows);
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
    for (std::size_t j = 0; j < s.batch.d; ++j) s.alone.x[j] = s.copies[j * V * vec_lanes + at];
    s.alone.stretch = stretch_of(s.region, missing[l]);
    s.counts.clipped += clip_huge_row(s.region, s.alone);
    for (std::size_t j = 0; j < s.batch.d; ++j) s.y[j * V * vec_lanes + at] = s.alone.y[j];
  }
  return load<double>(n2);
}

// The slab from row i on, again; has it holes?
template <class T, int V, Task task>
__attribute__((noinline)) static bool read_carefully(Columns& s, std::size_t i,
                                                     AskingColumns& asking, Slab<V>& slab) {
  read_slab<T, V, task, true, false>(s, i, asking, slab);
  std::int64_t rows = 0;
  for (int v = 0; v < V; ++v) {
    rows += count_nonzero(slab.holes[v]);
    if (s.region.stretch) slab.norm2[v] = slab.norm2[v] * stretches_of(slab.holes[v], s.batch.d);
    if (!all_below(slab.norm2[v], fill(exceptional_norm2)))
      slab.norm2[v] = replace_huge<V, task>(s, v, slab.norm2[v], slab.holes[v]);
  }
  s.counts.nonfinite += rows;
  return rows > 0;
}

// Factors of a slab; exactly 1 for a row inside.
template <int V, Task task> static inline void finish_slab(Columns& s, Slab<V>& slab) {
  for (int v = 0; v < V; ++v) {
    if (task == Task::box) s.counts.clipped += count_nonzero(slab.changed[v]);
    slab.factor[v] = fill(1.0);
    if (task == Task::distances) count_distances(s.bins, slab.norm2[v]);
    if (task == Task::box || task == Task::distances) continue;
    const Vec norm = square_root(slab.norm2[v]), radius = fill(s.region.radius);
    s.counts.clipped += count_above(norm, radius);
    slab.factor[v] = radius / maximum(norm, radius);
  }
}

template <class T, int V, Task task, bool keeps>
static inline void add_slab(const Columns& s, const Slab<V>& slab) {
  if (task == Task::distances) return;
  const std::size_t d = s.batch.d;
  const double *center = s.region.center, *scale = s.region.scale, *y = s.y;
  double* record = s.records;
  Vec factor[V];
  for (int v = 0; v < V; ++v) factor[v] = slab.factor[v];
  for (std::size_t j = 0; j < d; ++j, record += column_stride) {
    VecInt sum = load_ints(integers_at(record + column_sum_slot)), size{};
    if (task == Task::halves) size = load_ints(integers_at(record + column_size_slot));
    ELLIPSUM_UNROLL
    for (int v = 0; v < V; ++v) {
      Vec number;
      if (keeps) {
        const char* kept = reinterpret_cast<const char*>(y) + v * vec_lanes * int(sizeof(T));
        number = (load<T>(kept) - fill(center[j])) * fill(scale[j]);
      } else {
        number = load<double>(y + v * vec_lanes);
      }
      const Vec clipped = number * factor[v];
      sum = add_bits(sum, clipped + fill(rounding_magic));
      if (task == Task::halves) size = add_bits(size, magnitude(clipped) + fill(rounding_magic));
    }
    store(integers_at(record + column_sum_slot), sum);
    if (task == Task::halves) store(integers_at(record + column_size_slot), size);
    y += V * vec_lanes * (keeps ? sizeof(T) : sizeof(double)) / sizeof(double);
  }
}

template <class T, int V, Task task, bool keeps>
static __attribute__((noinline)) void add_one_slab(Columns& s, std::size_t i,
                                                   AskingColumns& asking) {
  Slab<V> slab;
  bool careful = s.careful > 0 || has_gaps(s, i, V * vec_lanes);
  if (!careful) read_slab<T, V, task, false, keeps>(s, i, asking, slab);
  careful = careful || __builtin_expect(!is_ordinary(slab), 0);
  if (careful && read_carefully<T, V, task>(s, i, asking, slab)) s.careful = careful_slabs;
  else if (s.careful) --s.careful;
  finish_slab<V, task>(s, slab);
  if (keeps && !careful) add_slab<T, V, task, true>(s, slab);
  else add_slab<T, V, task, false>(s, slab);
}

// Whole slabs from row `i` on.
template <class T, int V, Task task, bool keeps = false>
static void add_slabs(Columns& s, std::size_t& i) {
  constexpr std::size_t rows = V * vec_lanes;
  const std::size_t columns = s.batch.d > 1 ? s.batch.d : 1;
  const std::size_t fit = column_block_bytes / (columns * sizeof(T)) / rows;
  const std::size_t run = column_run_bytes / sizeof(T) / rows;
  const std::size_t block = rows * (fit < 1 ? 1 : fit < run ? fit : run);
  while (i + rows <= s.batch.n) {
    const std::size_t next = i + block, end = next < s.batch.n ? next : s.batch.n;
    AskingColumns asking{next + rows <= s.batch.n ? 0 : s.batch.d,
                         s.batch.d,
                         next * sizeof(T),
                         block * sizeof(T),
                         0,
                         columns <= near_columns};
    for (; i + rows <= end; i += rows) add_one_slab<T, V, task, keeps>(s, i, asking);
    if (end < next) break;
  }
}

// The lanes of all sums, `rows` magic numbers in each column's.
template <Task task>
static void add_column_sums(const Columns& s, std::size_t rows, std::int64_t* partial,
                            std::int64_t* absent) {
  const std::uint64_t magic = rows * rounding_magic_bits;
  for (std::size_t j = 0; j < s.batch.d; ++j) {
    const auto total = [&](std::size_t slot) {
      return total_of(load_ints(integers_at(s.records + j * column_stride + slot)));
    };
    absent[j] += std::int64_t(total(column_absent_slot));
    if (task == Task::distances) continue;
    const std::int64_t sum = std::int64_t(total(column_sum_slot) - magic);
    if (task == Task::halves)
      add_halves(sum, std::int64_t(total(column_size_slot) - magic), s.batch.d, j, partial);
    else partial[j] += sum;
  }
}
