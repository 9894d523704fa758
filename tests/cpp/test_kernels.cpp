// The kernels of every target against the scalar model, for the sanitizers and for a machine
// without Python. No framework: a failed check prints its case, and the exit code says so.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "clip/clip.hpp"
#include "clip_model.hpp"
#include "clip/clip_sum.hpp"
#include "error.hpp"
#include "ways.hpp"

using namespace ellipsum;

namespace {

#ifndef __has_feature
#define __has_feature(name) 0
#endif
// Under a sanitizer or an emulator.
constexpr bool slowly_checked =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ELLIPSUM_EMULATED) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    true;
#else
    false;
#endif

int failures = 0;

void check(bool ok, const char* what, const char* target, std::size_t n, std::size_t d) {
  if (ok) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s (target %s, n = %zu, d = %zu)\n", what, target, n, d);
}

// Are upper halves of vector registers in use (XGETBV with 1)? Then SSE instructions of whoever comes next
// may be slow. False where the machine does not tell.
bool upper_halves_in_use() {
#if defined(__x86_64__)
  static const bool told = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    return __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && (a & 4) != 0;
  }();
  if (!told) return false;
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & (1u << 2 | 1u << 6)) != 0;
#else
  return false;
#endif
}

// Uniform in [-1, 1), the same everywhere.
double next_number() {
  static std::uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return double(std::int64_t(state) >> 11) * 0x1p-52;
}

struct Kind {
  Task task;
  bool matrix;
  std::size_t rank = 0;  // at most, beside the scale
  Form form = Form::ellipsoid;
};
constexpr Kind kinds[] = {{Task::ball, false},
                          {Task::box, false},
                          {Task::ball, true},
                          {Task::halves, false},
                          {Task::halves, true},
                          {Task::distances, false},
                          {Task::distances, true},
                          {Task::ball, false, 5},
                          {Task::halves, false, 20},
                          {Task::distances, false, 3},
                          {Task::ball, false, 0, Form::ball},
                          {Task::halves, false, 0, Form::ball},
                          {Task::box, false, 0, Form::ball},
                          {Task::box, false, 0, Form::ball_at_zero},
                          {Task::distances, false, 0, Form::ball},
                          {Task::ball, false, 0, Form::ball_at_zero},
                          {Task::halves, false, 0, Form::ball_at_zero},
                          {Task::distances, false, 0, Form::ball_at_zero}};

// A region and the arrays that it points into.
struct Case {
  std::vector<double> center, scale, limit, matrix, edges, factors;
  Region region{};
  Case(Kind kind, std::size_t d) : center(d), scale(d), limit(d), edges(23) {
    for (double& c : center) c = next_number();
    for (double& s : scale) s = 0x1p23 * (1.1 + next_number()) / std::sqrt(double(d));
    for (double& l : limit) l = 0x1p22 * (1.1 + next_number());
    if (kind.matrix) matrix.resize(d * d);
    for (double& b : matrix) b = float(0x1p23 * next_number() / double(d));
    for (std::size_t k = 0; k < edges.size(); ++k) edges[k] = std::ldexp(0x1p23, int(k) - 12);
    for (std::size_t j = 0; j < d && kind.form != Form::ellipsoid; ++j) {
      if (kind.form == Form::ball_at_zero) center[j] = 0;
      scale[j] = kind.task == Task::ball || kind.task == Task::halves ? 0x1p21 : scale[0];
      limit[j] = limit[0];
    }
    region.task = kind.task;
    region.d = d;
    region.center = center.data();
    (kind.matrix ? region.matrix : region.scale) = kind.matrix ? matrix.data() : scale.data();
    region.limit = kind.task == Task::box ? limit.data() : nullptr;
    region.radius = kind.task == Task::box ? NAN : 0x1p23 + 0.5;
    region.edges = edges.data();
    region.bins = edges.size();
    region.stretch = d % 2;
    region.rank = kind.rank < d ? kind.rank : d;
    if (!region.rank) return;
    factors.resize(2 * d * region.rank);
    for (double& s : scale) s = float(s);
    for (double& v : factors) v = float(next_number());
    for (std::size_t k = 0; k < d * region.rank; ++k) factors[k] *= 0x1p22;
    region.factors = factors.data();
  }
};

// Contiguous rows in exactly the memory they need, so that reading beyond it is seen.
template <class T> struct Rows {
  std::vector<T> data;
  Batch batch;
  Rows(std::size_t n, std::size_t d) : data(n * d) {
    for (std::size_t i = 0; i < n; ++i) {
      const double size = std::ldexp(1 + next_number(), int(4 * next_number()));
      for (std::size_t j = 0; j < d; ++j) data[i * d + j] = T(size * next_number());
    }
    const double odd[] = {std::numeric_limits<double>::quiet_NaN(),
                          std::numeric_limits<double>::infinity(),
                          -0.0,
                          1e30,
                          1e-38,
                          1e-45};
    for (std::size_t i = 0; i < 6 && 3 * i < n; ++i) data[3 * i * d + i * d / 7] = T(odd[i]);
    for (std::size_t k = 5; k < n * d; k += 11) data[k] = T(odd[k % 2]);  // holes
    batch = {data.data(),
             sizeof(T) == 4 ? Dtype::float32 : Dtype::float64,
             n,
             d,
             std::ptrdiff_t(d * sizeof(T)),
             sizeof(T)};
  }
};

Sums run(const Choice& kernels, const Batch& batch, const Region& region, int threads) {
  const std::size_t entries = compiled_once::sums_of(region);
  Sums sums;
  sums.partial.resize(entries);
  sums.absent.resize(region.d);
  const ClipCounts counts =
      clip_sum(kernels, batch, region, sums.partial.data(), threads, sums.absent.data());
  check(!upper_halves_in_use(), "registers left clean", kernels.name().c_str(), batch.n, batch.d);
  sums.clipped = counts.clipped, sums.nonfinite = counts.nonfinite;
  return sums;
}

// A variant. Products with a matrix or factors are clipped one way for each number of rows in flight, or in
// registers, and all ways to read columns are one there: the first variant of each stands for all. Threads
// share out rows alike in all of these; what a block of columns keeps is its own.
struct Tested {
  Choice kernels;
  bool of_products, of_columns;
  Tested(const std::string& name, bool products)
      : kernels(name), of_products(products), of_columns(name.find(":columns") != name.npos) {}
};

// Where a check takes long: variants that differ in what they ask the memory for, once.
std::deque<Tested> tested_variants() {
  std::deque<Tested> all;
  std::set<std::string> of_products, ways;
  for (const std::string& name : variant_names()) {
    const bool registers = name.find("registers") != std::string::npos;
    const std::string products = name.substr(0, name.find('-')) + (registers ? "r" : "");
    if (!ways.insert(way_of(name)).second && slowly_checked) continue;
    all.emplace_back(name, of_products.insert(products).second);
  }
  return all;
}

// The same rows in columns, and backwards.
template <class T> struct OtherStrides {
  std::vector<T> turned;
  Batch columns, backwards;
  explicit OtherStrides(const Rows<T>& rows)
      : turned(rows.data.size()), columns(rows.batch), backwards(rows.batch) {
    const std::size_t n = rows.batch.n, d = rows.batch.d;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < d; ++j) turned[j * n + i] = rows.data[i * d + j];
    columns.data = turned.data();
    columns.row_stride = sizeof(T);
    columns.column_stride = std::ptrdiff_t(n * sizeof(T));
    backwards.data = rows.data.data() + (n - 1) * d;
    backwards.row_stride = -rows.batch.row_stride;
  }
};

template <class T>
void test_model(const std::deque<Tested>& variants, Kind kind, std::size_t n, std::size_t d) {
  const Case c(kind, d);
  const Rows<T> rows(n, d);
  const OtherStrides<T> other(rows);
  const Sums wanted = clip_model(rows.batch, c.region);
  for (const Tested& each : variants) {
    const auto agrees = [&](const Batch& batch, int threads, const char* what) {
      check(run(each.kernels, batch, c.region, threads) == wanted, what,
            each.kernels.name().c_str(), n, d);
    };
    if (!each.of_products && (kind.matrix || kind.rank)) continue;
    agrees(rows.batch, 1, "model");
    if (each.of_products) agrees(rows.batch, 3, "three threads");
    agrees(other.columns, each.of_products || each.of_columns ? 2 : 1, "Fortran order");
    agrees(other.backwards, 1, "rows backwards");
  }
}

// Rows out of the model's range: the targets agree, and the row lies on the sphere.
void test_huge_rows(const Choice& kernels, const Choice& other) {
  for (Kind kind : kinds) {
    if (kind.task == Task::box || kind.task == Task::distances) continue;
    for (std::size_t d : {2u, 8u, 9u, 40u}) {
      const Case c(kind, d);
      Rows<double> rows(1, d);
      for (double& x : rows.data) x = 1e307 * next_number();
      const Sums got = run(kernels, rows.batch, c.region, 1);
      check(got == run(other, rows.batch, c.region, 1), "huge rows", kernels.name().c_str(), 1, d);
      double norm2 = 0;
      for (std::int64_t q : got.partial) norm2 += double(q) * double(q);
      check(std::fabs(std::sqrt(norm2) - c.region.radius) < std::sqrt(double(d)), "on the sphere",
            kernels.name().c_str(), 1, d);
    }
  }
}

constexpr std::size_t widths[] = {1, 2, 3, 5, 8, 9, 16, 17, 63, 128, 130, 257, 300},
                      row_counts[] = {1, 8, 37};
// Where it takes twenty times as long: of each kind of loop and of panel one.
bool left_out(std::size_t n, std::size_t d) {
  return slowly_checked && (n == 8 || d == 16 || d == 128 || d == 300);
}

void test_targets() {
  const Choice baseline("baseline");
  const std::deque<Tested> variants = tested_variants();
  for (Kind kind : kinds)
    for (std::size_t d : widths)
      for (std::size_t n : row_counts) {
        if (left_out(n, d)) continue;
        test_model<float>(variants, kind, n, d);
        test_model<double>(variants, kind, n, d);
      }
  test_model<float>(variants, kinds[0], 5, 40000);
  test_model<float>(variants, {Task::halves, false}, 5, 40000);
  for (const Tested& each : variants) test_huge_rows(each.kernels, baseline);
}

// Scratch of a pass, on a cache line.
struct Scratch {
  static constexpr std::size_t line = 64;  // bytes
  std::vector<double> memory;
  double* at;
  Scratch(const Batch& batch, const Region& region)
      : memory(compiled_once::clip_plan(batch, region).doubles + line / sizeof(double)),
        at(memory.data()) {
    while (reinterpret_cast<std::uintptr_t>(at) % line) ++at;
  }
};

// Stretches of which many rows have holes, by other kernels than the rest: the same sums, and each row
// once. `holed` says which rows have some.
template <class T, class Holed> void test_leaving(Kind kind, std::size_t d, const Holed& holed) {
  const Case c(kind, d);
  const std::size_t n = 2000;
  Rows<T> rows(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) {
      T& x = rows.data[i * d + j];
      if (!std::isfinite(x)) x = T(0.5);
      if (j == i % d && holed(i)) x = T(std::nan(""));
    }
  const Region region = as_passed(c.region, d);
  const Choice best("");
  const Sums wanted = clip_model(rows.batch, c.region);
  const std::size_t entries = compiled_once::sums_of(region);
  const KernelTable targets = kernel_table();
  for (std::size_t t = 0; t < targets.count; ++t) {
    const Kernels& kernels = targets.first[t];
    if (!kernels.supported()) continue;
    const ArrangementList all = row_arrangements(kernels);
    for (std::size_t k = 0; k < all.count; ++k) {
      std::vector<std::int64_t> partial(entries + d + 8);
      const Scratch scratch(rows.batch, region);
      const ClipCounts seen = clip_rows({&kernels, all.first + k}, best.kernels(), rows.batch,
                                        region, scratch.at, partial.data());
      const auto end = partial.begin() + std::ptrdiff_t(entries);
      const Sums sums{
          {partial.begin(), end}, {end, end + std::ptrdiff_t(d)}, seen.clipped, seen.nonfinite};
      check(sums == wanted, "stretches with holes", all.first[k].name, n, d);
    }
  }
}

// A pass takes the rows that it should, and tells how many it leaves.
void test_taking() {
  const Case c({Task::ball, false}, 20);
  Rows<double> rows(1024, 20);
  for (std::size_t k = 0; k < rows.data.size(); ++k)
    rows.data[k] = k / 20 < 512 && k % 20 == 3 ? std::nan("") : 0.5;
  const Region region = as_passed(c.region, 20);
  const KernelTable targets = kernel_table();
  for (std::size_t t = 0; t < targets.count; ++t) {
    const Kernels& kernels = targets.first[t];
    if (!kernels.supported()) continue;
    for (Takes takes : {Takes::all, Takes::plain, Takes::holed}) {
      Arrangement arrangement = first_arrangement(kernels, rows.batch);
      arrangement.takes = takes;
      std::vector<std::int64_t> partial(20 + 28);
      const Scratch scratch(rows.batch, region);
      const std::size_t left =
          kernels.clip_sum(rows.batch, region, arrangement, scratch.at, partial.data()).left;
      const std::size_t wanted = takes == Takes::all ? 0 : takes == Takes::plain ? 768 : 256;
      check(left == wanted, "rows that are left", kernels.name, std::size_t(takes), left);
    }
  }
}

void test_limits() {
  const Case c(kinds[0], 1);
  Rows<double> rows(1, 1);
  rows.batch.n = std::size_t(clip_rows_limit) + 1;
  bool refused = false;
  try {
    run(Choice("baseline"), rows.batch, c.region, 1);
  } catch (const Exception& e) {
    refused = e.kind() == Error::invalid_argument;
  }
  check(refused, "too many rows are refused", "any", rows.batch.n, 1);
}

void test_choice() {
  check(std::string(choose_kernels("baseline").name) == "baseline", "forced", "baseline", 0, 0);
  bool refused = false;
  try {
    choose_kernels("sse9");
  } catch (const Exception& e) {
    refused = e.kind() == Error::unknown_target;
  }
  check(refused, "an unknown target is refused", "sse9", 0, 0);
}

}  // namespace

int main() {
  test_targets();
  for (std::size_t d : {17u, 40u})
    for (Kind kind : kinds) {
      if (kind.matrix || kind.rank || kind.task == Task::distances) continue;
      const auto few = [](std::size_t i) { return i < 60; };
      const auto stretches = [](std::size_t i) { return i / 300 % 2 == 1 || i > 1990; };
      const auto all = [](std::size_t) { return true; };
      test_leaving<float>(kind, d, few), test_leaving<double>(kind, d, few);
      test_leaving<float>(kind, d, stretches), test_leaving<double>(kind, d, stretches);
      test_leaving<float>(kind, d, all), test_leaving<double>(kind, d, all);
    }
  test_taking();
  test_limits();
  test_choice();
  std::printf(failures ? "%d checks failed\n" : "all kernels agree with the model\n", failures);
  return failures != 0;
}
