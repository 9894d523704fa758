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
    for (std::size_t j = 0; j < round_up(d, vec_lanes); ++j)
      to[j] = j >= d ? 0.0 : (from ? from[j] : otherwise);
    return to;
  }
};
