// The mean or sum of a run of rows from two doubles a coordinate, compiled once per target: the value
// that exact sums give (run_means.cpp), where two doubles can tell, and else the coordinate's index.
// Cost per 8 numbers: 13 vector operations and 1 load.
#include <cmath>
#include <cstring>
#include <limits>

#include "batch.hpp"
#include "simd/eight.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {

using namespace simd;

// The sum is s + e, but for what e's own additions round: at most `size` n 2^-53 for n of them.
struct TwoSums {
  Vec s, e, size, count;
};

static inline Mask below(const Doubles& a, double b) { return Mask(a < broadcast(b)); }

// Knuth's sum of two: a + b = sum + error, exactly, unless it overflows.
static inline Doubles error_of(const Doubles& a, const Doubles& b, const Doubles& sum) {
  const Doubles own = sum - a;
  return (a - (sum - own)) + (b - own);
}

// -0 in the place of what is not finite, which changes no sum, nor the sign of a lone -0.
static ELLIPSUM_INLINE void add_numbers(TwoSums& to, const Vec& x) {
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    // NOLINTNEXTLINE(misc-redundant-expression): not 0 for what is not finite
    const Mask finite = Mask(x.part[p] - x.part[p] == Doubles{});
    const Doubles number = select(finite, x.part[p], broadcast(-0.0));
    const Doubles sum = to.s.part[p] + number;
    const Doubles error = error_of(to.s.part[p], number, sum);
    to.s.part[p] = sum;
    to.e.part[p] = to.e.part[p] + error;
    to.size.part[p] = to.size.part[p] + magnitude(error);
    to.count.part[p] = to.count.part[p] + Doubles(finite & Mask(broadcast(1.0)));
  }
}

// a - q k where q is the double nearest to a / k and k < 2^24: exact (q k in two products of 53 bits).
static inline Doubles rest_of(const Doubles& a, const Doubles& q, const Doubles& k) {
  const Doubles shifted = q * broadcast(0x1.000001p24);  // Veltkamp: 29 bits and 24
  const Doubles upper = shifted - (shifted - q), lower = q - upper;
  return (a - upper * k) - lower * k;
}

// Where the bounds of `nearest` hold.
static inline Mask is_ordinary(const Doubles& a) {
  const Doubles absolute = magnitude(a);
  return below(absolute, 0x1p1000) & ~below(absolute, 0x1p-900);
}

// The nearest double to the exact sum over k, and whether that is sure. With q the quotient of the
// leading double, the rest of the division is exact, and what q lacks has two roundings beside e's, at
// most `rounded` 2^-53 over k: are both ends of that, and of four times as much, nearest to one double?
static inline Doubles nearest(const Doubles& s, const Doubles& e, const Doubles& rounded,
                              const Doubles& k, Mask& sure) {
  const Doubles high = s + e, low = error_of(s, e, high), q = high / k;
  const Doubles lacks = (rest_of(high, q, k) + low) / k;
  const Doubles slack = magnitude(lacks) * broadcast(0x1p-50) + rounded / k * broadcast(0x1p-51) +
                        broadcast(0x1p-1000);
  const Doubles from = q + (lacks - slack), to = q + (lacks + slack);
  const Mask zero = Mask(high == Doubles{}) & Mask(rounded == Doubles{});
  sure = (is_ordinary(high) & Mask(from == to)) | zero;
  return select(zero, Doubles{}, from);
}

// The same where s + e is the sum, and what is left of it beside q k a double: then a quotient and one
// sum are all that is rounded, and no quotient by such a k rounds to a power of two, as half of q's last
// place is, but that one. So the middle of two doubles, where the mean of two rows lies half of the
// time, is told. All numbers, and errors, are multiples of one power of two, of which `least`, the least
// that is not 0, has fewer than 2^53: while the errors' sizes add to less than that, e is exact.
static inline Doubles of_exact(const Doubles& s, const Doubles& e, const Doubles& size,
                               const Doubles& least, const Doubles& k, Mask& sure) {
  const Doubles high = s + e, low = error_of(s, e, high), q = high / k;
  const Doubles rest = rest_of(high, q, k), left = rest + low;
  sure = is_ordinary(high) & Mask(size < least) & Mask(error_of(rest, low, left) == Doubles{}) &
         ~below(magnitude(left), 0x1p-950);
  return q + left / k;
}

}  // namespace

// One row is its own mean: a user who has no more is common.
template <class T> static std::size_t copy_row(const Batch& rows, double* out) {
  const char* at = static_cast<const char*>(rows.data);
  for (std::size_t j = 0; j < rows.d; ++j, at += sizeof(T)) {
    T x;
    std::memcpy(&x, at, sizeof x);
    out[j] = std::isfinite(x) ? double(x) : std::nan("");
  }
  return 0;
}

// Eight numbers of each row, or the first `left`.
template <class T, class Add>
static ELLIPSUM_INLINE void walk(const Batch& rows, std::size_t j, std::size_t left, Add add) {
  const char* at = static_cast<const char*>(rows.data) + j * sizeof(T);
  if (left >= vec_lanes) {
    for (std::size_t i = 0; i < rows.n; ++i, at += rows.row_stride) add(load<T>(at));
  } else {
    for (std::size_t i = 0; i < rows.n; ++i, at += rows.row_stride) add(load_first<T>(at, left));
  }
}

// The least size of a number that is not 0, infinite where there is none.
template <class T> static Vec least_of(const Batch& rows, std::size_t j, std::size_t left) {
  Vec least = fill(std::numeric_limits<double>::infinity());
  walk<T>(rows, j, left, [&](const Vec& x) {
    ELLIPSUM_UNROLL
    for (int p = 0; p < vec_parts; ++p) {
      const Doubles size = magnitude(x.part[p]);
      const Mask less = Mask(size < least.part[p]) & Mask(size > Doubles{});
      least.part[p] = select(less, size, least.part[p]);
    }
  });
  return least;
}

// out[j] <- the mean (`divide`) or sum of the finite numbers of coordinate j of fewer than 2^24 rows,
// rounded once; NaN where there is none. Returns of how many coordinates it is not known: `unsure`.
template <class T>
static std::size_t mean_of(const Batch& rows, bool divide, double* out, std::uint32_t* unsure) {
  if (rows.n == 1) return copy_row<T>(rows, out);
  std::size_t count = 0;
  for (std::size_t j = 0; j < rows.d; j += vec_lanes) {
    const std::size_t left = rows.d - j;
    TwoSums sums{fill(-0.0), fill(0.0), fill(0.0), fill(0.0)};
    walk<T>(rows, j, left, [&](const Vec& x) { add_numbers(sums, x); });
    Vec values, divisors;
    VecInt certain;
    bool all = true;
    ELLIPSUM_UNROLL
    for (int p = 0; p < vec_parts; ++p) {
      const Doubles k = sums.count.part[p], one = broadcast(1.0);
      const Mask few = Mask(k <= one), none = Mask(k == Doubles{});
      const Doubles divisor = divide ? select(few, one, k) : one;
      Mask sure;
      Doubles value = nearest(sums.s.part[p], sums.e.part[p], sums.size.part[p] * k, divisor, sure);
      value = select(few, sums.s.part[p], value);  // of one number it is that
      values.part[p] = select(none, broadcast(std::nan("")), value);
      divisors.part[p] = divisor;
      certain.part[p] = sure | few;
      all = all && !nonzero(Ints(~certain.part[p]));
    }
    if (!all) {
      const Vec least = least_of<T>(rows, j, left);
      ELLIPSUM_UNROLL
      for (int p = 0; p < vec_parts; ++p) {
        Mask sure;
        const Doubles value = of_exact(sums.s.part[p], sums.e.part[p], sums.size.part[p],
                                       least.part[p], divisors.part[p], sure);
        values.part[p] = select(certain.part[p], values.part[p], value);
        certain.part[p] |= sure;
      }
    }
    double numbers[vec_lanes];
    std::int64_t known[vec_lanes];
    std::memcpy(numbers, &values, sizeof numbers);
    std::memcpy(known, &certain, sizeof known);
    for (std::size_t l = 0; l < vec_lanes && l < left; ++l) {
      out[j + l] = numbers[l];
      unsure[count] = std::uint32_t(j + l);
      count += known[l] == 0;
    }
  }
  return count;
}

std::size_t run_mean(const Batch& rows, bool divide, double* out, std::uint32_t* unsure) {
  const UpperHalvesCleared at_the_end;
  return rows.dtype == Dtype::float32 ? mean_of<float>(rows, divide, out, unsure)
                                      : mean_of<double>(rows, divide, out, unsure);
}

}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
