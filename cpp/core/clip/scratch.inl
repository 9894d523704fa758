// Cuts arrays of doubles, each a whole number of cache lines, from the scratch.
struct Scratch {
  double* next;
  double* take(std::size_t doubles) {
    double* taken = next;
    next += round_up(doubles, vec_lanes);
    return taken;
  }
  const double* padded(const double* from, double otherwise, std::size_t d) {
    double* to = take(d);
    // Apart: a choice in the loop is a masked load from no address, which takes an assist of the processor.
    if (from) std::copy_n(from, d, to);
    else std::fill_n(to, d, otherwise);
    std::fill(to + d, to + round_up(d, vec_lanes), 0.0);
    return to;
  }
};

// Sums lie beside doubles.
static inline std::int64_t* integers_at(double* p) { return reinterpret_cast<std::int64_t*>(p); }
