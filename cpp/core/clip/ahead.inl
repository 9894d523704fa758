// What is asked of the memory before it is read: cache lines in the order of their addresses,
// whatever rows are in flight. Several rows read side by side are several streams to a hardware
// prefetcher, which follows one or two of them (bench/README.md, "What bounds the kernel").

// Where a group asks, seen from its first row.
struct Ahead {
  Fetch fetch;
  std::ptrdiff_t offset;  // of the first line
  std::ptrdiff_t length;  // bytes of a row, or more than any where rows follow each other
  std::ptrdiff_t gap;     // from the end of a row to the next one
};

// From a whole number of groups on that is `least` bytes or more.
static inline Ahead plan_ahead(const Batch& rows, std::size_t size, int group,
                               const Arrangement& arrangement) {
  const std::size_t length = rows.d * size, span = length * std::size_t(group);
  const std::size_t groups = (arrangement.ahead + span - 1) / span;
  const std::ptrdiff_t start = std::ptrdiff_t(groups) * group;  // in rows
  const std::ptrdiff_t gap = rows.row_stride - std::ptrdiff_t(length);
  return {arrangement.fetch, start * rows.row_stride, gap ? std::ptrdiff_t(length) : PTRDIFF_MAX,
          gap};
}

// The next line to ask for, and how much of its row is left.
struct Asking {
  const char* next;
  std::ptrdiff_t left;
};

// Asks for the next `bytes`.
template <int bytes> static inline void ask(const Ahead& ahead, Asking& asking) {
  constexpr int line = 64;
  if (ahead.fetch == Fetch::near) {
    ELLIPSUM_UNROLL
    for (int k = 0; k < bytes; k += line) __builtin_prefetch(asking.next + k, 0, 3);
  } else if (ahead.fetch == Fetch::far) {
    ELLIPSUM_UNROLL
    for (int k = 0; k < bytes; k += line) __builtin_prefetch(asking.next + k, 0, 2);
  }
  asking.next += bytes, asking.left -= bytes;
  if (asking.left <= 0) asking.next += ahead.gap, asking.left += ahead.length;
}
