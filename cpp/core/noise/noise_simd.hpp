// The few vector operations that the noise kernels need, in the width of the target.
// Internal linkage throughout: the file is compiled once per target.
//
//   W  32-bit words (ChaCha20), 4 * quads lanes, ordered in quads of 128 bits
//   I  64-bit integers, F doubles, `lanes` lanes; `group` vectors of them run in lockstep
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
#include "noise/noise_simd_avx512.inl"
#elif defined(__AVX2__) && defined(__FMA__)
#include "noise/noise_simd_avx2.inl"
#elif defined(__SSE2__)
#include "noise/noise_simd_sse2.inl"
#else
#include "noise/noise_simd_plain.inl"
#endif

}  // namespace simd
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
