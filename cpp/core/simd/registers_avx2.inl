// 256-bit vectors with fused multiply-add. Included by registers.hpp inside its namespace.
using Words32 = __m256i;
using Ints = __m256i;
using Doubles = __m256d;
// Eight in lockstep: a coefficient is loaded once for all of them, and what the processor has in flight holds as
// many chains as its units take.
constexpr std::size_t quads = 2, lanes = 4, group = 8, registers = 16;
constexpr bool fused = true;

inline Words32 words(std::uint32_t x) { return _mm256_set1_epi32(int(x)); }
inline Words32 load_words(const std::uint32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline Words32 add_words(Words32 a, Words32 b) { return _mm256_add_epi32(a, b); }
inline Words32 xor_words(Words32 a, Words32 b) { return _mm256_xor_si256(a, b); }
template <int k> inline Words32 rotate_words(Words32 a) {
  if (k == 16)
    return _mm256_shuffle_epi8(
        a, _mm256_set_epi8(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2, 13, 12, 15, 14, 9,
                           8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2));
  if (k == 8)
    return _mm256_shuffle_epi8(
        a, _mm256_set_epi8(14, 13, 12, 15, 10, 9, 8, 11, 6, 5, 4, 7, 2, 1, 0, 3, 14, 13, 12, 15, 10,
                           9, 8, 11, 6, 5, 4, 7, 2, 1, 0, 3));
  return _mm256_or_si256(_mm256_slli_epi32(a, k), _mm256_srli_epi32(a, 32 - k));
}
inline Words32 low_words(Words32 a, Words32 b) { return _mm256_unpacklo_epi32(a, b); }
inline Words32 high_words(Words32 a, Words32 b) { return _mm256_unpackhi_epi32(a, b); }
inline Words32 low_pairs(Words32 a, Words32 b) { return _mm256_unpacklo_epi64(a, b); }
inline Words32 high_pairs(Words32 a, Words32 b) { return _mm256_unpackhi_epi64(a, b); }
inline void store_256(std::uint64_t* p, Words32 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
}
// Quad q of the four arguments makes row q: 64 bytes to p + q * stride (in 64-bit words).
inline void store_quads(Words32 a, Words32 b, Words32 c, Words32 d, std::uint64_t* p,
                        std::size_t stride) {
  store_256(p, _mm256_permute2x128_si256(a, b, 0x20));
  store_256(p + 4, _mm256_permute2x128_si256(c, d, 0x20));
  store_256(p + stride, _mm256_permute2x128_si256(a, b, 0x31));
  store_256(p + stride + 4, _mm256_permute2x128_si256(c, d, 0x31));
}

inline Ints load_integers(const std::uint64_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline void store_integers(std::int64_t* p, Ints a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
}
inline Ints integers(std::int64_t x) { return _mm256_set1_epi64x(x); }
inline Ints add(Ints a, Ints b) { return _mm256_add_epi64(a, b); }
inline Ints subtract(Ints a, Ints b) { return _mm256_sub_epi64(a, b); }
inline Ints exclusive_or(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
inline Ints inclusive_or(Ints a, Ints b) { return _mm256_or_si256(a, b); }
inline Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
template <int k> inline Ints shift_right(Ints a) { return _mm256_srli_epi64(a, k); }
inline Ints sign_mask(Ints a) { return _mm256_cmpgt_epi64(_mm256_setzero_si256(), a); }
// The low 32 bits of a over the high 32 bits of b.
inline Ints low_half_of(Ints a, Ints b) { return _mm256_blend_epi32(b, a, 0x55); }
inline Ints bits_of(Doubles a) { return _mm256_castpd_si256(a); }
inline Doubles from_bits(Ints a) { return _mm256_castsi256_pd(a); }

inline Doubles broadcast(double x) { return _mm256_set1_pd(x); }
inline Doubles load_doubles(const double* p) { return _mm256_loadu_pd(p); }
inline Doubles add(Doubles a, Doubles b) { return _mm256_add_pd(a, b); }
inline Doubles subtract(Doubles a, Doubles b) { return _mm256_sub_pd(a, b); }
inline Doubles multiply(Doubles a, Doubles b) { return _mm256_mul_pd(a, b); }
inline Doubles divide(Doubles a, Doubles b) { return _mm256_div_pd(a, b); }
inline Doubles square_root(Doubles a) { return _mm256_sqrt_pd(a); }
inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return _mm256_fmadd_pd(a, b, c); }
inline Doubles negative_multiply_add(Doubles a, Doubles b, Doubles c) {
  return _mm256_fnmadd_pd(a, b, c);
}
inline Doubles clamp(Doubles y, Doubles low, Doubles high) {
  return _mm256_min_pd(_mm256_max_pd(y, low), high);
}
// `lanes` float32 as doubles, and those of a register.
using Floats = __m256;
inline Doubles widen(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
inline __m128i load_32_bits(const void* p) {
  int bits;
  std::memcpy(&bits, p, sizeof bits);
  return _mm_cvtsi32_si128(bits);
}
inline __m128i load_64_bits(const void* p) {
  return _mm_loadl_epi64(static_cast<const __m128i*>(p));
}
inline __m128i load_128_bits(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
inline __m256i load_256_bits(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline Doubles widen(const std::int8_t* p) {
  return _mm256_cvtepi32_pd(_mm_cvtepi8_epi32(load_32_bits(p)));
}
inline Doubles widen(const std::uint8_t* p) {
  return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(load_32_bits(p)));
}
inline Doubles widen(const std::int16_t* p) {
  return _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(load_64_bits(p)));
}
inline Doubles widen(const std::uint16_t* p) {
  return _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(load_64_bits(p)));
}
inline Doubles widen(const std::int32_t* p) { return _mm256_cvtepi32_pd(load_128_bits(p)); }
inline Doubles widen(const std::uint32_t* p) {
  const __m128i below = _mm_xor_si128(load_128_bits(p), _mm_set1_epi32(INT32_MIN));
  return _mm256_add_pd(_mm256_cvtepi32_pd(below), _mm256_set1_pd(0x1p31));
}
// The upper half as 2^84 and 2^32 times it (and 2^63, where it has a sign, which is flipped), the lower as 2^52
// and it: what is taken off again is exact, the last sum is rounded.
inline Doubles widen_halves(__m256i x, std::int64_t sign, double more) {
  __asm__("" : ELLIPSUM_REGISTER(x));  // or it may be read twice
  const __m256i wide = _mm256_set1_epi64x(0x4530000000000000 | sign),
                narrow = _mm256_set1_epi64x(0x4330000000000000);
  const __m256i high = _mm256_xor_si256(_mm256_srli_epi64(x, 32), wide),
                low = _mm256_blend_epi32(x, narrow, 0xaa);
  return _mm256_add_pd(_mm256_sub_pd(from_bits(high), _mm256_set1_pd(0x1p84 + 0x1p52 + more)),
                       from_bits(low));
}
inline Doubles widen(const std::int64_t* p) {
  return widen_halves(load_256_bits(p), 0x80000000, 0x1p63);
}
inline Doubles widen(const std::uint64_t* p) { return widen_halves(load_256_bits(p), 0, 0); }
inline void widen_all(Floats a, Doubles* to) {
  to[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
  to[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
}
// Lane k is lane (k + by) modulo 4 of a.
template <int by> inline Doubles rotated(Doubles a) {
  return _mm256_permute4x64_pd(a, 0xe4e4 >> 2 * by & 0xff);
}
// The sign bit of a flipped where the top bit of `sign` is clear.
inline Doubles sign_unless(Doubles a, Ints sign) {
  return _mm256_xor_pd(a, _mm256_andnot_pd(from_bits(sign), broadcast(-0.0)));
}
// One bit a lane: not (a < b); a > b; any bit of a; its sign.
inline unsigned not_less(Doubles a, Doubles b) {
  return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_NLT_UQ)));
}
inline unsigned above(Doubles a, Doubles b) {
  return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)));
}
inline unsigned signs(Ints a) { return unsigned(_mm256_movemask_pd(from_bits(a))); }
inline unsigned nonzero(Ints a) {
  return 15u ^
         unsigned(_mm256_movemask_pd(from_bits(_mm256_cmpeq_epi64(a, _mm256_setzero_si256()))));
}
