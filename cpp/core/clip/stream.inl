// The streaming pass: rows of contiguous coordinates, several in flight, one walk over the
// columns. At each step the walk quantises the rows of a group before (the last one, or the one before
// that: take_turns; its factors are known by now) and overwrites them with the rows of this group, so that
// memory is read evenly and
// the sums, center and scale are loaded once a group.
// Cost per 8 coordinates: 7 vector operations and 2.2 loads; of float32 two more to convert, and in a ball one less,
// around 0 three (is_unscaled). A box has no use for it: box_rows.inl.
//
// Cells of long rows are moved into their box on the way (boxed): the lower and the upper ends are the last slots of
// each record. Such rows have no holes.
//
// Scratch is one stream: a record for each 8 coordinates, of 8 numbers in each of its slots. A ball's scale
// is the same for all coordinates, and a cube's limit: they stay in registers, and its records begin behind the
// slots of the first two, which are the ends of the records before.
constexpr std::size_t center_slot = 0, scale_slot = 8, sum_slot = 16;
constexpr std::size_t limit_slot = 24;  // of a box; for the halves, sums above 0
// One for each row in flight: not yet scaled to the ball (in groups: or clipped to the box).
constexpr std::size_t y_slot(Task task) {
  return task == Task::box || task == Task::halves ? 32 : limit_slot;
}

// Rows of float32 in flight may be kept as they were read, in half the scratch, and their y be made
// again. An exceptional row adds its integers at once then, and leaves zeros with the factor 0.

struct Stream {
  // Set once a pass; coordinates are padded with zeros to a multiple of 8.
  std::size_t d;
  double* records;
  double* late;                  // records of every other group, or null (take_turns)
  std::size_t stride;            // doubles from one record to the next
  const double *center, *scale;  // whole vectors, padded with zeros
  double limit;                  // of a box whose coordinates share one
  Form form;
  double radius;     // of what waits, in its units
  double numerator;  // of the factors: the radius in grid units
  bool keeps;        // rows as they were read
  bool boxed;        // cells are moved into the region's box
  RowScratch alone;  // for exceptional rows
  Ahead ahead;
  std::int64_t* absent;  // holes of each coordinate
  double* spare;  // other records, of rows with holes (holed_rows.inl); null where there are none
  Bins bins;
  // What moves with the rows.
  double factors[2][vec_lanes];  // of the rows that wait, in either records
  int turn;
  double* factor() { return factors[turn]; }
  std::uint64_t quantised;  // magic numbers in each sum
  bool holed;               // so many rows have holes that the next ones go another way
  ClipCounts counts;
};

// Which way the next rows go is decided by how many of so many had holes: so that either costs less
// than the other, as measured on each target's instructions.
constexpr std::size_t holed_window = 256;
constexpr std::int64_t often_holed = register_lanes == 8 ? 12 : register_lanes == 4 ? 48 : 112;
constexpr std::int64_t seldom_holed = often_holed / 2;

class HoledWindow {
 public:
  HoledWindow(std::size_t i, const ClipCounts& counts)
      : last_(i + holed_window), before_(counts.nonfinite) {}
  bool ends(std::size_t i) const { return i >= last_; }
  // How many of its rows had holes; the next one begins.
  std::int64_t count(std::size_t i, const ClipCounts& counts) {
    const std::int64_t holed = counts.nonfinite - before_;
    *this = HoledWindow(i, counts);
    return holed;
  }

 private:
  std::size_t last_;
  std::int64_t before_;
};

// In a box the place of a row's squared norm is taken by the squares of how far its coordinates lie outside: 0
// inside, and no number, or an infinity, where one is a hole.
template <int R> struct Group {
  Vec norm2[R], factor[R];
  const char* row[R];
  const char* asked;  // asked_from of the first
};

// Where R rows are from row i on.
template <class T, int R>
static ELLIPSUM_INLINE void find_group(Group<R>& g, const Batch& rows, std::size_t i) {
  const char* first = rows_from<T>(rows, i, R);
  g.asked = asked_from(rows, i, first);
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) g.row[r] = first + r * rows.row_stride;
}

// Of the ends of a box, behind all else in a record: the lower ones, and 8 numbers on the upper ones.
constexpr std::size_t ends_slots = 2 * vec_lanes;

// One step of the walk, `count` <= 8 coordinates from j on.
template <class T, int R, Task task, bool keeps, Form form, bool boxed>
static ELLIPSUM_INLINE void walk_step(Group<R>& g, const double* centers, const Vec& one_scale,
                                      double* record, const double* ends, std::size_t j,
                                      std::size_t count) {
  VecInt sum = load_ints(integers_at(record + sum_slot)), upper{};
  if (task == Task::halves) upper = load_ints(integers_at(record + limit_slot));
  constexpr bool own = form == Form::ellipsoid;  // of each coordinate
  const Vec center = own                  ? load<double>(record + center_slot)
                     : form == Form::ball ? load<double>(centers + j)
                                          : fill(0.0);
  const Vec scale = own ? load<double>(record + scale_slot) : one_scale;
  Vec lower, upper_end;
  if (boxed) lower = load<double>(ends), upper_end = load<double>(ends + vec_lanes);
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    double* at = record + y_slot(task) + r * vec_lanes;
    char* kept = reinterpret_cast<char*>(record + y_slot(task)) + r * vec_lanes * int(sizeof(T));
    if (task != Task::distances) {
      const Vec y = keeps ? scaled<T, task, form>(load<T>(kept), center, scale) : load<double>(at);
      add_clipped<task>(y * g.factor[r], sum, upper);
    }
    const char* from = g.row[r] + j * sizeof(T);
    Vec x;
    if constexpr (keeps)
      x = count == vec_lanes ? copy_numbers<T>(from, kept) : copy_first<T>(from, kept, count);
    else x = count == vec_lanes ? load<T>(from) : load_first<T>(from, count);
    if (boxed) move(x, lower, center, upper_end);
    Vec y = scaled<T, task, form>(x, center, scale);
    g.norm2[r] = add_square<task, squares_are_exact<T, task, form>>(g.norm2[r], y, fill(0.0));
    if (task != Task::distances && !keeps) store(at, y);
  }
  if (task != Task::distances) store(integers_at(record + sum_slot), sum);
  if (task == Task::halves) store(integers_at(record + limit_slot), upper);
}

// One walk over the columns; the copies tell the compiler that no store changes a pointer.
template <class T, int R, Task task, bool keeps, Form form, bool boxed>
static inline void walk(Stream& stream, Group<R>& group) {
  const std::size_t d = stream.d, stride = stream.stride;
  double* record = stream.records;
  const Ahead ahead = stream.ahead;
  Asking asking{group.asked + ahead.offset, ahead.length};
  Group<R> g;
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    g.row[r] = group.row[r];
    g.norm2[r] = fill(0.0);
    g.factor[r] = fill(stream.factor()[r]);
  }
  const double* centers = stream.center;
  const Vec scale = fill(stream.scale[0]);
  std::size_t j = 0;
  for (; j + vec_lanes <= d; j += vec_lanes, record += stride) {
    ask<R, vec_lanes* int(sizeof(T))>(ahead, asking);
    walk_step<T, R, task, keeps, form, boxed>(g, centers, scale, record,
                                              record + stride - ends_slots, j, vec_lanes);
  }
  if (j < d) {
    ask<R, vec_lanes* int(sizeof(T))>(ahead, asking);  // rows and centers are 0 beyond their ends
    walk_step<T, R, task, keeps, form, boxed>(g, centers, scale, record,
                                              record + stride - ends_slots, j, d - j);
  }
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) group.norm2[r] = g.norm2[r];
  stream.quantised += R;
}

// Adds what waits of `count` rows while nothing is read, once a pass: one function for all numbers of rows
// and all forms, since each more takes time to compile. Kept: float where rows wait as they were read.
template <class Kept, Task task>
static __attribute__((noinline)) void add_waiting_rows(Stream& s, int count) {
  constexpr bool keeps = std::is_same_v<Kept, float>;
  double* record = s.records;
  for (std::size_t j = 0; j < s.d; j += vec_lanes, record += s.stride) {
    VecInt sum = load_ints(integers_at(record + sum_slot)), upper{};
    if (task == Task::halves) upper = load_ints(integers_at(record + limit_slot));
    const char* waiting = reinterpret_cast<const char*>(record + y_slot(task));
    for (int r = 0; r < count; ++r, waiting += vec_lanes * sizeof(Kept)) {
      Vec y = load<Kept>(waiting);
      if (keeps) y = (y - load<double>(s.center + j)) * load<double>(s.scale + j);
      add_clipped<task>(y * fill(s.factor()[r]), sum, upper);
    }
    store(integers_at(record + sum_slot), sum);
    if (task == Task::halves) store(integers_at(record + limit_slot), upper);
  }
  s.quantised += std::uint64_t(count);
}

// Where the rows of a pass came from.
struct Origin {
  const Region& region;
  const Batch& batch;  // of rows that are made, those of the last group are there
  const double* h;     // with a matrix: inputs of the first row of the pass, and from one chunk of
  std::size_t chunk;   // them to the next
  const double* stretch;  // and of each row (stretch_of), if not all are 1
};

// Row i of the pass, from a copy without holes, to where the walk keeps row r (to alone.y where it
// keeps what it reads); its squared norm, 0 in a box, where it is clamped and counted.
template <class T, Task task, bool keeps>
__attribute__((noinline, hot)) static double walk_alone(Stream& s, const Origin& from,
                                                        std::size_t i, int r) {
  const char* row = row_at(from.batch, i);
  const std::int64_t holes = read_row<T>(row, from.region, s.alone.x, s.absent);
  s.counts.nonfinite += holes > 0;
  s.alone.stretch = stretch_of(from.region, holes);
  Vec norm2 = fill(0.0);
  double* record = s.records;
  for (std::size_t j = 0; j < s.d; j += vec_lanes, record += s.stride) {
    Vec y = (load<double>(s.alone.x + j) - load<double>(s.center + j)) * load<double>(s.scale + j);
    const Vec limit = load<double>(record + limit_slot);
    norm2 = add_square<task>(norm2, y, limit);
    if (keeps) store(s.alone.y + j, y);
    else if (task != Task::distances) store(record + y_slot(task) + r * vec_lanes, y);
  }
  const double square = sum_lanes(norm2);
  if (task != Task::box) return square * s.alone.stretch;
  s.counts.clipped += square != 0;
  return 0;
}

// alone.y <- the huge row i of a pass, clipped; was it outside?
static bool clip_huge(Stream& s, const Origin& from, std::size_t i) {
  if (!is_mixed(from.region)) return clip_huge_row(from.region, s.alone);
  s.alone.stretch = from.stretch ? from.stretch[i] : 1.0;
  for (std::size_t k = 0; k < s.d; ++k)
    s.alone.h[k] = from.h[i * h_stride + k / depth * from.chunk + k % depth];
  return clip_huge_input(from.region, s.alone, 0);
}

// Norms of the rows with the exceptional ones' own: of those with holes that of the present
// numbers; of huge ones 0, so that their factor is 1, or the infinity that distances count.
template <class T, Task task>
__attribute__((noinline, cold)) static Vec replace_exceptional(Stream& s, const Origin& from,
                                                               std::size_t i, int rows,
                                                               const Vec& norm2) {
  double n2[vec_lanes];
  store(n2, norm2);
  for (int r = 0; r < rows; ++r) {
    const std::size_t row = i + std::size_t(r);
    if (n2[r] < exceptional_norm2) continue;
    if (!is_mixed(from.region)) n2[r] = walk_alone<T, task, false>(s, from, row, r);
    if (n2[r] < exceptional_norm2) continue;
    n2[r] = task == Task::distances ? double(INFINITY) : 0;
    if (task == Task::distances) continue;
    s.counts.clipped += clip_huge(s, from, row);
    for (std::size_t j = 0; j < s.d; ++j)
      s.records[j / vec_lanes * s.stride + y_slot(task) + std::size_t(r) * vec_lanes +
                j % vec_lanes] = s.alone.y[j];
  }
  return load<double>(n2);
}

// alone.y, times its factor, to the sums.
template <Task task> static void add_alone(Stream& s, double factor) {
  double* record = s.records;
  for (std::size_t j = 0; j < s.d; j += vec_lanes, record += s.stride) {
    VecInt sum = load_ints(integers_at(record + sum_slot)), upper{};
    if (task == Task::halves) upper = load_ints(integers_at(record + limit_slot));
    add_clipped<task>(load<double>(s.alone.y + j) * fill(factor), sum, upper);
    store(integers_at(record + sum_slot), sum);
    if (task == Task::halves) store(integers_at(record + limit_slot), upper);
  }
  ++s.quantised;
}

// The same where rows are kept as they were read: an exceptional row is added at once, and leaves
// zeros and an infinite norm, whose factor is 0; that it is counted as clipped, is taken back.
template <class T, Task task>
__attribute__((noinline, cold)) static Vec add_exceptional(Stream& s, const Origin& from,
                                                           std::size_t i, int rows,
                                                           const Vec& norm2) {
  double n2[vec_lanes];
  store(n2, norm2);
  for (int r = 0; r < rows; ++r) {
    if (n2[r] < exceptional_norm2) continue;
    const double square = walk_alone<T, task, true>(s, from, i + std::size_t(r), r);
    double factor = 1;
    if (!(square < exceptional_norm2)) {
      s.counts.clipped += clip_huge(s, from, i + std::size_t(r));
    } else {
      const double norm = std::sqrt(square);
      s.counts.clipped += norm > s.radius;
      factor = s.numerator / (norm > s.radius ? norm : s.radius);
    }
    add_alone<task>(s, factor);
    for (std::size_t j = 0; j < s.d; j += vec_lanes)
      std::memset(reinterpret_cast<char*>(s.records + j / vec_lanes * s.stride + y_slot(task)) +
                      std::size_t(r) * vec_lanes * sizeof(T),
                  0, vec_lanes * sizeof(T));
    n2[r] = double(INFINITY), --s.counts.clipped;
  }
  return load<double>(n2);
}

// Factors of the rows just read; exactly 1 for a row inside (or the scale).
template <class T, int R, Task task, bool keeps>
static inline void finish_group(Stream& s, const Group<R>& g, const Origin& from, std::size_t i) {
  Vec norm2 = sum_lanes_of_each<R>(g.norm2);
  if (from.stretch) norm2 = norm2 * load<double>(from.stretch + i);
  if (__builtin_expect(!all_below(norm2, fill(exceptional_norm2)), 0))
    norm2 = keeps ? add_exceptional<T, task>(s, from, i, R, norm2)
                  : replace_exceptional<T, task>(s, from, i, R, norm2);
  if (task == Task::distances) count_distances(s.bins, norm2);
  if (task == Task::distances) return;
  const Vec norm = square_root<R>(norm2), radius = fill(s.radius);
  s.counts.clipped += count_above(norm, radius);
  store(s.factor(), divide<R>(fill(s.numerator), maximum(norm, radius)));
}

// The next group's rows wait in the other records, so that nothing waits for their factors, which take a
// square root and a division after the last of their numbers: while few steps lie in between, what needs
// them would fill the places where operations wait.
static inline void take_turns(Stream& s) {
  if (!s.late) return;
  std::swap(s.records, s.late);
  s.turn ^= 1;
}

// What `late` has is added to the others' sums.
template <Task task> static void join_late(Stream& s) {
  if (!s.late || task == Task::distances) return;
  for (std::size_t j = 0; j < s.d; j += vec_lanes) {
    const std::size_t at = j / vec_lanes * s.stride;
    const auto join = [&](std::size_t slot) {
      add_to(integers_at(s.records + at + slot), load_ints(integers_at(s.late + at + slot)));
      std::memset(s.late + at + slot, 0, vec_lanes * sizeof(double));
    };
    join(sum_slot);
    if (task == Task::halves) join(limit_slot);
  }
}

// T: the type of what is read (with a matrix the transformed rows: doubles, whose center is 0).
template <class T, int R, Task task, bool keeps, Form form, bool boxed = false>
static void stream_groups(Stream& s, const Batch& rows, const Origin& from, std::size_t& i,
                          const Arrangement& arrangement) {
  if (s.holed || i + R > rows.n) return;
  Group<R> g;
  const int records = s.late ? 2 : 1;
  for (int turn = 0; turn < records; ++turn, take_turns(s)) {
    store(s.factor(), fill(0.0));
    for (std::size_t j = 0; j < s.d; j += vec_lanes)
      std::memset(s.records + j / vec_lanes * s.stride + y_slot(task), 0,
                  R * vec_lanes * (keeps ? sizeof(T) : sizeof(double)));
  }
  s.ahead = plan_ahead(rows, sizeof(T), R, arrangement);
  HoledWindow window(i, s.counts);
  for (; i + R <= rows.n; i += R) {
    if (window.ends(i) && window.count(i, s.counts) > often_holed && s.spare) {
      s.holed = true;
      break;
    }
    find_group<T>(g, rows, i);
    walk<T, R, task, keeps, form, boxed>(s, g);
    finish_group<T, R, task, keeps>(s, g, from, i);
    take_turns(s);
  }
  if (task == Task::distances) return;
  for (int turn = 0; turn < records; ++turn, take_turns(s))
    add_waiting_rows<std::conditional_t<keeps, float, double>, task>(s, R);
  join_late<task>(s);
}
