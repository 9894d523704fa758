// The vector functions of one target against exact values (tests/reference/simd_math.py): each
// within the ulp that math.hpp states. Built once per target; the file is the argument.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "clip/arrangement.hpp"
#include "simd/eight_rows.hpp"
#include "simd/math.hpp"

namespace simd = ellipsum::ELLIPSUM_TARGET::simd;
using simd::Doubles;

namespace {

struct Function {
  const char* name;
  double ulp;  // as stated
  Doubles (*value)(const Doubles& x, const Doubles& y);
  double worst = 0;
  int count = 0;
};

Doubles sine(const Doubles& x, const Doubles&) {
  Doubles s, c;
  simd::sine_cosine(x, s, c);
  return s;
}

Doubles cosine(const Doubles& x, const Doubles&) {
  Doubles s, c;
  simd::sine_cosine(x, s, c);
  return c;
}

// Eight rows of D numbers that are all different: a lane of the columns is one of the rows, each of them once.
template <class T, int D> bool columns_are_those_of_rows() {
  T numbers[8 * D];
  for (int k = 0; k < 8 * D; ++k) numbers[k] = T(k);
  simd::Vec column[D];
  simd::load_columns<T>(reinterpret_cast<const char*>(numbers), column);
  unsigned rows = 0;
  for (int lane = 0; lane < simd::vec_lanes; ++lane) {
    double of_row[D][simd::vec_lanes];
    for (int j = 0; j < D; ++j) simd::store(of_row[j], column[j]);
    const int row = int(of_row[0][lane]) / D;
    rows |= 1u << row;
    for (int j = 0; j < D; ++j)
      if (of_row[j][lane] != row * D + j) return false;
  }
  return rows == 0xff;
}

template <class T, int D = 1> bool columns_are_right() {
  if constexpr (D <= int(ellipsum::most_side_by_side))
    return columns_are_those_of_rows<T, D>() && columns_are_right<T, D + 1>();
  return true;
}

Function functions[] = {
    {"log_one_plus", 1.5, [](const Doubles& x, const Doubles&) { return simd::log_one_plus(x); }},
    {"exponential", 1, [](const Doubles& x, const Doubles&) { return simd::exponential(x); }},
    {"sine", 2, sine},
    {"cosine", 2, cosine},
    {"argument", 2.5, [](const Doubles& x, const Doubles& y) { return simd::argument(x, y); }},
    {"length", 2, [](const Doubles& x, const Doubles& y) { return simd::length(x, y); }},
};

// |found - (high + low)| in units of the last place of `high`.
double error_in_ulp(double found, double high, double low) {
  const double least = std::numeric_limits<double>::denorm_min();
  const double ulp = high == 0 ? least : std::ldexp(1.0, std::ilogb(high) - 52);
  return std::fabs((found - high) - low) / std::fmax(ulp, least);
}

// Every lane holds the argument in turn, beside lanes of other sizes.
double worst_lane(const Function& f, double x, double y, double high, double low) {
  double worst = 0;
  for (std::size_t lane = 0; lane < simd::lanes; ++lane) {
    double xs[simd::lanes], ys[simd::lanes], out[simd::lanes];
    for (std::size_t i = 0; i < simd::lanes; ++i) xs[i] = ys[i] = 0.25 + double(i);
    xs[lane] = x;
    ys[lane] = y;
    simd::store_doubles(out, f.value(simd::load_doubles(xs), simd::load_doubles(ys)));
    worst = std::fmax(worst, error_in_ulp(out[lane], high, low));
    if (std::isnan(out[lane])) return std::numeric_limits<double>::infinity();
  }
  return worst;
}

// What is one bit a lane, for every choice of lanes; numbers that are compared may be NaN.
bool masks_are_right() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (unsigned chosen = 0; chosen < 1u << simd::lanes; ++chosen) {
    double less[simd::lanes], one[simd::lanes], more[simd::lanes], odd[simd::lanes];
    std::uint64_t low[simd::lanes], high[simd::lanes], full[simd::lanes];
    for (std::size_t i = 0; i < simd::lanes; ++i) {
      const bool is = chosen >> i & 1;
      one[i] = 1, more[i] = is ? 2 : 1, less[i] = is ? 1 : 0, odd[i] = is ? nan : 0;
      low[i] = is ? 1 : 0, high[i] = is ? std::uint64_t{1} << 63 : 5,
      full[i] = is ? ~std::uint64_t{0} : 0;
    }
    const auto doubles = simd::load_doubles;
    const auto integers = simd::load_integers;
    if (simd::above(doubles(more), doubles(one)) != chosen) return false;
    if (simd::not_less(doubles(less), doubles(one)) != chosen) return false;
    if (simd::not_less(doubles(odd), doubles(one)) != chosen) return false;
    if (simd::above(doubles(odd), doubles(one)) != 0) return false;
    for (const std::uint64_t* each : {low, full})
      if (simd::nonzero(integers(each)) != chosen) return false;
    for (const std::uint64_t* each : {high, full})
      if (simd::signs(integers(each)) != chosen) return false;
  }
  return true;
}

}  // namespace

// Called by test_simd_main.cpp, which knows that the machine runs this target.
int test_simd(const char* path) {
  std::ifstream table(path);
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string name, text[4];
    words >> name >> text[0] >> text[1] >> text[2] >> text[3];
    double v[4];
    for (int i = 0; i < 4; ++i) v[i] = std::strtod(text[i].c_str(), nullptr);
    for (Function& f : functions) {
      if (name != f.name) continue;
      ++f.count;
      f.worst = std::fmax(f.worst, worst_lane(f, v[0], v[1], v[2], v[3]));
    }
  }
  int failures = !masks_are_right();
  if (failures) std::puts("bits of lanes: FAILED");
  if (!columns_are_right<float>() || !columns_are_right<double>()) {
    std::puts("columns of eight rows: FAILED");
    ++failures;
  }
  for (const Function& f : functions) {
    const bool ok = f.count >= 100 && f.worst <= f.ulp;
    failures += !ok;
    std::printf("%-14s %d values, worst %.3f ulp of %.1f stated%s\n", f.name, f.count, f.worst,
                f.ulp, ok ? "" : ": FAILED");
  }
  return failures != 0;
}
