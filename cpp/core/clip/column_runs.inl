// Columns of every type, and cells that are moved into a box, as the passes over columns read them: in
// doubles. Either eight numbers become doubles as they are loaded, or a run of a column is made first and read in its
// place: right before that, so that it is in the first level of cache, while the column's own numbers are asked
// for as those of others are. Each number is read once, and no branch depends on one. Included into each target's
// namespace.
// (Converted by stretches of 2^16 numbers, before a pass over those, columns of int64 took 1.6 to 2.4 times as
// long on a Zen 4: while numbers were added nobody asked for the next ones.)

// Are numbers of a type made doubles as they are loaded, where a few of a column are read at a time? What is
// stored and loaded again at once waits for that.
constexpr bool is_loaded(Dtype type) { return is_floating(type) || register_lanes >= 4; }
constexpr std::size_t bytes_of_eight(Dtype type) {
  return type == Dtype::bits ? 1 : vec_lanes * size_of(type);
}
// Eight numbers; bits from bit `first` of a byte on, which is one for all of a batch's, since passes go by whole
// eights from its first row on.
static ELLIPSUM_INLINE Vec load_as(Dtype type, const char* from, unsigned first) {
  if (type == Dtype::float64) return load<double>(from);
  if constexpr (is_loaded(Dtype::int64)) {
    if (type == Dtype::int64) return load<std::int64_t>(from);
    if (type == Dtype::int32) return load<std::int32_t>(from);
    if (type == Dtype::bits) return load_bits(reinterpret_cast<const std::uint8_t*>(from), first);
    if (type == Dtype::boolean) return load_booleans(from);
    if (type == Dtype::int8) return load<std::int8_t>(from);
    if (type == Dtype::uint8) return load<std::uint8_t>(from);
    if (type == Dtype::int16) return load<std::int16_t>(from);
    if (type == Dtype::uint16) return load<std::uint16_t>(from);
    if (type == Dtype::uint32) return load<std::uint32_t>(from);
    if (type == Dtype::uint64) return load<std::uint64_t>(from);
  }
  return load<float>(from);
}

// Is column j made, where many of its numbers are read at a time?
static ELLIPSUM_INLINE bool is_made(const Batch& batch, const Region& region, std::size_t j) {
  return region.lower || !is_floating(type_of_column(batch, j));
}

// n numbers of column j from row i on; what is left out is any number.
static void convert_run(const Batch& batch, std::size_t j, std::size_t i, std::size_t n,
                        double* to) {
  convert_numbers_of(batch.types[j], batch.columns[j], batch.first + i, n, to);
}

// The same, moved into the box if there is one.
static __attribute__((noinline)) void make_run(const Batch& batch, const Region& region,
                                               std::size_t j, std::size_t i, std::size_t n,
                                               double* to) {
  const Dtype type = type_of_column(batch, j);
  const char* from = number_at(batch, j, i);
  if (!region.lower || !is_floating(type)) convert_run(batch, j, i, n, to);
  if (!region.lower) return;
  if (!is_floating(type)) from = reinterpret_cast<const char*>(to);
  Validity valid = batch.valid ? batch.valid[j] : Validity{};
  valid.first += batch.first + i;
  const CellEnds ends{region.lower[j], region.center[j], region.upper[j]};
  if (type == Dtype::float32) move_numbers<float>(from, valid, n, ends, to);
  else move_numbers<double>(from, valid, n, ends, to);
}
