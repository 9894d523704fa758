// The streaming pass: rows of contiguous coordinates, several in flight, one walk over the
// columns. At each step the walk quantises the rows of the group before (whose factor is known
// by now) and overwrites them with the rows of this group, so that memory is read evenly and
// the sums, centre and scale are loaded once a group.
// Cost per 8 coordinates: 8 vector operations and 2.2 loads (ball), 9 and 2.2 (box).

struct Stream {
  // Set once a pass; the arrays are padded with zeros to `width`, a multiple of 8.
  std::size_t d;
  const double *center, *scale, *limit;
  double radius;
  double* y;  // rows in flight, clipped to the box or not yet scaled to the ball: 8 coordinates
              // of the first row, of the second, ..., the next 8 of the first: one stream
  RowScratch alone;  // for exceptional rows
  // Bytes from a number to the one that is asked of the memory with it, before and from the
  // column `turn` on.
  std::ptrdiff_t ahead_in_row, ahead;
  std::size_t turn;
  std::int64_t* sum;   // bits of the magic sums, modulo 2^64
  std::int64_t* size;  // the same of the magnitudes, for the halves
  std::int64_t* absent;  // holes of each coordinate
  Bins bins;
  // What moves with the rows.
  double factor[vec_lanes];
  std::uint64_t quantised;  // magic numbers in each entry of `sum`
  ClipCounts counts;
};

template <int R>
struct Group {
  Vec norm2[R], factor[R];
  VecInt changed[R];
  const char* row[R];
};

// One step of the walk, `count` <= 8 coordinates from j on.
template <class T, int R, Task task, bool reads>
static inline void walk_step(const Stream& s, Group<R>& g, std::size_t j, std::size_t count,
                             std::ptrdiff_t ahead) {
  const Vec magic = fill(rounding_magic);
  VecInt sum = load_ints(s.sum + j), size{};
  if (task == Task::halves) size = load_ints(s.size + j);
  const Vec center = load<double>(s.center + j), scale = load<double>(s.scale + j);
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    double* at = s.y + j * R + std::size_t(r) * vec_lanes;
    if (task != Task::distances) {
      const Vec clipped = load<double>(at) * g.factor[r];
      sum = add_bits(sum, clipped + magic);
      if (task == Task::halves) size = add_bits(size, magnitude(clipped) + magic);
    }
    if (!reads) continue;
    const char* from = g.row[r] + j * sizeof(T);
    // Once a cache line, which is two steps of float32: by turns in even and odd rows.
    if (sizeof(T) == 8 || j / vec_lanes % 2 == std::size_t(r) % 2) __builtin_prefetch(from + ahead);
    const Vec x = count == vec_lanes ? load<T>(from) : load_first<T>(from, count);
    Vec y = (x - center) * scale;
    if (task == Task::box) {
      const Vec inside = clamp(y, load<double>(s.limit + j));
      g.changed[r] = or_difference(g.changed[r], y, inside);
      g.norm2[r] = g.norm2[r] + x * fill(0.0);  // NaN for a row that is not finite
      y = inside;
    } else {
      g.norm2[r] = g.norm2[r] + y * y;
    }
    if (task != Task::distances) store(at, y);
  }
  if (task != Task::distances) store(s.sum + j, sum);
  if (task == Task::halves) store(s.size + j, size);
}

// One walk over the columns; the copies tell the compiler that no store changes a pointer. Always
// inline: a call would keep the group in memory.
template <class T, int R, Task task, bool reads>
__attribute__((always_inline)) static inline void walk(Stream& stream, Group<R>& group) {
  const Stream s = stream;
  Group<R> g;
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    g.row[r] = group.row[r];
    g.norm2[r] = fill(0.0);
    g.factor[r] = fill(s.factor[r]);
    g.changed[r] = VecInt{};
  }
  std::size_t j = 0;
  for (; j < s.turn; j += vec_lanes)
    walk_step<T, R, task, reads>(s, g, j, vec_lanes, s.ahead_in_row);
  for (; j + vec_lanes <= s.d; j += vec_lanes)
    walk_step<T, R, task, reads>(s, g, j, vec_lanes, s.ahead);
  if (j < s.d) walk_step<T, R, task, reads>(s, g, j, s.d - j, s.ahead);
  group = g;
  stream.quantised += R;
}

// Where the rows of a pass came from.
struct Origin {
  const Region& region;
  const Batch& batch;  // a copy, where the batch of the call is strided
  const double* h;     // with a matrix: inputs of the first row of the pass, and from one chunk of
  std::size_t chunk;   // them to the next
};

// Row i of the pass, from a copy without holes, to where the walk keeps row r of `rows`; its squared
// norm, 0 in a box, where it is clamped and counted.
template <class T, Task task>
__attribute__((noinline, hot)) static double walk_alone(Stream& s, const Origin& from,
                                                        std::size_t i, int rows, int r) {
  const char* row = row_at(from.batch, i);
  s.counts.nonfinite += copy_row<T>(row, s.d, from.region.center, s.alone.x, s.absent);
  Vec norm2 = fill(0.0);
  VecInt changed{};
  for (std::size_t j = 0; j < s.d; j += vec_lanes) {
    Vec y = (load<double>(s.alone.x + j) - load<double>(s.center + j)) * load<double>(s.scale + j);
    if (task == Task::box) {
      const Vec inside = clamp(y, load<double>(s.limit + j));
      changed = or_difference(changed, y, inside);
      y = inside;
    } else {
      norm2 = norm2 + y * y;
    }
    if (task != Task::distances) store(s.y + j * std::size_t(rows) + r * vec_lanes, y);
  }
  if (task == Task::box) s.counts.clipped += count_nonzero(changed) > 0;
  return sum_lanes(norm2);
}

// alone.y <- the huge row i of a pass, clipped; was it outside?
static bool clip_huge(const Stream& s, const Origin& from, std::size_t i) {
  if (!from.region.matrix) return clip_huge_row(from.region, s.alone);
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
    if (!from.region.matrix) n2[r] = walk_alone<T, task>(s, from, row, rows, r);
    if (n2[r] < exceptional_norm2) continue;
    n2[r] = task == Task::distances ? double(INFINITY) : 0;
    if (task == Task::distances) continue;
    s.counts.clipped += clip_huge(s, from, row);
    for (std::size_t j = 0; j < s.d; ++j)
      s.y[(j / vec_lanes * std::size_t(rows) + std::size_t(r)) * vec_lanes + j % vec_lanes] =
          s.alone.y[j];
  }
  return load<double>(n2);
}

// A row of a box with holes (norm2 is NaN) is counted by replace_exceptional.
template <int R>
static inline std::int64_t count_changed(const Group<R>& g, const Vec& norm2) {
  double n2[vec_lanes];
  store(n2, norm2);
  std::int64_t changed = 0;
  for (int r = 0; r < R; ++r) changed += (n2[r] == 0) & (count_nonzero(g.changed[r]) > 0);
  return changed;
}

// Factors of the rows just read; exactly 1 for a row inside.
template <class T, int R, Task task>
static inline void finish_group(Stream& s, const Group<R>& g, const Origin& from, std::size_t i) {
  Vec norm2 = sum_lanes_of_each<R>(g.norm2);
  if (task == Task::box) s.counts.clipped += count_changed(g, norm2);
  if (__builtin_expect(!all_below(norm2, fill(exceptional_norm2)), 0))
    norm2 = replace_exceptional<T, task>(s, from, i, R, norm2);
  if (task == Task::distances) count_distances(s.bins, norm2);
  if (task == Task::box || task == Task::distances) return;
  const Vec norm = square_root(norm2), radius = fill(s.radius);
  s.counts.clipped += count_above(norm, radius);
  store(s.factor, radius / maximum(norm, radius));
}

// What to ask of the memory: in groups of up to 8 KB the rows a whole number of groups on, at
// least 4 KB away; in longer rows 2 KB on, and near the end of a row the beginning of the one
// that takes its place. (The whole next group would push the scratch out of the cache.)
static inline void plan_prefetch(Stream& s, std::ptrdiff_t row_stride, std::size_t size, int rows) {
  constexpr std::ptrdiff_t least = 4096, most = 8192, in_row = 2048;
  const std::ptrdiff_t group = row_stride * rows, length = std::ptrdiff_t(s.d * size);
  const std::ptrdiff_t span = group < 0 ? -group : group;
  s.turn = 0, s.ahead_in_row = in_row;
  if (span > 0 && span <= most) {
    s.ahead = group * ((least + span - 1) / span);
  } else {
    s.ahead = in_row + group - length;
    if (length > in_row) s.turn = std::size_t(length - in_row) / size / vec_lanes * vec_lanes;
  }
}

// S: the type of what is read; T: the type of the batch that it comes from (with a matrix, the
// transformed rows are doubles).
template <class S, class T, int R, Task task>
static void stream_groups(Stream& s, const Batch& rows, const Origin& from, std::size_t& i) {
  if (i + R > rows.n) return;
  Group<R> g;
  for (int r = 0; r < vec_lanes; ++r) s.factor[r] = task == Task::box ? 1.0 : 0.0;
  std::memset(s.y, 0, R * round_up(s.d, vec_lanes) * sizeof *s.y);
  plan_prefetch(s, rows.row_stride, sizeof(S), R);
  for (; i + R <= rows.n; i += R) {
    for (int r = 0; r < R; ++r) g.row[r] = row_at(rows, i + std::size_t(r));
    walk<S, R, task, true>(s, g);
    finish_group<T, R, task>(s, g, from, i);
  }
  if (task != Task::distances) walk<S, R, task, false>(s, g);
}

template <class S, class T, Task task>
static void stream(Stream& s, const Batch& rows, const Origin& from, std::size_t flight) {
  std::size_t i = 0;
  if (flight == 8) stream_groups<S, T, 8, task>(s, rows, from, i);
  if (flight >= 4) stream_groups<S, T, 4, task>(s, rows, from, i);
  stream_groups<S, T, 1, task>(s, rows, from, i);
}
