// Whatever ordinary rows, keys and words hold, a kernel executes the same instructions in the same
// order: rows far inside and far outside, two keys. Beside test_branches.cpp, which sees addresses as
// well, but runs on what Valgrind knows: no AVX-512, and here no ARM.
//
//   test_same_path         Linux on x86-64: the trap flag counts each instruction of either
//   test_same_path 0 | 1   one of the two alone, for an emulator that writes down where it was
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "clip/clip.hpp"
#include "clip/clip_sum.hpp"

#if defined(__linux__) && defined(__x86_64__)
#include <ucontext.h>
#define ELLIPSUM_STEPS 1
#else
#define ELLIPSUM_STEPS 0
#endif

using namespace ellipsum;

namespace {

#if ELLIPSUM_STEPS
struct Path {
  std::uint64_t hash, length;
  bool operator==(const Path& o) const { return hash == o.hash && length == o.length; }
};
Path path;

constexpr long long trap_flag = 0x100;
void set_flag(int number, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (number == SIGUSR1) registers[REG_EFL] |= trap_flag;
  else registers[REG_EFL] &= ~trap_flag;
}
void on_step(int, siginfo_t*, void* context) {
  const auto at = std::uint64_t(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  path.hash = (path.hash ^ at) * 0x9e3779b97f4a7c15u, ++path.length;
}
// One place for both: the way to the call is the same, too.
template <class Call> __attribute__((noinline)) Path path_of(const Call& call, int k) {
  path = {};
  std::raise(SIGUSR1);
  call(k);
  std::raise(SIGUSR2);
  return path;
}
void prepare() {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = set_flag;
  sigaction(SIGUSR1, &action, nullptr), sigaction(SIGUSR2, &action, nullptr);
  action.sa_sigaction = on_step;
  sigaction(SIGTRAP, &action, nullptr);
}
#endif

int only = -1;  // which of the two, or both
int failures = 0, compared = 0;
#if ELLIPSUM_STEPS
// Fewer were no test: instructions of a call, and calls.
constexpr std::uint64_t least_instructions = 50;
constexpr int least_calls = 100;
#else
constexpr int least_calls = 0;
#endif

// `call` with the first and with the second of what may not show.
template <class Call>
void compare([[maybe_unused]] const char* what, [[maybe_unused]] const std::string& target,
             [[maybe_unused]] int task, [[maybe_unused]] std::size_t d, const Call& call) {
  if (only >= 0) return call(only);
#if ELLIPSUM_STEPS
  call(0);  // pages and caches of the loader
  static const Path nothing = path_of([](int) {}, 0);
  const Path first = path_of(call, 0), second = path_of(call, 1);
  ++compared;
  if (first == second && first.length > nothing.length + least_instructions) return;
  ++failures;
  std::printf("FAILED: %s takes %llu or %llu instructions (%s, task %d, d = %zu)\n", what,
              static_cast<unsigned long long>(first.length),
              static_cast<unsigned long long>(second.length), target.c_str(), task, d);
#endif
}

constexpr std::size_t row_count = 11;  // a group of eight, and three rows alone

// On a cache line, whatever the allocator gave.
template <class T> T* aligned(std::vector<T>& memory, std::size_t size) {
  memory.assign(size + 64 / sizeof(T), T());
  T* at = memory.data();
  while (reinterpret_cast<std::uintptr_t>(at) % 64) ++at;
  return at;
}

template <class T>
void rows_of(const Kernels& kernels, const Arrangement& arrangement, Task task, Form form,
             std::size_t d, bool columns, bool matrix) {
  std::vector<T> memory[2];
  T* rows[2];
  for (int k : {0, 1}) {
    rows[k] = aligned(memory[k], row_count * d);
    for (std::size_t i = 0; i < row_count * d; ++i)
      rows[k][i] = T(k ? -900.0 - double(i * 37 % 101) : double(i * 37 % 101) / 1e6);
  }
  const double at = form == Form::ball_at_zero ? 0.0 : 0.1;
  const std::vector<double> center(d, at), b(d * d, 0x1p20), edges{0x1p21, 0x1p23, 0x1p25};
  std::vector<double> scale(d, 0x1p22);
  if (form == Form::ellipsoid) scale.back() = 0x1p21;
  Region given{};
  given.task = task, given.d = d, given.center = center.data();
  (matrix ? given.matrix : given.scale) = matrix ? b.data() : scale.data();
  given.limit = task == Task::box ? scale.data() : nullptr;
  given.radius = 0x1p23, given.edges = edges.data(), given.bins = edges.size();
  Region region = as_passed(given, d);
  std::vector<double> packed(compiled_once::packed_doubles(region) + 1);
  if (matrix) kernels.pack_matrix(region, packed.data()), region.packed = packed.data();
  const auto batch = [&](int k) {
    return Batch{rows[k],
                 sizeof(T) == 4 ? Dtype::float32 : Dtype::float64,
                 row_count,
                 d,
                 std::ptrdiff_t((columns ? 1 : d) * sizeof(T)),
                 std::ptrdiff_t((columns ? row_count : 1) * sizeof(T))};
  };
  std::vector<double> scratch;
  double* const used = aligned(scratch, compiled_once::clip_plan(batch(0), region).doubles);
  std::vector<std::int64_t> partial(compiled_once::sums_of(region) + d + 8);
  const std::string name = std::string(kernels.name) + ":" + arrangement.name;
  compare(columns ? "a clip of columns" : "a clip", name, int(task), d,
          [&](int k) { kernels.clip_sum(batch(k), region, arrangement, used, partial.data()); });
  if (columns || (task != Task::ball && task != Task::box)) return;
  std::vector<std::int64_t> index(row_count), table(3 * d), sizes(3), nowhere(d), absent(d + 8);
  for (std::size_t i = 0; i < row_count; ++i) index[i] = std::int64_t(i % 4) - 1;
  const GroupSums to{index.data(), table.data(), sizes.data(), nowhere.data(), absent.data()};
  compare("a clip of groups", name, int(task), d,
          [&](int k) { kernels.group_sums(batch(k), region, to, used); });
}

void all_rows(const Kernels& kernels) {
  for (bool columns : {false, true}) {
    const ArrangementList list = columns ? column_arrangements(kernels) : row_arrangements(kernels);
    std::size_t keeps = 0;
    while (!list.first[keeps].keeps) ++keeps;
    for (std::size_t a = 0; a < list.count; ++a)
      for (Task task : {Task::ball, Task::box, Task::halves, Task::distances})
        for (Form form : {Form::ellipsoid, Form::ball, Form::ball_at_zero})
          for (std::size_t d : {3u, 11u, 16u, 21u})
            for (bool matrix : {false, true}) {
              if (matrix && (task == Task::box || form != Form::ellipsoid || d <= 8)) continue;
              const bool alone = d <= 8 && !columns;  // of which arrangements ask alone
              if (alone && a) continue;
              const bool registers = d == 11 || d == 16;  // two ways of theirs
              if (registers && !list.first[a].registers) continue;
              // A step costs a microsecond, and ten on some virtual machines.
              const bool first = task == Task::ball && form == Form::ellipsoid;
              const bool unscaled = task == Task::ball && columns;  // of which others are not
              if (only < 0 && !first && !unscaled && !registers && a != (alone ? 0 : keeps))
                continue;
              rows_of<float>(kernels, list.first[a], task, form, d, columns, matrix);
              rows_of<double>(kernels, list.first[a], task, form, d, columns, matrix);
            }
  }
}

// Columns of truth values, integers and floats, of which some are left out where a box fills them, with rows
// beyond the last vector.
void table_of(const Kernels& kernels, const Arrangement& arrangement, std::size_t d, bool box) {
  constexpr Dtype types[] = {Dtype::boolean, Dtype::bits,    Dtype::int64, Dtype::float64,
                             Dtype::uint8,   Dtype::float32, Dtype::int16};
  std::vector<double> memory[2];
  double* numbers[2];
  std::vector<const void*> columns[2];
  std::vector<Dtype> type;
  std::vector<Validity> valid[2];
  for (int k : {0, 1}) {
    numbers[k] = aligned(memory[k], row_count * d + 8);
    for (std::size_t j = 0; j < d; ++j) {
      auto* at = reinterpret_cast<unsigned char*>(numbers[k] + row_count * j);
      const Dtype its = types[j % (sizeof types / sizeof *types)];
      for (std::size_t i = 0; i < row_count; ++i) {
        const float single = k ? -900 : 1;
        const double number = single;
        if (its == Dtype::float32) std::memcpy(at + 4 * i, &single, 4);
        else if (its == Dtype::float64) std::memcpy(at + 8 * i, &number, 8);
        else std::memset(at + 8 * i, k ? 0x2a : 0, 8);
      }
      columns[k].push_back(at);
      valid[k].push_back({reinterpret_cast<const std::uint8_t*>(k ? "\x5a\x01" : "\xff\xff"), 0});
      if (!k) type.push_back(its);
    }
  }
  const std::vector<double> center(d, 0.1), scale(d, 0x1p22), lower(d, -2.0), upper(d, 3.0);
  Region given{};
  given.task = Task::ball, given.d = d, given.center = center.data(), given.scale = scale.data();
  given.radius = 0x1p23;
  if (box) given.lower = lower.data(), given.upper = upper.data();
  const Region region = as_passed(given, d);
  const auto batch = [&](int k) {
    return Batch{nullptr,
                 Dtype::float64,
                 row_count,
                 d,
                 8,
                 0,
                 columns[k].data(),
                 0,
                 box ? valid[k].data() : nullptr,
                 type.data(),
                 true};
  };
  std::vector<double> scratch;
  double* const used = aligned(scratch, compiled_once::clip_plan(batch(0), region).doubles);
  std::vector<std::int64_t> partial(compiled_once::sums_of(region) + d + 8);
  compare(box ? "a clip of a table in a box" : "a clip of a table",
          std::string(kernels.name) + ":" + arrangement.name, 0, d,
          [&](int k) { kernels.clip_sum(batch(k), region, arrangement, used, partial.data()); });
}

void all_tables(const Kernels& kernels) {
  const ArrangementList list = column_arrangements(kernels);
  for (std::size_t a = 0; a < list.count; ++a)
    for (std::size_t d : {3u, 11u, 21u})
      for (bool box : {false, true}) table_of(kernels, list.first[a], d, box);
}

// Rows that are made as they are read: integers, truth values, numbers that are apart; and a box that cells are
// moved into, those of floats on the way, of which some are holes.
void made_rows_of(const Kernels& kernels, const Arrangement& arrangement, Task task, Dtype type,
                  std::size_t d, std::size_t apart, bool box) {
  std::vector<double> memory[2];
  double* numbers[2];
  for (int k : {0, 1}) {
    numbers[k] = aligned(memory[k], row_count * d * apart);
    for (std::size_t i = 0; i < row_count * d * apart; ++i) {
      char* at = reinterpret_cast<char*>(numbers[k]) + i * size_of(type);
      const double number = box && k && i % 5 == 0 ? double(INFINITY) : k ? -900.0 : 1.0;
      const auto single = float(number);
      if (type == Dtype::float32) std::memcpy(at, &single, sizeof single);
      else if (type == Dtype::float64) std::memcpy(at, &number, sizeof number);
      else std::memset(at, k ? int(i % 3) * 0x2a : 0, size_of(type));
    }
  }
  const std::vector<double> center(d, 0.1), scale(d, 0x1p22), lower(d, -2.0), upper(d, 3.0);
  std::vector<double> ends;
  for (std::size_t i = 0; i < 8 * d + 8; ++i) ends.push_back(i % d ? -2.0 : -1.0);
  const CellBox lines{ends.data(), ends.data(), ends.data(), d < 16 ? 8u : 1u};
  const std::vector<double> edges{0x1p21, 0x1p23, 0x1p25};
  Region given{};
  given.limit = task == Task::box ? scale.data() : nullptr;
  given.edges = edges.data(), given.bins = edges.size();
  given.task = task, given.d = d, given.center = center.data(), given.scale = scale.data();
  given.radius = 0x1p23;
  Region region = as_passed(given, d);
  if (box) region.lower = lower.data(), region.upper = upper.data(), region.box = &lines;
  const std::ptrdiff_t step = std::ptrdiff_t(apart * size_of(type));
  const auto batch = [&](int k) {
    return Batch{numbers[k], type, row_count, d, step * std::ptrdiff_t(d), step};
  };
  std::vector<double> scratch;
  double* const used = aligned(scratch, compiled_once::clip_plan(batch(0), region).doubles);
  std::vector<std::int64_t> partial(compiled_once::sums_of(region) + d + 8);
  compare(box ? "a clip of rows in a box" : "a clip of rows that are made",
          std::string(kernels.name) + ":" + arrangement.name + (apart > 1 ? ", apart" : ""),
          int(type) + 100 * int(task), d,
          [&](int k) { kernels.clip_sum(batch(k), region, arrangement, used, partial.data()); });
}

void all_made_rows(const Kernels& kernels) {
  const Arrangement& arrangement = row_arrangements(kernels).first[0];
  for (Dtype type :
       {Dtype::float32, Dtype::float64, Dtype::int8, Dtype::int16, Dtype::int32, Dtype::int64,
        Dtype::uint8, Dtype::uint16, Dtype::uint32, Dtype::uint64, Dtype::boolean})
    for (std::size_t d : {3u, 11u, 21u})
      for (std::size_t apart : {1u, 2u})
        for (bool box : {false, true}) {
          if (is_floating(type) && apart == 1 && !box) continue;  // are read where they lie
          made_rows_of(kernels, arrangement, Task::ball, type, d, apart, box);
        }
  const ArrangementList all = row_arrangements(kernels);  // other tasks, also in registers
  for (std::size_t a = 0; a < all.count; ++a)
    for (Task task : {Task::ball, Task::box, Task::halves, Task::distances})
      for (std::size_t d : {11u, 16u})
        if (all.first[a].registers || a == 0)
          made_rows_of(kernels, all.first[a], task, Dtype::int64, d, 1, task == Task::distances);
  for (std::size_t a = 0; a < all.count; ++a)
    for (Task task : {Task::ball, Task::halves, Task::distances})
      for (std::size_t d : {3u, 11u, 21u})
        for (Dtype type : {Dtype::float32, Dtype::float64})
          // How the memory is asked makes no other way of them, nor whether rows are kept.
          if (a == 0 || (d > 8 && all.first[a].fetch == Fetch::near && !all.first[a].keeps))
            made_rows_of(kernels, all.first[a], task, type, d, 1, true);
}

void noise(const Kernels& kernels) {
  constexpr std::size_t n = 515;
  std::vector<std::uint32_t> keys[2], ambiguous(n);
  std::vector<std::uint64_t> words[2], stream(n + 8);
  std::vector<std::int64_t> out(n);
  for (std::uint32_t k : {0u, 1u}) {
    keys[k].assign(8, 0x9e3779b9 + k);
    words[k].resize(n + 8);
    kernels.keystream(keys[k].data(), 0, 7, words[k].data(), words[k].size() / 8);
  }
  const double sigma = 0x1p20;
  compare("a key stream", kernels.name, 0, n,
          [&](int k) { kernels.keystream(keys[k].data(), 0, 0, stream.data(), n / 8); });
  compare("noise", kernels.name, 0, n, [&](int k) {
    kernels.rounded_gaussian(words[k].data(), n, &sigma, 0, out.data(), ambiguous.data());
  });
  compare("noise and its key stream", kernels.name, 0, n, [&](int k) {
    kernels.gaussian_stream(keys[k].data(), 0, n, &sigma, 0, stream.data(), out.data(),
                            ambiguous.data());
  });
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) only = arguments[1][0] - '0';
#if ELLIPSUM_STEPS
  prepare();
#else
  if (only < 0) return std::puts("say 0 or 1, under an emulator"), 1;
#endif
  const KernelTable targets = kernel_table();
  int compared_rows = 0;
  for (std::size_t t = 0; t < targets.count; ++t) {
    if (!targets.first[t].supported()) continue;
    all_tables(targets.first[t]);
    all_made_rows(targets.first[t]);
    if (only < 0 && compared_rows++) continue;  // Valgrind knows the others
    all_rows(targets.first[t]);
    noise(targets.first[t]);
  }
  if (only < 0 && compared < least_calls) return std::puts("nothing was compared"), 1;
  std::puts(failures ? "numbers can be told by the way that they take" : "one way for all numbers");
  return failures != 0;
}
