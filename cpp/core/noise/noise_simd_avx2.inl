// 256-bit vectors with fused multiply-add. Included by simd.hpp inside its namespace.
using W = __m256i;
using I = __m256i;
using F = __m256d;
constexpr std::size_t quads = 2, lanes = 4, group = 2;

inline W words(std::uint32_t x) { return _mm256_set1_epi32(int(x)); }
inline W load_words(const std::uint32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline W add_words(W a, W b) { return _mm256_add_epi32(a, b); }
inline W xor_words(W a, W b) { return _mm256_xor_si256(a, b); }
template <int k>
inline W rotate_words(W a) {
  if (k == 16)
    return _mm256_shuffle_epi8(a, _mm256_set_epi8(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3,
                                                  2, 13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0,
                                                  3, 2));
  if (k == 8)
    return _mm256_shuffle_epi8(a, _mm256_set_epi8(14, 13, 12, 15, 10, 9, 8, 11, 6, 5, 4, 7, 2, 1, 0,
                                                  3, 14, 13, 12, 15, 10, 9, 8, 11, 6, 5, 4, 7, 2, 1,
                                                  0, 3));
  return _mm256_or_si256(_mm256_slli_epi32(a, k), _mm256_srli_epi32(a, 32 - k));
}
inline W low_words(W a, W b) { return _mm256_unpacklo_epi32(a, b); }
inline W high_words(W a, W b) { return _mm256_unpackhi_epi32(a, b); }
inline W low_pairs(W a, W b) { return _mm256_unpacklo_epi64(a, b); }
inline W high_pairs(W a, W b) { return _mm256_unpackhi_epi64(a, b); }
inline void store_256(std::uint64_t* p, W a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
}
// Quad q of the four arguments makes row q: 64 bytes to p + q * stride (in 64-bit words).
inline void store_quads(W a, W b, W c, W d, std::uint64_t* p, std::size_t stride) {
  store_256(p, _mm256_permute2x128_si256(a, b, 0x20));
  store_256(p + 4, _mm256_permute2x128_si256(c, d, 0x20));
  store_256(p + stride, _mm256_permute2x128_si256(a, b, 0x31));
  store_256(p + stride + 4, _mm256_permute2x128_si256(c, d, 0x31));
}

inline I load_integers(const std::uint64_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline void store_integers(std::int64_t* p, I a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
}
inline I integers(std::int64_t x) { return _mm256_set1_epi64x(x); }
inline I add(I a, I b) { return _mm256_add_epi64(a, b); }
inline I subtract(I a, I b) { return _mm256_sub_epi64(a, b); }
inline I exclusive_or(I a, I b) { return _mm256_xor_si256(a, b); }
inline I inclusive_or(I a, I b) { return _mm256_or_si256(a, b); }
inline I both(I a, I b) { return _mm256_and_si256(a, b); }
template <int k>
inline I shift_right(I a) { return _mm256_srli_epi64(a, k); }
inline I sign_mask(I a) { return _mm256_cmpgt_epi64(_mm256_setzero_si256(), a); }
// The low 32 bits of a over the high 32 bits of b.
inline I low_half_of(I a, I b) { return _mm256_blend_epi32(b, a, 0x55); }
inline I bits_of(F a) { return _mm256_castpd_si256(a); }
inline F from_bits(I a) { return _mm256_castsi256_pd(a); }

inline F doubles(double x) { return _mm256_set1_pd(x); }
inline F load_doubles(const double* p) { return _mm256_loadu_pd(p); }
inline F add(F a, F b) { return _mm256_add_pd(a, b); }
inline F subtract(F a, F b) { return _mm256_sub_pd(a, b); }
inline F multiply(F a, F b) { return _mm256_mul_pd(a, b); }
inline F divide(F a, F b) { return _mm256_div_pd(a, b); }
inline F square_root(F a) { return _mm256_sqrt_pd(a); }
inline F multiply_add(F a, F b, F c) { return _mm256_fmadd_pd(a, b, c); }
inline F negative_multiply_add(F a, F b, F c) { return _mm256_fnmadd_pd(a, b, c); }
inline F absolute(F a) { return _mm256_andnot_pd(doubles(-0.0), a); }
// The sign bit of a flipped where the top bit of `sign` is clear.
inline F sign_unless(F a, I sign) {
  return _mm256_xor_pd(a, _mm256_andnot_pd(from_bits(sign), doubles(-0.0)));
}
// One bit a lane: not (a < b).
inline unsigned not_less(F a, F b) {
  return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_NLT_UQ)));
}
