// 512-bit vectors. Included by simd.hpp inside its namespace.
using W = __m512i;
using I = __m512i;
using F = __m512d;
constexpr std::size_t quads = 4, lanes = 8, group = 2;

inline W words(std::uint32_t x) { return _mm512_set1_epi32(int(x)); }
inline W load_words(const std::uint32_t* p) { return _mm512_loadu_si512(p); }
inline W add_words(W a, W b) { return _mm512_add_epi32(a, b); }
inline W xor_words(W a, W b) { return _mm512_xor_si512(a, b); }
template <int k>
inline W rotate_words(W a) { return _mm512_rol_epi32(a, k); }
inline W low_words(W a, W b) { return _mm512_unpacklo_epi32(a, b); }
inline W high_words(W a, W b) { return _mm512_unpackhi_epi32(a, b); }
inline W low_pairs(W a, W b) { return _mm512_unpacklo_epi64(a, b); }
inline W high_pairs(W a, W b) { return _mm512_unpackhi_epi64(a, b); }
// Quad q of the four arguments makes row q: 64 bytes to p + q * stride (in 64-bit words).
inline void store_quads(W a, W b, W c, W d, std::uint64_t* p, std::size_t stride) {
  const W ab_even = _mm512_shuffle_i32x4(a, b, 0x88), ab_odd = _mm512_shuffle_i32x4(a, b, 0xdd);
  const W cd_even = _mm512_shuffle_i32x4(c, d, 0x88), cd_odd = _mm512_shuffle_i32x4(c, d, 0xdd);
  _mm512_storeu_si512(p, _mm512_shuffle_i32x4(ab_even, cd_even, 0x88));
  _mm512_storeu_si512(p + stride, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0x88));
  _mm512_storeu_si512(p + 2 * stride, _mm512_shuffle_i32x4(ab_even, cd_even, 0xdd));
  _mm512_storeu_si512(p + 3 * stride, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0xdd));
}

inline I load_integers(const std::uint64_t* p) { return _mm512_loadu_si512(p); }
inline void store_integers(std::int64_t* p, I a) { _mm512_storeu_si512(p, a); }
inline I integers(std::int64_t x) { return _mm512_set1_epi64(x); }
inline I subtract(I a, I b) { return _mm512_sub_epi64(a, b); }
inline I exclusive_or(I a, I b) { return _mm512_xor_si512(a, b); }
inline I sign_mask(I a) { return _mm512_srai_epi64(a, 63); }
inline I bits_of(F a) { return _mm512_castpd_si512(a); }
inline F from_bits(I a) { return _mm512_castsi512_pd(a); }

inline F doubles(double x) { return _mm512_set1_pd(x); }
inline F load_doubles(const double* p) { return _mm512_loadu_pd(p); }
inline F subtract(F a, F b) { return _mm512_sub_pd(a, b); }
inline F multiply(F a, F b) { return _mm512_mul_pd(a, b); }
inline F square_root(F a) { return _mm512_sqrt_pd(a); }
inline F multiply_add(F a, F b, F c) { return _mm512_fmadd_pd(a, b, c); }
inline F absolute(F a) { return _mm512_abs_pd(a); }
// The sign bit of a flipped where the top bit of `sign` is clear.
inline F sign_unless(F a, I sign) {
  return from_bits(_mm512_ternarylogic_epi64(bits_of(a), sign, integers(INT64_MIN), 0xd2));
}
// One bit a lane: not (a < b).
inline unsigned not_less(F a, F b) { return _mm512_cmp_pd_mask(a, b, _CMP_NLT_UQ); }
