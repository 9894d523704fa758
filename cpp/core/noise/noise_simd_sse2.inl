// 128-bit vectors, baseline x86-64. Included by simd.hpp inside its namespace.
using W = __m128i;
using I = __m128i;
using F = __m128d;
constexpr std::size_t quads = 1, lanes = 2, group = 2;

inline __m128i* quad(void* p) { return static_cast<__m128i*>(p); }
inline const __m128i* quad(const void* p) { return static_cast<const __m128i*>(p); }

inline W words(std::uint32_t x) { return _mm_set1_epi32(int(x)); }
inline W load_words(const std::uint32_t* p) { return _mm_loadu_si128(quad(p)); }
inline W add_words(W a, W b) { return _mm_add_epi32(a, b); }
inline W xor_words(W a, W b) { return _mm_xor_si128(a, b); }
template <int k>
inline W rotate_words(W a) {
  if (k == 16) return _mm_shufflehi_epi16(_mm_shufflelo_epi16(a, 0xb1), 0xb1);
  return _mm_or_si128(_mm_slli_epi32(a, k), _mm_srli_epi32(a, 32 - k));
}
inline W low_words(W a, W b) { return _mm_unpacklo_epi32(a, b); }
inline W high_words(W a, W b) { return _mm_unpackhi_epi32(a, b); }
inline W low_pairs(W a, W b) { return _mm_unpacklo_epi64(a, b); }
inline W high_pairs(W a, W b) { return _mm_unpackhi_epi64(a, b); }
// The four arguments make one row of 64 bytes.
inline void store_quads(W a, W b, W c, W d, std::uint64_t* p, std::size_t) {
  _mm_storeu_si128(quad(p), a);
  _mm_storeu_si128(quad(p + 2), b);
  _mm_storeu_si128(quad(p + 4), c);
  _mm_storeu_si128(quad(p + 6), d);
}

inline I load_integers(const std::uint64_t* p) { return _mm_loadu_si128(quad(p)); }
inline void store_integers(std::int64_t* p, I a) { _mm_storeu_si128(quad(p), a); }
inline I integers(std::int64_t x) { return _mm_set1_epi64x(x); }
inline I add(I a, I b) { return _mm_add_epi64(a, b); }
inline I subtract(I a, I b) { return _mm_sub_epi64(a, b); }
inline I exclusive_or(I a, I b) { return _mm_xor_si128(a, b); }
inline I inclusive_or(I a, I b) { return _mm_or_si128(a, b); }
inline I both(I a, I b) { return _mm_and_si128(a, b); }
template <int k>
inline I shift_right(I a) { return _mm_srli_epi64(a, k); }
inline I sign_mask(I a) { return _mm_shuffle_epi32(_mm_srai_epi32(a, 31), 0xf5); }
// The low 32 bits of a over the high 32 bits of b.
inline I low_half_of(I a, I b) {
  const I low = integers(0xffffffff);
  return _mm_or_si128(_mm_and_si128(low, a), _mm_andnot_si128(low, b));
}
inline I bits_of(F a) { return _mm_castpd_si128(a); }
inline F from_bits(I a) { return _mm_castsi128_pd(a); }

inline F doubles(double x) { return _mm_set1_pd(x); }
inline F load_doubles(const double* p) { return _mm_loadu_pd(p); }
inline F add(F a, F b) { return _mm_add_pd(a, b); }
inline F subtract(F a, F b) { return _mm_sub_pd(a, b); }
inline F multiply(F a, F b) { return _mm_mul_pd(a, b); }
inline F divide(F a, F b) { return _mm_div_pd(a, b); }
inline F square_root(F a) { return _mm_sqrt_pd(a); }
inline F multiply_add(F a, F b, F c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }
inline F absolute(F a) { return _mm_andnot_pd(doubles(-0.0), a); }
// The sign bit of a flipped where the top bit of `sign` is clear.
inline F sign_unless(F a, I sign) {
  return _mm_xor_pd(a, _mm_andnot_pd(from_bits(sign), doubles(-0.0)));
}
// One bit a lane: not (a < b).
inline unsigned not_less(F a, F b) { return unsigned(_mm_movemask_pd(_mm_cmpnlt_pd(a, b))); }
