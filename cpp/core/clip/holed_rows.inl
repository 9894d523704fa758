// Rows of which many have holes: the walk of stream.inl, which sees to the holes itself, in the place
// of each such row's coming back alone. A row waits with a NaN in its holes, so that they are
// counted when it is added, and not at all where it turned out to be exceptional. Included into each
// target's namespace.
// Cost per 8 coordinates: 13 vector operations and 2.5 loads (ball) for every row; a row alone costs
// as much as five.
constexpr int holed_in_flight = register_lanes == 8 ? 8 : 4;

template <class T, int R, Task task, bool reads>
static ELLIPSUM_INLINE void holed_step(Group<R>& g, VecInt (&found)[R], double* record,
                                       std::int64_t* absent, std::size_t j, std::size_t count) {
  VecInt sum = load_ints(integers_at(record + sum_slot)), upper{}, gone = load_ints(absent);
  if (task == Task::halves) upper = load_ints(integers_at(record + limit_slot));
  const Vec center = load<double>(record + center_slot), scale = load<double>(record + scale_slot);
  const Vec limit = task == Task::box ? load<double>(record + limit_slot) : fill(0.0);
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    double* at = record + y_slot(task) + r * vec_lanes;
    const Vec waiting = load<double>(at);
    const Holes left_out = holes_of(waiting);
    const Vec clipped = empty_holes(task == Task::box ? waiting : waiting * g.factor[r], left_out);
    gone = count_holes(gone, left_out);
    add_clipped<task>(clipped, sum, upper);
    if (!reads) continue;
    const char* from = g.row[r] + j * sizeof(T);
    Vec x = count == vec_lanes ? load<T>(from) : load_first<T>(from, count);
    hold(x);
    const Holes holes = holes_of(x);
    found[r] = count_holes(found[r], holes);
    Vec y = empty_holes((x - center) * scale, holes);
    g.norm2[r] = add_square<task>(g.norm2[r], y, limit);
    store(at, mark_holes(y, holes, x));
  }
  store(integers_at(record + sum_slot), sum);
  store(absent, gone);
  if (task == Task::halves) store(integers_at(record + limit_slot), upper);
}

template <class T, int R, Task task, bool reads>
static inline void walk_holed(Stream& stream, Group<R>& group, VecInt (&holes)[R]) {
  const std::size_t d = stream.d, stride = stream.stride;
  double* record = stream.records;
  std::int64_t* absent = stream.absent;
  const Ahead ahead = stream.ahead;
  Asking asking{group.asked + ahead.offset, ahead.length};
  Group<R> g;
  VecInt found[R];
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    g.row[r] = group.row[r];
    g.norm2[r] = fill(0.0);
    g.factor[r] = fill(stream.factor()[r]);
    found[r] = VecInt{};
  }
  std::size_t j = 0;
  for (; j + vec_lanes <= d; j += vec_lanes, record += stride, absent += vec_lanes) {
    if (reads) ask<R, vec_lanes* int(sizeof(T))>(ahead, asking);
    holed_step<T, R, task, reads>(g, found, record, absent, j, vec_lanes);
  }
  if (j < d) holed_step<T, R, task, reads>(g, found, record, absent, j, d - j);
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) {
    group.norm2[r] = g.norm2[r];
    holes[r] = found[r];
  }
  stream.quantised += R;
}

// Factors of the rows just read, as of finish_group; those with holes count their present numbers.
template <class T, int R, Task task>
static inline void finish_holed(Stream& s, const Group<R>& g, const VecInt (&found)[R],
                                const Origin& from, std::size_t i) {
  Vec lanes[R];
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) lanes[r] = as_doubles(found[r]);
  const Vec holes = sum_lanes_of_each<R>(lanes);
  s.counts.nonfinite += count_above(holes, fill(0.0));
  Vec norm2 = sum_lanes_of_each<R>(g.norm2);
  if (task == Task::box) {
    s.counts.clipped += count_above(norm2, fill(0.0));
    return;
  }
  if (from.region.stretch) norm2 = norm2 * stretches_of(holes, s.d);
  if (__builtin_expect(!all_below(norm2, fill(exceptional_norm2)), 0)) {
    double n2[vec_lanes], missing[vec_lanes];
    store(n2, norm2);
    store(missing, holes);
    for (int r = 0; r < R; ++r) s.counts.nonfinite -= n2[r] >= exceptional_norm2 && missing[r] > 0;
    norm2 = replace_exceptional<T, task>(s, from, i, R, norm2);
  }
  const Vec norm = square_root<R>(norm2), radius = fill(s.radius);
  s.counts.clipped += count_above(norm, radius);
  store(s.factor(), divide<R>(fill(s.numerator), maximum(norm, radius)));
}

// Rows from i on, until few have holes or fewer than a group are left. They have records of their own,
// since those of the other ways may be too short for them; what they add goes there at the end.
template <class T, Task task>
__attribute__((noinline)) static void stream_holed(Stream& other, const Batch& rows,
                                                   const Origin& from, std::size_t& i,
                                                   const Arrangement& arrangement) {
  constexpr int R = holed_in_flight;
  if (i + R > rows.n) return;
  Stream s = other;
  s.records = other.spare, s.stride = y_slot(task) + R * vec_lanes, s.keeps = false;
  for (std::size_t j = 0, at = 0; j < s.d; j += vec_lanes, at += s.stride) {
    double* record = s.records + at;
    std::memset(record, 0, s.stride * sizeof *record);
    std::memcpy(record + center_slot, s.center + j, vec_lanes * sizeof *record);
    std::memcpy(record + scale_slot, s.scale + j, vec_lanes * sizeof *record);
    if (task == Task::box)
      std::memcpy(record + limit_slot, other.records + j / vec_lanes * other.stride + limit_slot,
                  vec_lanes * sizeof *record);
  }
  s.quantised = 0;
  store(s.factor(), fill(0.0));
  s.ahead = plan_ahead(rows, sizeof(T), R, arrangement);
  Group<R> g;
  VecInt found[R];
  HoledWindow window(i, s.counts);
  for (; i + R <= rows.n; i += R) {
    if (window.ends(i) && window.count(i, s.counts) < seldom_holed) break;
    find_group<T>(g, rows, i);
    walk_holed<T, R, task, true>(s, g, found);
    finish_holed<T, R, task>(s, g, found, from, i);
  }
  walk_holed<T, R, task, false>(s, g, found);
  for (std::size_t j = 0, at = 0; j < s.d; j += vec_lanes, at += s.stride) {
    double* record = other.records + j / vec_lanes * other.stride;
    const auto add = [&](std::size_t slot) {
      std::int64_t* to = integers_at(record + slot);
      add_to(to, load_ints(integers_at(s.records + at + slot)));
    };
    add(sum_slot);
    if (task == Task::halves) add(limit_slot);
  }
  other.quantised += s.quantised;
  other.counts = s.counts;
}
