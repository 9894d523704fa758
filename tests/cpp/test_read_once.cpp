// What a row adds is a function of one reading of its numbers: the last number of a batch lies on
// a page of its own, which is protected, so that each instruction that reads the number traps; it
// is changed between any two of those readings, or at each of them. Whatever the moment, the
// result must be that of the row before or that of the row after the change, to the bit, and
// within the bound (where the others add nothing). Every target, task, layout and exceptional path. (Linux on x86-64: the trap
// flag lets one instruction through at a time.)
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "clip/clip.hpp"
#include "clip/clip_sum.hpp"
#include "ways.hpp"

using namespace ellipsum;

namespace {

constexpr std::size_t page = 4096, front = 16 * page;
// Of columns more than one block (of up to a page of a column), a short one, and a slab.
constexpr std::size_t rows_in_blocks = 1024 + 512 + 64 + 8;
// Rows in a box with as many coordinates are read in stretches (box_rows.inl), by fours or eights.
constexpr unsigned more_stretches = 269;
// So many rows with holes before the last eight that these go the way of rows with holes.
constexpr std::size_t holed_rows = 256 + 8;

// Pages under test: seen by the kernel, and written by way of a second mapping. The first number of
// the last page is the one that changes.
struct Memory {
  char *seen, *written;
  char number[2][8];  // before and after
  std::size_t size;
  long readings;        // of the number
  long change;          // the reading at which the change comes
  bool back_and_forth;  // and goes again at the next, and so on
} memory;

void allow(int protection) { mprotect(memory.seen + front, page, protection); }

// A reading begins: the number becomes what it is to see, and one instruction may read it.
void on_fault(int, siginfo_t* info, void* context) {
  const char* at = static_cast<const char*>(info->si_addr);
  if (at < memory.seen + front || at >= memory.seen + front + page) _exit(3);  // another fault
  const long since = memory.readings++ - memory.change;
  const bool changed = since >= 0 && !(memory.back_and_forth && since % 2);
  std::memcpy(memory.written + front, memory.number[changed], memory.size);
  allow(PROT_READ);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

void on_step(int, siginfo_t*, void* context) {
  allow(PROT_NONE);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
}

bool prepare() {
  FILE* file = std::tmpfile();
  if (!file || ftruncate(fileno(file), front + page)) return false;
  void* written = mmap(nullptr, front + page, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  void* seen = mmap(nullptr, front + page, PROT_READ, MAP_SHARED, fileno(file), 0);
  if (written == MAP_FAILED || seen == MAP_FAILED) return false;
  memory.written = static_cast<char*>(written), memory.seen = static_cast<char*>(seen);
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = on_fault;
  if (sigaction(SIGSEGV, &action, nullptr)) return false;
  action.sa_sigaction = on_step;
  return sigaction(SIGTRAP, &action, nullptr) == 0;
}

struct Kind {
  Task task;
  bool matrix;
  bool moved = false;    // cells into a box, first
  std::size_t rank = 0;  // at most, beside the scale
  Form form = Form::ellipsoid;
  bool beyond = false;  // is the centre, which holes go to, outside of that box?
  double center() const { return form == Form::ball_at_zero ? 0 : beyond ? 9 : 0.25; }
  double whole_center() const { return std::trunc(center()); }
};

struct Case {
  std::vector<double> center, scale, limit, matrix, edges, factors, lower, upper;
  Region region{};
  Case(Kind kind, std::size_t d, bool whole, bool rows_of_integers)
      : center(d, kind.center()),
        scale(d, 0x1p22),
        limit(d, 0x1p20),
        edges{0x1p20, 0x1p23, 0x1p30},
        lower(d, -7),
        upper(d, 7) {
    if (kind.form == Form::ellipsoid) scale[0] = 0x1p21;
    if (whole)
      center[d - 1] = kind.whole_center();  // of the column of whole numbers, if not all are
    if (rows_of_integers) center.assign(d, kind.whole_center());
    if (kind.matrix) matrix.resize(d * d, 0x1p10);
    for (std::size_t j = 0; j < matrix.size(); j += d + 1) matrix[j] = 0x1p22;
    region = {kind.task,
              d,
              center.data(),
              kind.matrix ? nullptr : scale.data(),
              kind.matrix ? matrix.data() : nullptr,
              kind.task == Task::box ? limit.data() : nullptr,
              0x1p23 + 0.5,
              edges.data(),
              3,
              nullptr,
              true,
              kind.rank < d ? kind.rank : d,
              nullptr,
              kind.moved ? lower.data() : nullptr,
              kind.moved ? upper.data() : nullptr};
    factors.resize(2 * d * region.rank, 0.5);
    region.factors = factors.data();
  }
};

struct Result {
  std::vector<std::int64_t> partial, absent;
  std::int64_t clipped, nonfinite;
  bool operator==(const Result& o) const {
    return partial == o.partial && absent == o.absent && clipped == o.clipped &&
           nonfinite == o.nonfinite;
  }
};

Result run(const Choice& kernels, const Batch& batch, const Region& region) {
  Result r{std::vector<std::int64_t>(compiled_once::sums_of(region)),
           std::vector<std::int64_t>(region.d), 0, 0};
  const ClipCounts counts = clip_sum(kernels, batch, region, r.partial.data(), 1, r.absent.data());
  r.clipped = counts.clipped, r.nonfinite = counts.nonfinite;
  return r;
}

// The bound of one row, the others being the centre (which they are not where it lies outside of their box).
bool within_bound(const Result& r, Kind kind, const Region& region) {
  if (region.task == Task::distances || kind.beyond) return true;
  double norm2 = 0;
  for (std::size_t j = 0; j < r.partial.size(); ++j) {
    const double q = double(r.partial[j]);
    if (region.task == Task::box && std::fabs(q) > region.limit[j]) return false;
    norm2 += q * q;
  }
  return region.task == Task::box ||
         std::sqrt(norm2) <= region.radius * (1 + 0x1p-40) + std::sqrt(double(region.d)) / 2;
}

long failures = 0, passes = 0, most_readings = 0;

void report(const Choice& kernels, Kind kind, const Batch& batch, const char* what, double before,
            double after, long reading) {
  if (++failures > 20) return;
  std::printf("FAILED: %s, %s, task %d%s, n = %zu, d = %zu, %s, strides %td, %td: %g to %g, %ld\n",
              what, kernels.name().c_str(), int(kind.task),
              kind.form == Form::ball           ? ", one scale"
              : kind.form == Form::ball_at_zero ? ", center 0"
              : kind.matrix                     ? ", matrix"
              : kind.rank                       ? ", factors"
              : kind.beyond                     ? ", moved, the centre outside"
              : kind.moved                      ? ", moved"
                                                : "",
              batch.n, batch.d, batch.dtype == Dtype::float32 ? "float32" : "float64",
              batch.row_stride, batch.column_stride, before, after, reading);
}

enum class Layout { rows, holed, columns, typed, nulls, apart };

// Where columns have memory of their own: all but the last may be of the other type than that, and some
// numbers left out.
struct {
  std::vector<float> singles;
  std::vector<double> doubles;
  std::vector<const void*> columns;
  std::vector<Dtype> types;
  std::vector<std::vector<std::uint8_t>> bits;
  std::vector<Validity> valid;
} table;

// One number of every third row, for some n the first one of the last row, and never the one that changes.
const Validity* make_nulls(std::size_t n, std::size_t d) {
  table.bits.assign(d, std::vector<std::uint8_t>(n / 8 + 1, 0xff));
  const auto leave_out = [](std::size_t j, std::size_t i) {
    table.bits[j][i / 8] &= std::uint8_t(~(1u << i % 8));
  };
  for (std::size_t i = 1; i + 1 < n; i += 3) leave_out(i / 3 % d, i);
  if (n % 16) leave_out(0, n - 1);
  table.valid.clear();
  for (const auto& bits : table.bits) table.valid.push_back({bits.data(), 0});
  return table.valid.data();
}

template <class T> Batch make_table(std::size_t n, std::size_t d, Layout layout, double center) {
  constexpr bool converts = std::is_integral_v<T>, narrow = !converts && sizeof(T) == 4;
  const bool typed = layout == Layout::typed, others_narrow = typed ? !narrow : narrow;
  std::vector<T> data(n, T(center));
  data[n - 1] = T(0.5);
  memory.size = sizeof(T);
  const std::size_t first = front - (n - 1) * sizeof(T);
  std::memcpy(memory.written + first, data.data(), data.size() * sizeof(T));
  table.singles.assign(n, float(center)), table.doubles.assign(n, center);
  table.singles[n - 1] = 0.5f, table.doubles[n - 1] = 0.5;
  const void* others = table.doubles.data();
  if (others_narrow) others = table.singles.data();
  table.columns.assign(d, others);
  table.types.assign(d, others_narrow ? Dtype::float32 : Dtype::float64);
  table.columns[d - 1] = memory.seen + first;
  table.types[d - 1] = narrow ? Dtype::float32 : Dtype::float64;
  if (converts) table.types[d - 1] = sizeof(T) == 4 ? Dtype::int32 : Dtype::int64;
  Batch batch{nullptr, Dtype::float64, n, d, 8, 0, table.columns.data()};
  if (typed || converts) batch.types = table.types.data(), batch.converts = converts;
  else if (narrow) batch.dtype = Dtype::float32, batch.row_stride = 4;
  if (!typed) batch.valid = make_nulls(n, d);
  return batch;
}

// Rows at the centre but for the last, of 0.5 (or 1) but for its last number, on the last page. Others may
// have a hole.
template <class T> Batch make_rows(std::size_t n, std::size_t d, Layout layout, double center) {
  if (layout == Layout::typed || layout == Layout::nulls)
    return make_table<T>(n, d, layout, center);
  constexpr bool whole = std::is_integral_v<T>;
  const bool columns = layout == Layout::columns;
  const std::size_t step = layout == Layout::apart && !whole ? 2 : 1;  // from one to the next
  const std::size_t row = columns ? 1 : d * step, column = columns ? n : step;
  std::vector<T> data(n * d * step, T(center));  // of integers as a Kind's whole_center
  for (std::size_t i = 0; layout == Layout::holed && i + 1 < n; ++i) data[i * d] = T(std::nan(""));
  for (std::size_t j = 0; j < d; ++j) data[(n - 1) * row + j * column] = T(whole ? 1 : 0.5);
  memory.size = sizeof(T);
  const std::size_t first = front - (n * d - 1) * step * sizeof(T);
  std::memcpy(memory.written + first, data.data(), (data.size() - step + 1) * sizeof(T));
  const Dtype longer = std::is_unsigned_v<T> ? Dtype::uint64 : Dtype::int64,
              integers = sizeof(T) == 4 ? Dtype::int32 : longer,
              floats = sizeof(T) == 4 ? Dtype::float32 : Dtype::float64;
  return {memory.seen + first,
          whole ? integers : floats,
          n,
          d,
          std::ptrdiff_t(row * sizeof(T)),
          std::ptrdiff_t(column * sizeof(T))};
}

Result changing(const Choice& kernels, const Batch& batch, const Region& region, long change,
                bool back_and_forth) {
  memory.readings = 0, memory.change = change, memory.back_and_forth = back_and_forth;
  allow(PROT_NONE);
  Result r = run(kernels, batch, region);
  allow(PROT_READ);
  ++passes;
  return r;
}

template <class T>
void test_change(const Choice& kernels, Kind kind, const Batch& batch, double before,
                 double after) {
  const bool rows_of_integers = std::is_integral_v<T> && !batch.columns;
  const Case c(kind, batch.d, std::is_integral_v<T>, rows_of_integers);
  Result fixed[2];
  const double values[2] = {before, after};
  for (int k = 0; k < 2; ++k) {
    const T value = T(values[k]);
    std::memcpy(memory.number[k], &value, sizeof value);
    std::memcpy(memory.written + front, &value, sizeof value);
    fixed[k] = run(kernels, batch, c.region);
  }
  long readings = 2;
  for (bool back_and_forth : {false, true})
    for (long change = 0; change < readings; ++change) {
      const Result r = changing(kernels, batch, c.region, change, back_and_forth);
      if (memory.readings > readings) readings = memory.readings;
      if ((r == fixed[0] || r == fixed[1]) && within_bound(r, kind, c.region)) continue;
      report(kernels, kind, batch, "a mixture", before, after, change);
    }
  if (readings > most_readings) most_readings = readings;
}

template <class T>
void test_batch(const Choice& kernels, Kind kind, std::size_t n, std::size_t d, Layout layout) {
  const Batch batch = make_rows<T>(n, d, layout, kind.center());
  constexpr bool whole = std::is_integral_v<T>;
  const double inside = whole ? 0 : 0.3, huge = sizeof(T) == 4 ? 1e38 : 1e300;
  double values[] = {inside, 30.0, huge, double(INFINITY), std::nan("")};
  if (whole) values[2] = 2e9, values[3] = -2e9, values[4] = -7;
  if (std::is_unsigned_v<T>) values[3] = 0x1p63, values[4] = 7;
  for (int before = 0; before < 5; ++before)
    for (int after = 0; after < 5; ++after)
      if (before != after) test_change<T>(kernels, kind, batch, values[before], values[after]);
  const T ordinary = T(inside);  // without exceptional rows: one reading, literally
  std::memcpy(memory.number, &ordinary, sizeof ordinary);
  const Case c(kind, d, whole, whole && !batch.columns);
  changing(kernels, batch, c.region, 2, false);
  if (memory.readings != 1)
    report(kernels, kind, batch, "readings of an ordinary row", inside, inside, memory.readings);
}

// `first`: of its target; others differ in rows of d > 8 alone, or in columns.
void test_variant(const Choice& kernels, bool first, bool of_columns) {
  const Kind kinds[] = {{Task::ball, false},
                        {Task::box, false},
                        {Task::ball, true},
                        {Task::halves, false},
                        {Task::halves, true},
                        {Task::distances, false},
                        {Task::distances, true},
                        {Task::ball, false, false, 2},
                        {Task::halves, false, false, 9},
                        {Task::distances, false, false, 1},
                        {Task::ball, false, true},
                        {Task::box, false, true},
                        {Task::ball, true, true},
                        {Task::halves, false, true},
                        {Task::distances, false, true},
                        {Task::ball, false, true, 0, Form::ellipsoid, true},
                        {Task::box, false, true, 0, Form::ellipsoid, true},
                        {Task::ball, true, true, 0, Form::ellipsoid, true},
                        {Task::halves, false, true, 0, Form::ellipsoid, true},
                        {Task::ball, false, false, 0, Form::ball},
                        {Task::halves, false, false, 0, Form::ball},
                        {Task::box, false, false, 0, Form::ball},
                        {Task::box, false, false, 0, Form::ball_at_zero},
                        {Task::distances, false, false, 0, Form::ball},
                        {Task::ball, false, false, 0, Form::ball_at_zero},
                        {Task::halves, false, false, 0, Form::ball_at_zero},
                        {Task::distances, false, false, 0, Form::ball_at_zero}};
  for (Kind kind : kinds)
    for (std::size_t d : {1u, 3u, 8u, 9u, 11u, 16u, 20u, more_stretches})
      for (std::size_t n : {std::size_t{1}, std::size_t{8}, std::size_t{9}, std::size_t{16},
                            std::size_t{32}, holed_rows, rows_in_blocks})
        for (Layout layout : {Layout::rows, Layout::holed, Layout::columns, Layout::typed,
                              Layout::nulls, Layout::apart}) {
          const bool tables = layout == Layout::typed || layout == Layout::nulls;
          const bool columns = layout == Layout::columns || tables;
          const bool holed = layout == Layout::holed;
          if (holed != (n == holed_rows) || (holed && d <= 8)) continue;
          if (tables && (d == 1 || d == 8 || d == 16)) continue;
          if ((layout == Layout::nulls || kind.beyond) && (d == 1 || d > 11)) continue;
          if ((columns && n == 1) || (!columns && n > 9 && !holed)) continue;
          if (n > 32 && d != 3 && !holed) continue;
          if (d == more_stretches && (kind.task != Task::box || n > 9 || layout != Layout::rows))
            continue;
          if (n <= 32 && n * d * 8 > page && d != more_stretches) continue;
          if (layout == Layout::apart && n == 8) continue;
          // Those are other ways there where numbers are left unscaled alone.
          const bool scaled = kind.task == Task::box || kind.task == Task::distances;
          const bool alike = columns || d <= 8;
          if (kind.form != Form::ellipsoid && alike && (scaled || tables)) continue;
          if (columns ? !of_columns || kind.matrix || kind.rank : of_columns) continue;
          if (!first && !columns && d <= 8 && !kind.matrix && !kind.rank) continue;
          test_batch<float>(kernels, kind, n, d, layout);
          test_batch<double>(kernels, kind, n, d, layout);
          if (!tables && layout != Layout::apart) continue;
          test_batch<std::int32_t>(kernels, kind, n, d, layout);
          test_batch<std::int64_t>(kernels, kind, n, d, layout);
          if (layout == Layout::apart) test_batch<std::uint64_t>(kernels, kind, n, d, layout);
        }
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  if (!prepare()) return std::puts("FAILED: no memory to change"), 1;
  std::string target;
  std::set<std::string> ways;
  for (const std::string& name : variant_names()) {
    if (!ways.insert(way_of(name)).second) continue;
    const std::string its = name.substr(0, name.find(':'));
    test_variant(Choice(name), its != target, name[its.size() + 1] == 'c');
    target = its;
  }
  std::printf("%ld passes, up to %ld readings of a number: %ld failures\n", passes, most_readings,
              failures);
  return failures != 0 || passes == 0;
}
