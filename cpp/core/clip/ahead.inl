// What is asked of the memory before it is read: cache lines in the order of their addresses (and of time:
// `later`), whatever rows are in flight. Several rows read side by side are several streams to a hardware
// prefetcher, which follows one or two of them (bench/README.md, "What bounds the kernel"). But
// what is asked for in that order waits for a whole group of rows: where those are long, it fills the
// second level of cache, and each row's own lines are asked for beside it.

// Where a group asks, seen from its first row.
struct Ahead {
  Fetch fetch;
  std::ptrdiff_t offset;  // of the first line
  std::ptrdiff_t length;  // bytes of a row, or more than any where rows follow each other
  std::ptrdiff_t gap;     // from the end of a row to the next one
  std::ptrdiff_t stride;  // from row to row
  std::ptrdiff_t size;    // bytes of a number that is asked for
  std::ptrdiff_t beyond;  // from a line for the first level to the one for the second (both)
};

// A few kilobytes ahead to the first level of cache alone, every line takes one of its few places for misses until
// the memory has answered; to the second alone, rows wait for that. What is in the second by then takes such a place
// for a moment. (At least: whole rows, if others lie between them.)
constexpr std::ptrdiff_t beyond_bytes = 8192;

// From a whole number of groups on that is `arrangement.ahead` bytes or more; beside a row that is
// longer, so many bytes on, and at its end from the row of the next group on.
static inline Ahead plan_ahead(const Batch& rows, std::size_t size, int group,
                               const Arrangement& arrangement) {
  if (rows.made) size = size_of(rows.made->from.dtype);
  const std::size_t length = (rows.d > 1 ? rows.d : 1) * size, span = length * std::size_t(group);
  const std::size_t groups = (arrangement.ahead + span - 1) / span;
  const std::ptrdiff_t start = std::ptrdiff_t(groups) * group;  // in rows
  // (One row may have any stride.)
  const std::ptrdiff_t stride = rows.made || rows.n < 2 ? std::ptrdiff_t(length) : rows.row_stride,
                       gap = stride - std::ptrdiff_t(length);
  const std::ptrdiff_t beside = std::ptrdiff_t(arrangement.ahead);
  if (arrangement.fetch == Fetch::beside && length > arrangement.ahead)
    return {Fetch::beside,
            beside,
            std::ptrdiff_t(length) - beside,
            group * stride - std::ptrdiff_t(length),
            stride,
            std::ptrdiff_t(size),
            0};
  const Fetch fetch = arrangement.fetch == Fetch::beside ? Fetch::near : arrangement.fetch;
  const std::ptrdiff_t rows_beyond = (beyond_bytes - 1) / std::ptrdiff_t(length) + 1;
  return {fetch,  start * stride,       gap ? std::ptrdiff_t(length) : PTRDIFF_MAX, gap,
          stride, std::ptrdiff_t(size), gap ? rows_beyond * stride : beyond_bytes};
}

// The next line to ask for, and how much of its row is left.
struct Asking {
  const char* next;
  std::ptrdiff_t left;
};

// Asks for the lines of so many bytes, one after the other, to the first level of cache or to the second.
template <int bytes, int level> static ELLIPSUM_INLINE void ask_lines(const char* from) {
  constexpr int line = 64;
  ELLIPSUM_UNROLL
  for (int k = 0; k < bytes; k += line) {
    if (k) from = later(from);
    __builtin_prefetch(from + k, 0, 4 - level);
  }
}

// Asks for the next `bytes` of R rows.
template <int R, int bytes_of_row> static inline void ask(const Ahead& ahead, Asking& asking) {
  constexpr int line = 64, bytes = R * bytes_of_row;
  if (ahead.fetch == Fetch::beside) {
    // Half a line of each row is a whole one of every other; the middle one of three comes twice.
    constexpr bool half = bytes_of_row < line;
    const bool second = half && (reinterpret_cast<std::uintptr_t>(asking.next) & bytes_of_row);
    const char* next = asking.next + (second ? R / 2 * ahead.stride : 0);
    ELLIPSUM_UNROLL
    for (int r = 0; r < (half ? (R + 1) / 2 : R); ++r)
      __builtin_prefetch(next + r * ahead.stride, 0, 3);
    asking.next += bytes_of_row, asking.left -= bytes_of_row;
    if (asking.left <= 0) asking.next += ahead.gap, asking.left = PTRDIFF_MAX;
    return;
  }
  if (ahead.fetch == Fetch::near) {
    ask_lines<bytes, 1>(asking.next);
  } else if (ahead.fetch == Fetch::far) {
    ask_lines<bytes, 2>(asking.next);
  } else if (ahead.fetch == Fetch::both) {
    ask_lines<bytes, 1>(asking.next);
    ask_lines<bytes, 2>(asking.next + ahead.beyond);
  } else if (ahead.fetch == Fetch::made) {
    // What is made is a double.
    const std::ptrdiff_t few = bytes / int(sizeof(double)) * ahead.size;
    for (std::ptrdiff_t k = 0; k < few; k += line) {
      __builtin_prefetch(asking.next + k, 0, 2);
      asking.next = later(asking.next);
    }
    asking.next += few;
    return;
  }
  asking.next += bytes, asking.left -= bytes;
  if (asking.left <= 0) asking.next += ahead.gap, asking.left += ahead.length;
}
