// 512-bit vectors. Included by registers.hpp inside its namespace.
using Words32 = __m512i;
using Ints = __m512i;
using Doubles = __m512d;
constexpr std::size_t quads = 4, lanes = 8, group = 2, registers = 32;

inline Words32 words(std::uint32_t x) { return _mm512_set1_epi32(int(x)); }
inline Words32 load_words(const std::uint32_t* p) { return _mm512_loadu_si512(p); }
inline Words32 add_words(Words32 a, Words32 b) { return _mm512_add_epi32(a, b); }
inline Words32 xor_words(Words32 a, Words32 b) { return _mm512_xor_si512(a, b); }
template <int k> inline Words32 rotate_words(Words32 a) { return _mm512_rol_epi32(a, k); }
inline Words32 low_words(Words32 a, Words32 b) { return _mm512_unpacklo_epi32(a, b); }
inline Words32 high_words(Words32 a, Words32 b) { return _mm512_unpackhi_epi32(a, b); }
inline Words32 low_pairs(Words32 a, Words32 b) { return _mm512_unpacklo_epi64(a, b); }
inline Words32 high_pairs(Words32 a, Words32 b) { return _mm512_unpackhi_epi64(a, b); }
// Quad q of the four arguments makes row q: 64 bytes to p + q * stride (in 64-bit words).
inline void store_quads(Words32 a, Words32 b, Words32 c, Words32 d, std::uint64_t* p,
                        std::size_t stride) {
  const Words32 ab_even = _mm512_shuffle_i32x4(a, b, 0x88),
                ab_odd = _mm512_shuffle_i32x4(a, b, 0xdd);
  const Words32 cd_even = _mm512_shuffle_i32x4(c, d, 0x88),
                cd_odd = _mm512_shuffle_i32x4(c, d, 0xdd);
  _mm512_storeu_si512(p, _mm512_shuffle_i32x4(ab_even, cd_even, 0x88));
  _mm512_storeu_si512(p + stride, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0x88));
  _mm512_storeu_si512(p + 2 * stride, _mm512_shuffle_i32x4(ab_even, cd_even, 0xdd));
  _mm512_storeu_si512(p + 3 * stride, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0xdd));
}

inline Ints load_integers(const std::uint64_t* p) { return _mm512_loadu_si512(p); }
inline void store_integers(std::int64_t* p, Ints a) { _mm512_storeu_si512(p, a); }
inline Ints integers(std::int64_t x) { return _mm512_set1_epi64(x); }
inline Ints subtract(Ints a, Ints b) { return _mm512_sub_epi64(a, b); }
inline Ints exclusive_or(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
inline Ints sign_mask(Ints a) { return _mm512_srai_epi64(a, 63); }
inline Ints bits_of(Doubles a) { return _mm512_castpd_si512(a); }
inline Doubles from_bits(Ints a) { return _mm512_castsi512_pd(a); }

inline Doubles broadcast(double x) { return _mm512_set1_pd(x); }
inline Doubles load_doubles(const double* p) { return _mm512_loadu_pd(p); }
inline Doubles subtract(Doubles a, Doubles b) { return _mm512_sub_pd(a, b); }
inline Doubles multiply(Doubles a, Doubles b) { return _mm512_mul_pd(a, b); }
inline Doubles square_root(Doubles a) { return _mm512_sqrt_pd(a); }
inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return _mm512_fmadd_pd(a, b, c); }
inline Doubles clamp(Doubles y, Doubles low, Doubles high) {
  return _mm512_min_pd(_mm512_max_pd(y, low), high);
}
// `lanes` float32 as doubles, and those of a register.
using Floats = __m256;
inline Doubles widen(const float* p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
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
  return _mm512_cvtepi32_pd(_mm256_cvtepi8_epi32(load_64_bits(p)));
}
inline Doubles widen(const std::uint8_t* p) {
  return _mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(load_64_bits(p)));
}
inline Doubles widen(const std::int16_t* p) {
  return _mm512_cvtepi32_pd(_mm256_cvtepi16_epi32(load_128_bits(p)));
}
inline Doubles widen(const std::uint16_t* p) {
  return _mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(load_128_bits(p)));
}
inline Doubles widen(const std::int32_t* p) { return _mm512_cvtepi32_pd(load_256_bits(p)); }
inline Doubles widen(const std::uint32_t* p) { return _mm512_cvtepu32_pd(load_256_bits(p)); }
inline Doubles widen(const std::int64_t* p) { return _mm512_cvtepi64_pd(_mm512_loadu_si512(p)); }
inline Doubles widen(const std::uint64_t* p) { return _mm512_cvtepu64_pd(_mm512_loadu_si512(p)); }
inline void widen_all(Floats a, Doubles* to) { *to = _mm512_cvtps_pd(a); }
// Lane k is lane (k + by) modulo 8 of a.
template <int by> inline Doubles rotated(Doubles a) {
  return from_bits(_mm512_alignr_epi64(bits_of(a), bits_of(a), by));
}
// The sign bit of a flipped where the top bit of `sign` is clear.
inline Doubles sign_unless(Doubles a, Ints sign) {
  return from_bits(_mm512_ternarylogic_epi64(bits_of(a), sign, integers(INT64_MIN), 0xd2));
}
// One bit a lane: not (a < b); a > b; any bit of a; its sign.
inline unsigned not_less(Doubles a, Doubles b) { return _mm512_cmp_pd_mask(a, b, _CMP_NLT_UQ); }
inline unsigned above(Doubles a, Doubles b) { return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ); }
inline unsigned signs(Ints a) { return _mm512_movepi64_mask(a); }
inline unsigned nonzero(Ints a) { return _mm512_test_epi64_mask(a, a); }
