// Eight doubles or eight 64-bit integers on as many registers as the target needs for them
// (registers.hpp): the lanes of the clip kernels. Internal linkage throughout: the file is compiled
// once per target. Every function is exact, or one rounding an operation.
#pragma once
#include <type_traits>

#include "simd/registers.hpp"

#if defined(__clang__)
#define ELLIPSUM_UNROLL _Pragma("unroll")
#else
#define ELLIPSUM_UNROLL _Pragma("GCC unroll 16")
#endif
// For the steps of a walk: what they carry is in registers only where they are part of it.
#define ELLIPSUM_INLINE inline __attribute__((always_inline))

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {
namespace simd {

constexpr int register_lanes = int(lanes);
constexpr int vec_lanes = 8;
constexpr int vec_parts = vec_lanes / register_lanes;

struct Vec {
  Doubles part[vec_parts];
};
struct VecInt {
  Mask part[vec_parts];
};

#define ELLIPSUM_VEC_OPERATOR(op)                                           \
  inline Vec operator op(const Vec& a, const Vec& b) {                      \
    Vec r;                                                                  \
    ELLIPSUM_UNROLL                                                         \
    for (int p = 0; p < vec_parts; ++p) r.part[p] = a.part[p] op b.part[p]; \
    return r;                                                               \
  }
ELLIPSUM_VEC_OPERATOR(+)
ELLIPSUM_VEC_OPERATOR(-)
ELLIPSUM_VEC_OPERATOR(*)
ELLIPSUM_VEC_OPERATOR(/)
#undef ELLIPSUM_VEC_OPERATOR

// a b + c, by one rounding or two: for products that are exact, and where no bit of the sum matters.
inline Vec multiply_add(const Vec& a, const Vec& b, const Vec& c) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = multiply_add(a.part[p], b.part[p], c.part[p]);
  return r;
}

inline Vec fill(double value) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = broadcast(value);
  return r;
}

// `lanes` numbers of type T, widened; p needs no alignment. (The compilers' own conversions go by halves, or one
// by one.)
template <class T> inline Doubles load_widened(const char* p) {
  constexpr bool widens =
      std::is_same_v<T, float> || (std::is_integral_v<T> && register_lanes >= 4);
  if constexpr (widens) return widen(reinterpret_cast<const T*>(p));
  typedef T Source __attribute__((vector_size(sizeof(T) * register_lanes)));
  Source x;
  std::memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Doubles);
}

// Eight numbers of type T, widened; p needs no alignment.
template <class T> inline Vec load(const void* p) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int k = 0; k < vec_parts; ++k)
    r.part[k] = load_widened<T>(static_cast<const char*>(p) + k * register_lanes * int(sizeof(T)));
  return r;
}

// The first `count` < 8 of eight, zeros after them; reads nothing beyond, and each number once.
template <class T> inline Vec load_first(const void* p, std::size_t count) {
#if defined(__AVX512F__)
  const __mmask8 mask = __mmask8((1u << count) - 1);
  if constexpr (sizeof(T) == 8) return {{_mm512_maskz_loadu_pd(mask, p)}};
  else return {{_mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, p))}};
#elif defined(__AVX2__)
  alignas(64) static const std::int64_t wide[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  alignas(64) static const std::int32_t narrow[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  Vec r;
  ELLIPSUM_UNROLL
  for (int k = 0; k < vec_parts; ++k) {
    const T* from = static_cast<const T*>(p) + 4 * k;
    const std::size_t at = 8 - count + 4 * std::size_t(k);
    if constexpr (sizeof(T) == 8)
      r.part[k] =
          _mm256_maskload_pd(from, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(wide + at)));
    else
      r.part[k] = _mm256_cvtps_pd(
          _mm_maskload_ps(from, _mm_loadu_si128(reinterpret_cast<const __m128i*>(narrow + at))));
  }
  return r;
#else
  // In powers of two: memcpy may read where two of its blocks overlap twice.
  T buffer[vec_lanes] = {};
  const char* from = static_cast<const char*>(p);
  T* to = buffer;
  if (count & 4) std::memcpy(to, from, 4 * sizeof(T)), to += 4, from += 4 * sizeof(T);
  if (count & 2) std::memcpy(to, from, 2 * sizeof(T)), to += 2, from += 2 * sizeof(T);
  if (count & 1) std::memcpy(to, from, sizeof(T));
  return load<T>(buffer);
#endif
}

// The compiler must now keep a in registers: where a number is used twice, it could as well read it
// twice. In place: what is returned by value, GCC 12 copies by pieces on AVX2.
ELLIPSUM_INLINE void hold(Vec& a) {
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) __asm__("" : ELLIPSUM_REGISTER(a.part[p]));
}

// Register by register: a copy of all 64 bytes goes by pieces that no later load of a register can
// be forwarded from (GCC 12 on AVX2).
inline void store(double* p, const Vec& a) {
  ELLIPSUM_UNROLL
  for (int k = 0; k < vec_parts; ++k)
    std::memcpy(p + k * register_lanes, &a.part[k], sizeof(Doubles));
}

inline VecInt load_ints(const std::int64_t* p) {
  VecInt r;
  ELLIPSUM_UNROLL
  for (int k = 0; k < vec_parts; ++k) std::memcpy(&r.part[k], p + k * register_lanes, sizeof(Mask));
  return r;
}

inline void store(std::int64_t* p, const VecInt& a) {
  ELLIPSUM_UNROLL
  for (int k = 0; k < vec_parts; ++k) std::memcpy(p + k * register_lanes, &a.part[k], sizeof(Mask));
}

// p[l] += a[l] for the first `count` <= 8 lanes; nothing beyond is read or written.
inline void add_first(std::int64_t* p, const VecInt& a, std::size_t count) {
#if defined(__AVX512F__)
  const __mmask8 mask = __mmask8((1u << count) - 1);
  const __m512i sum = _mm512_add_epi64(_mm512_maskz_loadu_epi64(mask, p), __m512i(a.part[0]));
  _mm512_mask_storeu_epi64(p, mask, sum);
#else
  std::int64_t lanes[vec_lanes];
  store(lanes, a);
  for (std::size_t l = 0; l < count; ++l) p[l] += lanes[l];
#endif
}

// a + the bits of b, modulo 2^64.
inline VecInt add_bits(const VecInt& a, const Vec& b) {
  VecInt r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    r.part[p] = Mask(Words64(a.part[p]) + Words64(b.part[p]));
  }
  return r;
}

// Lanes of one register that come to what those of a do, modulo 2^64.
ELLIPSUM_INLINE Mask folded_bits(const Vec& a) {
  Words64 sum = Words64(a.part[0]);
  ELLIPSUM_UNROLL
  for (int p = 1; p < vec_parts; ++p) sum += Words64(a.part[p]);
  return Mask(sum);
}

inline Vec magnitude(const Vec& a) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = Doubles(Mask(a.part[p]) & INT64_MAX);
  return r;
}

// Sign, exponent and the 20 upper bits of each fraction.
inline void store_upper_halves(std::int32_t* p, const Vec& a) {
#if defined(__AVX512F__)
  const __m256i upper = _mm512_cvtepi64_epi32(_mm512_srli_epi64(__m512i(a.part[0]), 32));
  std::memcpy(p, &upper, sizeof upper);
#elif defined(__AVX2__)
  const __m256 both = _mm256_shuffle_ps(_mm256_castpd_ps(a.part[0]), _mm256_castpd_ps(a.part[1]),
                                        0xdd);  // 0 1, 4 5, 2 3, 6 7
  const __m256i upper = _mm256_permute4x64_epi64(_mm256_castps_si256(both), 0xd8);
  std::memcpy(p, &upper, sizeof upper);
#else
  std::uint64_t bits[vec_lanes];
  std::memcpy(bits, &a, sizeof bits);
  for (int l = 0; l < vec_lanes; ++l) p[l] = std::int32_t(bits[l] >> 32);
#endif
}

// A bit for each lane that is not 0.
ELLIPSUM_INLINE unsigned nonzero(const VecInt& a) {
  unsigned bits = 0;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) bits |= nonzero(Ints(a.part[p])) << (p * register_lanes);
  return bits;
}

// Is a bit set anywhere? One branch for whoever asks.
ELLIPSUM_INLINE bool any_bit(const VecInt& a) { return nonzero(a) != 0; }

// Of eight bits: without the instruction, the compiler's own is a call.
ELLIPSUM_INLINE std::int64_t count_bits(unsigned lanes) {
#if defined(__POPCNT__)
  return __builtin_popcount(lanes);
#else
  constexpr std::uint64_t of_four = 0x4332322132212110;
  return std::int64_t((of_four >> (4 * (lanes & 15)) & 15) + (of_four >> (4 * (lanes >> 4)) & 15));
#endif
}

ELLIPSUM_INLINE std::int64_t count_nonzero(const VecInt& a) { return count_bits(nonzero(a)); }

// A row's offers to a matrix: rounded to 29 bits, 0 where |x| < least; `outside` gets the sign
// bit of each lane where |x| < most fails.
inline Vec split_29_bits(const Vec& x, double least, double most, VecInt& outside) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    const Doubles shifted = x.part[p] * broadcast(0x1.000001p24);  // Veltkamp
    const Mask rounded = Mask(shifted - (shifted - x.part[p]));
    const Doubles size = Doubles(Mask(x.part[p]) & INT64_MAX);
    r.part[p] = Doubles(rounded & Mask(size >= broadcast(least)));
    outside.part[p] |= ~Mask(size < broadcast(most));
  }
  return r;
}

// y brought into [lower, upper]; a NaN, too, to one of the two ends.
inline Vec clamp(const Vec& y, const Vec& lower, const Vec& upper) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = clamp(y.part[p], lower.part[p], upper.part[p]);
  return r;
}

// y brought into [-limit, limit], by one operation on AVX-512; a NaN, too, to one of its ends.
inline Vec within(const Vec& y, const Vec& limit) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = within(y.part[p], limit.part[p]);
  return r;
}

// The same in place, register by register; returns how far it was outside, which has the sign of y.
ELLIPSUM_INLINE Vec bring_inside(Vec& y, const Vec& limit) {
  Vec outside;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    const Doubles inside = within(y.part[p], limit.part[p]);
    outside.part[p] = y.part[p] - inside, y.part[p] = inside;
  }
  return outside;
}

// Of the first `count` lanes at least; others may be 0. (Both are slow: no register for nothing.)
template <int count = vec_lanes> inline Vec square_root(const Vec& a) {
  Vec r{};
  ELLIPSUM_UNROLL
  for (int p = 0; p * register_lanes < count; ++p) r.part[p] = square_root(a.part[p]);
  return r;
}
template <int count> inline Vec divide(const Vec& a, const Vec& b) {
  Vec r{};
  ELLIPSUM_UNROLL
  for (int p = 0; p * register_lanes < count; ++p) r.part[p] = a.part[p] / b.part[p];
  return r;
}

inline Vec maximum(const Vec& a, const Vec& b) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = maximum(a.part[p], b.part[p]);
  return r;
}

// How many lanes of a are above those of b; a NaN is not.
ELLIPSUM_INLINE std::int64_t count_above(const Vec& a, const Vec& b) {
  unsigned bits = 0;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) bits |= above(a.part[p], b.part[p]) << (p * register_lanes);
  return count_bits(bits);
}

// Is every lane of a below those of b? A NaN is not.
ELLIPSUM_INLINE bool all_below(const Vec& a, const Vec& b) {
  unsigned not_below = 0;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) not_below |= not_less(a.part[p], b.part[p]);
  return not_below == 0;
}

// ((l0 + l4) + (l2 + l6)) + ((l1 + l5) + (l3 + l7)): each step adds the upper half.
ELLIPSUM_INLINE double sum_lanes(const Vec& a) {
#if defined(__AVX512F__)
  typedef double Half __attribute__((vector_size(32)));
  const Half four =
      Half(_mm512_castpd512_pd256(a.part[0])) + Half(_mm512_extractf64x4_pd(a.part[0], 1));
#elif defined(__AVX2__)
  const Doubles four = a.part[0] + a.part[1];
#endif
#if defined(__AVX2__)
  typedef double Pair __attribute__((vector_size(16)));
  const Pair two = Pair(_mm256_castpd256_pd128(four)) + Pair(_mm256_extractf128_pd(four, 1));
#else
  const Doubles two = (a.part[0] + a.part[2]) + (a.part[1] + a.part[3]);
#endif
  return two[0] + two[1];
}

// sum_lanes of each of R <= 8 vectors, zeros after them.
template <int R> inline Vec sum_lanes_of_each(const Vec (&a)[R]) {
#if defined(__AVX512F__)
  const auto halves = [](Doubles x, Doubles y) {
    return _mm512_shuffle_f64x2(x, y, 0x44) + _mm512_shuffle_f64x2(x, y, 0xee);
  };
  const auto quarters = [](Doubles x, Doubles y) {
    return _mm512_shuffle_f64x2(x, y, 0x88) + _mm512_shuffle_f64x2(x, y, 0xdd);
  };
  const auto row = [&](int r) { return r < R ? a[r < R ? r : 0].part[0] : Doubles{}; };
  const Doubles even = quarters(halves(row(0), row(2)), halves(row(4), row(6)));
  const Doubles odd = quarters(halves(row(1), row(3)), halves(row(5), row(7)));
  return {{_mm512_unpacklo_pd(even, odd) + _mm512_unpackhi_pd(even, odd)}};
#elif defined(__AVX2__)
  const auto halves = [](Doubles x, Doubles y) {
    return _mm256_permute2f128_pd(x, y, 0x20) + _mm256_permute2f128_pd(x, y, 0x31);
  };
  const auto row = [&](int r) {
    return r < R ? a[r < R ? r : 0].part[0] + a[r < R ? r : 0].part[1] : Doubles{};
  };
  Vec sums;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    const Doubles even = halves(row(4 * p), row(4 * p + 2));
    const Doubles odd = halves(row(4 * p + 1), row(4 * p + 3));
    sums.part[p] = _mm256_unpacklo_pd(even, odd) + _mm256_unpackhi_pd(even, odd);
  }
  return sums;
#else
  const auto row = [&](int r) {
    const Vec& of = a[r < R ? r : 0];
    return r < R ? (of.part[0] + of.part[2]) + (of.part[1] + of.part[3]) : Doubles{};
  };
  Vec sums;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) sums.part[p] = sums_of_pairs(row(2 * p), row(2 * p + 1));
  return sums;
#endif
}

}  // namespace simd
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
