// Rows in a box (d > 8, but for those that stay in registers: rows.inl). Their integers do not depend on their norm,
// so each coordinate is added as it is read, and nothing waits. What a stretch of the rows in flight holds is copied
// meanwhile, to the first level of cache: where a hole or a huge number shows at its end, what was added of that row
// is taken back, and added again from the copy.
// Cost per 8 coordinates: 7 vector operations (8 off AVX-512; of float32 two more to convert, or one), 1.2 loads and a
// store; while y waited for its row's end, up to 2 loads and a store that left the first level from some 500
// coordinates on.

constexpr std::size_t copied_bytes = 8192;  // a quarter of the smallest first level

// Eight coordinates, clamped, to `sum`; the squares of how far they were outside to norm2.
template <Form form>
static ELLIPSUM_INLINE void add_inside(const Vec& x, const Vec& center, const Vec& scale,
                                       const Vec& limit, Vec& norm2, VecInt& sum) {
  Vec y = scaled<double, Task::box, form>(x, center, scale);
  norm2 = add_square<Task::box>(norm2, y, limit);
  VecInt none{};
  add_clipped<Task::box>(y, sum, none);
}

// Where the rows in flight are copied, and what was seen of them.
struct BoxRows {
  alignas(64) double copies[copied_bytes / sizeof(double)];
  Vec outside;     // of each row: above 0 if a coordinate is
  unsigned holed;  // a bit for each
};

// The columns from `first` to before `last` once more, of those of R rows that are exceptional.
template <int R>
static __attribute__((noinline, cold)) Vec add_again(Stream& s, BoxRows& all, double* record,
                                                     std::size_t first, std::size_t last,
                                                     const Vec& outside) {
  double away[vec_lanes];
  store(away, outside);
  for (int r = 0; r < R; ++r) {
    if (away[r] < exceptional_norm2) continue;
    Vec norm2 = fill(0.0), dropped = fill(0.0);
    VecInt missing{};
    const double* copy = all.copies + r * vec_lanes;
    double* at = record;
    for (std::size_t j = first; j < last; j += vec_lanes, at += s.stride) {
      const Vec x = load<double>(copy), center = load<double>(s.center + j),
                scale = load<double>(s.scale + j), limit = load<double>(at + limit_slot);
      const Holes holes = holes_of(x);
      VecInt wrong{}, right{}, sum = load_ints(integers_at(at + sum_slot));
      add_inside<Form::ellipsoid>(x, center, scale, limit, dropped, wrong);
      add_inside<Form::ellipsoid>(fill_holes(x, holes, center), center, scale, limit, norm2, right);
      ELLIPSUM_UNROLL
      for (int p = 0; p < vec_parts; ++p)
        sum.part[p] =
            Mask(Words64(sum.part[p]) + (Words64(right.part[p]) - Words64(wrong.part[p])));
      store(integers_at(at + sum_slot), sum);
      store(s.absent + j, count_holes(load_ints(s.absent + j), holes));
      missing = count_holes(missing, holes);
      copy += R * vec_lanes;
    }
    away[r] = sum_lanes(norm2) != 0;
    all.holed |= unsigned(total_of(missing) != 0) << r;
  }
  return load<double>(away);
}

// One walk over the columns; copies, as in `walk`.
template <class T, int R, Form form>
static inline void walk_box(Stream& s, const Group<R>& group, BoxRows& all) {
  constexpr std::size_t stretch = copied_bytes / (R * sizeof(double)) / vec_lanes * vec_lanes;
  constexpr bool own = form == Form::ellipsoid;  // of each coordinate
  const std::size_t d = s.d, stride = s.stride;
  const double* centers = s.center;
  const Vec one_scale = fill(s.scale[0]), one_limit = fill(s.limit);
  const Ahead ahead = s.ahead;
  Asking asking{group.asked + ahead.offset, ahead.length};
  const char* row[R];
  ELLIPSUM_UNROLL
  for (int r = 0; r < R; ++r) row[r] = group.row[r];
  double* record = s.records;
  all.outside = fill(0.0), all.holed = 0;
  for (std::size_t first = 0; first < d; first += stretch) {
    const std::size_t last = first + stretch < d ? first + stretch : d;
    double* const begin = record;
    double* copy = all.copies;
    Vec norm2[R];
    ELLIPSUM_UNROLL
    for (int r = 0; r < R; ++r) norm2[r] = fill(0.0);
    const auto step = [&](std::size_t j, std::size_t count) __attribute__((always_inline)) {
      ask<R, vec_lanes* int(sizeof(T))>(ahead, asking);
      VecInt sum = load_ints(integers_at(record + sum_slot));
      const Vec center = own                  ? load<double>(record + center_slot)
                         : form == Form::ball ? load<double>(centers + j)
                                              : fill(0.0);
      const Vec scale = own ? load<double>(record + scale_slot) : one_scale;
      const Vec limit = own ? load<double>(record + limit_slot) : one_limit;
      ELLIPSUM_UNROLL
      for (int r = 0; r < R; ++r) {
        const char* from = row[r] + j * sizeof(T);
        Vec x = count == vec_lanes ? load<T>(from) : load_first<T>(from, count);
        hold(x);
        store(copy + r * vec_lanes, x);
        add_inside<form>(x, center, scale, limit, norm2[r], sum);
      }
      store(integers_at(record + sum_slot), sum);
      record += stride, copy += R * vec_lanes;
    };
    std::size_t j = first;
    for (; j + vec_lanes <= last; j += vec_lanes) step(j, vec_lanes);
    if (j < last) step(j, last - j);
    Vec outside = sum_lanes_of_each<R>(norm2);
    if (__builtin_expect(!all_below(outside, fill(exceptional_norm2)), 0))
      outside = add_again<R>(s, all, begin, first, last, outside);
    all.outside = all.outside + outside;
  }
}

template <class T, int R, Form form>
static void stream_box(Stream& s, const Batch& rows, std::size_t& i,
                       const Arrangement& arrangement) {
  if (s.holed || i + R > rows.n) return;
  BoxRows all;
  s.ahead = plan_ahead(rows, sizeof(T), R, arrangement);
  HoledWindow window(i, s.counts);
  for (Group<R> g; i + R <= rows.n; i += R) {
    if (window.ends(i) && window.count(i, s.counts) > often_holed && s.spare) {
      s.holed = true;
      break;
    }
    find_group<T>(g, rows, i);
    walk_box<T, R, form>(s, g, all);
    s.counts.clipped += count_above(all.outside, fill(0.0));
    s.counts.nonfinite += __builtin_popcount(all.holed);
    s.quantised += R;
  }
}
