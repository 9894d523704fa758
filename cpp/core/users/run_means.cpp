#include "users/run_means.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "error.hpp"

// The sum is exact, so that it depends on no order, and it is rounded once: the row of a run is a
// function of the multiset of its rows (Guarantees: claim users-1).
namespace ellipsum {
namespace {

constexpr std::int64_t limb_mask = 0xffffffff;
constexpr std::size_t kernel_rows = std::size_t{1} << 24;  // fewer than that: run_mean
constexpr int fraction_bits = 52, exponent_mask = 0x7ff;
// Indices of the state behind its limbs.
// `bottom` counts limbs from the top, so that a state of zeros is empty.
constexpr std::size_t bottom = sum_limbs, highest = sum_limbs + 1, count = sum_limbs + 2,
                      last = sum_limbs + 3;

std::int64_t lowest(const std::int64_t* s) { return std::int64_t(sum_limbs) - s[bottom]; }

// Adds m 2^position (units of 2^-1074) in three limbs: below 2^32, 2^33 and 2^21 in size, so
// that run_limit of them fit 63 bits.
void add(std::int64_t* s, double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const int exponent = int(bits >> fraction_bits) & exponent_mask;
  if (exponent == exponent_mask || s[count] >= run_limit) {
    s[count] += exponent != exponent_mask;
    return;
  }
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << fraction_bits) - 1);
  const std::uint64_t m = fraction | (exponent ? std::uint64_t{1} << fraction_bits : 0);
  const int position = exponent ? exponent - 1 : 0, limb = position >> 5, shift = position & 31;
  const std::int64_t low = std::int64_t((m & limb_mask) << shift);
  const std::int64_t high = std::int64_t((m >> 32) << shift);
  const std::int64_t sign = bits >> 63 ? -1 : 1;
  s[limb] += sign * (low & limb_mask);
  s[limb + 1] += sign * (((low >> 32) & limb_mask) + (high & limb_mask));
  s[limb + 2] += sign * (high >> 32);
  if (limb < lowest(s)) s[bottom] = std::int64_t(sum_limbs) - limb;
  if (limb + 5 > s[highest]) s[highest] = limb + 5;  // two of carries
  ++s[count];
  std::memcpy(&s[last], &bits, sizeof bits);
}

// Limbs to 0..2^32 - 1 each, of the magnitude; was the sum negative?
bool normalise(std::int64_t* s) {
  std::int64_t carry = 0;
  for (std::int64_t i = lowest(s); i < s[highest]; ++i) {
    const std::int64_t v = s[i] + carry;
    carry = v >> 32;
    s[i] = v & limb_mask;
  }
  if (carry == 0) return false;
  std::int64_t borrow = 1;  // two's complement
  for (std::int64_t i = lowest(s); i < s[highest]; ++i) {
    const std::int64_t v = (~s[i] & limb_mask) + borrow;
    borrow = v >> 32;
    s[i] = v & limb_mask;
  }
  return true;
}

// Limbs to those of the quotient by k; the remainder. Limbs that decide no more than whether
// anything is left are not written: of the first 54 bits the last is two limbs below the first.
std::int64_t divide_by(std::int64_t* s, std::int64_t k) {
  std::uint64_t rest = 0;
  std::int64_t top = -1;
  for (std::int64_t i = s[highest] - 1; i >= 0; --i) {
    if (i < lowest(s) && (rest == 0 || i < top - 2)) break;
    const std::uint64_t v = rest << 32 | std::uint64_t(s[i]);
    s[i] = std::int64_t(v / std::uint64_t(k));
    rest = v % std::uint64_t(k);
    if (top < 0 && s[i] != 0) top = i;
  }
  return std::int64_t(rest);
}

// 53 bits from bit `at` on.
std::int64_t bits_from(const std::int64_t* s, std::int64_t at) {
  const std::uint64_t low = std::uint64_t(s[at >> 5]), middle = std::uint64_t(s[(at >> 5) + 1]),
                      high = std::uint64_t(s[(at >> 5) + 2]);
  const int shift = int(at & 31);
  const std::uint64_t all =
      low >> shift | middle << (32 - shift) | (shift ? high << (64 - shift) : 0);
  return std::int64_t(all & ((std::uint64_t{1} << (fraction_bits + 1)) - 1));
}

// The nearest double to (limbs + rest / k) 2^-1074, ties to even.
double nearest(const std::int64_t* s, std::int64_t rest, std::int64_t k) {
  std::int64_t top = s[highest] - 1;
  while (top >= 0 && s[top] == 0) --top;
  if (top < 0) return 2 * rest > k ? std::numeric_limits<double>::denorm_min() : 0.0;
  const std::int64_t length = 32 * top + 64 - __builtin_clzll(std::uint64_t(s[top]));
  if (length <= fraction_bits + 1) {
    std::int64_t m = s[1] << 32 | s[0];
    m += 2 * rest > k || (2 * rest == k && m & 1);
    return std::ldexp(double(m), -1074);
  }
  const std::int64_t shift = length - (fraction_bits + 1);
  const std::int64_t next = shift - 1, limb = next >> 5, bit = std::int64_t{1} << (next & 31);
  bool below = rest != 0 || (s[limb] & (bit - 1)) != 0;
  for (std::int64_t i = 0; i < limb && !below; ++i) below = s[i] != 0;
  std::int64_t m = bits_from(s, shift);
  m += (s[limb] & bit) != 0 && (below || m & 1);
  const double value = std::ldexp(double(m), int(shift) - 1074);
  return value <= std::numeric_limits<double>::max() ? value : std::numeric_limits<double>::max();
}

double finish(std::int64_t* s, bool divide) {
  const std::int64_t k = s[count];
  double value = std::nan("");
  if (k == 1) {
    std::memcpy(&value, &s[last], sizeof value);
  } else if (k > 1 && k <= run_limit) {
    const bool negative = normalise(s);
    const std::int64_t divisor = divide ? k : 1;
    value = nearest(s, divide_by(s, divisor), divisor);
    if (negative) value = -value;
  }
  // A quotient may reach below the sum's own limbs.
  const std::int64_t from = k == 1 ? lowest(s) : 0;
  if (s[highest] > from) std::memset(s + from, 0, std::size_t(s[highest] - from) * sizeof *s);
  s[bottom] = s[highest] = s[count] = s[last] = 0;
  return value;
}

bool is_empty(const std::int64_t* state, std::size_t d) {
  for (std::size_t j = 0; j < d; ++j)
    if (state[j * state_words + count] != 0) return false;
  return true;
}

template <class T> double number_at(const char* row, const Batch& batch, std::size_t j) {
  T x;
  std::memcpy(&x, row + std::ptrdiff_t(j) * batch.column_stride, sizeof x);
  return double(x);
}

Batch rows_between(const Batch& batch, std::size_t first, std::size_t end) {
  Batch part = batch;
  part.data = static_cast<const char*>(batch.data) + std::ptrdiff_t(first) * batch.row_stride;
  part.n = end - first;
  return part;
}

// Whole runs by a kernel, and what it is not sure of, or is open, by exact sums.
template <class T>
void run(const Kernels& kernels, const Batch& batch, const std::int64_t* ends, std::size_t runs,
         std::int64_t* state, double* out, bool divide) {
  std::vector<std::uint32_t> unsure(batch.d + 1);
  const bool contiguous = batch.d == 1 || batch.column_stride == std::ptrdiff_t(sizeof(T));
  const auto add_rows = [&](const Batch& rows, std::size_t j) {
    const char* row = static_cast<const char*>(rows.data);
    for (std::size_t i = 0; i < rows.n; ++i, row += rows.row_stride)
      add(state + j * state_words, number_at<T>(row, rows, j));
  };
  bool empty = is_empty(state, batch.d);
  for (std::size_t r = 0, i = 0; r <= runs; ++r, empty = true) {
    const Batch rows = rows_between(batch, i, r < runs ? std::size_t(ends[r]) : batch.n);
    double* to = out + r * batch.d;
    i += rows.n;
    if (r < runs && empty && contiguous && rows.n < kernel_rows) {
      const std::size_t left = kernels.run_mean(rows, divide, to, unsure.data());
      for (std::size_t k = 0; k < left; ++k) {
        add_rows(rows, unsure[k]);
        to[unsure[k]] = finish(state + unsure[k] * state_words, divide);
      }
      continue;
    }
    for (std::size_t j = 0; j < batch.d; ++j) {
      add_rows(rows, j);
      if (r < runs) to[j] = finish(state + j * state_words, divide);
    }
  }
}

}  // namespace

void run_means(const Kernels& kernels, const Batch& batch, const std::int64_t* ends,
               std::size_t runs, std::int64_t* state, double* out, bool divide) {
  std::int64_t before = 0;
  for (std::size_t r = 0; r < runs; ++r) {
    if (ends[r] < before || ends[r] > std::int64_t(batch.n))
      throw Exception(Error::invalid_argument, "internal: ends");
    before = ends[r];
  }
  if (batch.dtype == Dtype::float32) run<float>(kernels, batch, ends, runs, state, out, divide);
  else run<double>(kernels, batch, ends, runs, state, out, divide);
}

}  // namespace ellipsum
