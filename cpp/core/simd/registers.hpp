// One register of the target, and what the kernels do with it. Internal linkage throughout: the
// file is compiled once per target.
//
//   Doubles  `lanes` doubles; + - * / and comparisons are the compiler's own on vectors
//   Ints     `lanes` 64-bit integers, as the target's intrinsics take them
//   Mask     what a comparison of Doubles gives: all bits of a lane, or none
//   Words32  4 * quads words of 32 bits (ChaCha20), ordered in quads of 128 bits
//
// `group` registers run in lockstep: enough independent chains to fill the arithmetic units. `fused`:
// multiply_add rounds once; `registers`: how many the target has. Every function here is exact, or one
// rounding; for others see math.hpp.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // in GCC 12's own headers
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// Where an empty assembler statement must find a register of the target.
#if defined(__AVX512F__)
#define ELLIPSUM_REGISTER "+v"
#elif defined(__SSE2__)
#define ELLIPSUM_REGISTER "+x"
#elif defined(__aarch64__)
#define ELLIPSUM_REGISTER "+w"
#else
#define ELLIPSUM_REGISTER "+m"
#endif

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {
namespace simd {

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "simd/registers_avx512.inl"
#elif defined(__AVX2__) && defined(__FMA__)
#include "simd/registers_avx2.inl"
#elif defined(__SSE2__) && !defined(ELLIPSUM_PLAIN)
#include "simd/registers_sse2.inl"
#elif defined(__ARM_FEATURE_FMA) && defined(__AARCH64EL__) && !defined(ELLIPSUM_PLAIN)
#include "simd/registers_neon.inl"
#else
#include "simd/registers_plain.inl"
#endif

typedef std::int64_t Mask __attribute__((vector_size(sizeof(Doubles))));
typedef std::uint64_t Words64 __attribute__((vector_size(sizeof(Doubles))));

inline void store_doubles(double* p, const Doubles& v) { std::memcpy(p, &v, sizeof v); }
inline Doubles select(const Mask& mask, const Doubles& yes, const Doubles& no) {
  return (Doubles)((mask & (Mask)yes) | (~mask & (Mask)no));
}
inline Doubles magnitude(const Doubles& x) { return (Doubles)((Mask)x & INT64_MAX); }
// The greater of two, b where one is a NaN. (GCC 12 has a comparison and a choice for it on AVX-512.)
inline Doubles maximum(const Doubles& a, const Doubles& b) {
#if defined(__AVX512F__)
  return _mm512_max_pd(a, b);
#else
  return a > b ? a : b;
#endif
}
// y brought into [-limit, limit]; a NaN, too, to one of the two ends.
inline Doubles within(const Doubles& y, const Doubles& limit) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  constexpr int nearer_zero = 2, sign_of_first = 0;  // of the two
  return _mm512_range_pd(y, limit, sign_of_first << 2 | nearer_zero);
#else
  return clamp(y, -limit, limit);
#endif
}

// Every kernel begins with one. While the upper halves of registers are in use, each SSE instruction of
// the thread waits for those before it (Zen 5: rows of 4 on the baseline take 3.6 times as long, until
// somebody clears them), and GCC 12 does not clear them behind every loop.
struct UpperHalvesCleared {
  UpperHalvesCleared() = default;
  UpperHalvesCleared(const UpperHalvesCleared&) = delete;
  UpperHalvesCleared& operator=(const UpperHalvesCleared&) = delete;
  ~UpperHalvesCleared() {
#if defined(__AVX__)
    _mm256_zeroupper();
#endif
  }
};

}  // namespace simd
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
