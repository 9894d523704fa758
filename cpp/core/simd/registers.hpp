// One register of the target, and what the kernels do with it. Internal linkage throughout: the
// file is compiled once per target.
//
//   Doubles  `lanes` doubles; + - * / and comparisons are the compiler's own on vectors
//   Ints     `lanes` 64-bit integers, as the target's intrinsics take them
//   Mask     what a comparison of Doubles gives: all bits of a lane, or none
//   Words32  4 * quads words of 32 bits (ChaCha20), ordered in quads of 128 bits
//
// `group` registers run in lockstep: enough independent chains to fill the arithmetic units.
// Every function here is exact, or one rounding; for others see math.hpp.
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
#endif

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {
namespace simd {

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "simd/registers_avx512.inl"
#elif defined(__AVX2__) && defined(__FMA__)
#include "simd/registers_avx2.inl"
#elif defined(__SSE2__)
#include "simd/registers_sse2.inl"
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

}  // namespace simd
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
