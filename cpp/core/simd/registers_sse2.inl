// 128-bit vectors, baseline x86-64. Included by registers.hpp inside its namespace.
using Words32 = __m128i;
using Ints = __m128i;
using Doubles = __m128d;
constexpr std::size_t quads = 1, lanes = 2, group = 8, registers = 16;
constexpr bool fused = false;

inline __m128i* quad(void* p) { return static_cast<__m128i*>(p); }
inline const __m128i* quad(const void* p) { return static_cast<const __m128i*>(p); }

inline Words32 words(std::uint32_t x) { return _mm_set1_epi32(int(x)); }
inline Words32 load_words(const std::uint32_t* p) { return _mm_loadu_si128(quad(p)); }
inline Words32 add_words(Words32 a, Words32 b) { return _mm_add_epi32(a, b); }
inline Words32 xor_words(Words32 a, Words32 b) { return _mm_xor_si128(a, b); }
template <int k> inline Words32 rotate_words(Words32 a) {
  if (k == 16) return _mm_shufflehi_epi16(_mm_shufflelo_epi16(a, 0xb1), 0xb1);
  return _mm_or_si128(_mm_slli_epi32(a, k), _mm_srli_epi32(a, 32 - k));
}
inline Words32 low_words(Words32 a, Words32 b) { return _mm_unpacklo_epi32(a, b); }
inline Words32 high_words(Words32 a, Words32 b) { return _mm_unpackhi_epi32(a, b); }
inline Words32 low_pairs(Words32 a, Words32 b) { return _mm_unpacklo_epi64(a, b); }
inline Words32 high_pairs(Words32 a, Words32 b) { return _mm_unpackhi_epi64(a, b); }
// The four arguments make one row of 64 bytes.
inline void store_quads(Words32 a, Words32 b, Words32 c, Words32 d, std::uint64_t* p, std::size_t) {
  _mm_storeu_si128(quad(p), a);
  _mm_storeu_si128(quad(p + 2), b);
  _mm_storeu_si128(quad(p + 4), c);
  _mm_storeu_si128(quad(p + 6), d);
}

inline Ints load_integers(const std::uint64_t* p) { return _mm_loadu_si128(quad(p)); }
inline void store_integers(std::int64_t* p, Ints a) { _mm_storeu_si128(quad(p), a); }
inline Ints integers(std::int64_t x) { return _mm_set1_epi64x(x); }
inline Ints add(Ints a, Ints b) { return _mm_add_epi64(a, b); }
inline Ints subtract(Ints a, Ints b) { return _mm_sub_epi64(a, b); }
inline Ints exclusive_or(Ints a, Ints b) { return _mm_xor_si128(a, b); }
inline Ints inclusive_or(Ints a, Ints b) { return _mm_or_si128(a, b); }
inline Ints both(Ints a, Ints b) { return _mm_and_si128(a, b); }
template <int k> inline Ints shift_right(Ints a) { return _mm_srli_epi64(a, k); }
inline Ints sign_mask(Ints a) { return _mm_shuffle_epi32(_mm_srai_epi32(a, 31), 0xf5); }
// The low 32 bits of a over the high 32 bits of b.
inline Ints low_half_of(Ints a, Ints b) {
  const Ints low = integers(0xffffffff);
  return _mm_or_si128(_mm_and_si128(low, a), _mm_andnot_si128(low, b));
}
inline Ints bits_of(Doubles a) { return _mm_castpd_si128(a); }
inline Doubles from_bits(Ints a) { return _mm_castsi128_pd(a); }

inline Doubles broadcast(double x) { return _mm_set1_pd(x); }
inline Doubles load_doubles(const double* p) { return _mm_loadu_pd(p); }
inline Doubles add(Doubles a, Doubles b) { return _mm_add_pd(a, b); }
inline Doubles subtract(Doubles a, Doubles b) { return _mm_sub_pd(a, b); }
inline Doubles multiply(Doubles a, Doubles b) { return _mm_mul_pd(a, b); }
inline Doubles divide(Doubles a, Doubles b) { return _mm_div_pd(a, b); }
inline Doubles square_root(Doubles a) { return _mm_sqrt_pd(a); }
inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) {
  return _mm_add_pd(_mm_mul_pd(a, b), c);
}
inline Doubles negative_multiply_add(Doubles a, Doubles b, Doubles c) {
  return _mm_sub_pd(c, _mm_mul_pd(a, b));
}
inline Doubles clamp(Doubles y, Doubles low, Doubles high) {
  return _mm_min_pd(_mm_max_pd(y, low), high);
}
// `lanes` float32 as doubles, and those of a register.
using Floats = __m128;
inline Doubles widen(const float* p) {
  return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64(quad(p))));
}
inline void widen_all(Floats a, Doubles* to) {
  to[0] = _mm_cvtps_pd(a), to[1] = _mm_cvtps_pd(_mm_movehl_ps(a, a));
}
// a[0] + a[1], b[0] + b[1].
inline Doubles sums_of_pairs(Doubles a, Doubles b) {
  return _mm_add_pd(_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b));
}
// a[i], b[j].
template <int i, int j> inline Doubles one_of_each(Doubles a, Doubles b) {
  return _mm_shuffle_pd(a, b, i | j << 1);
}
// The sign bit of a flipped where the top bit of `sign` is clear.
inline Doubles sign_unless(Doubles a, Ints sign) {
  return _mm_xor_pd(a, _mm_andnot_pd(from_bits(sign), broadcast(-0.0)));
}
// One bit a lane: not (a < b); a > b; any bit of a; its sign.
inline unsigned not_less(Doubles a, Doubles b) {
  return unsigned(_mm_movemask_pd(_mm_cmpnlt_pd(a, b)));
}
inline unsigned above(Doubles a, Doubles b) {
  return unsigned(_mm_movemask_pd(_mm_cmpgt_pd(a, b)));
}
inline unsigned signs(Ints a) { return unsigned(_mm_movemask_pd(from_bits(a))); }
inline unsigned nonzero(Ints a) {
  const Ints zero = _mm_cmpeq_epi32(a, _mm_setzero_si128());
  return 3u ^ unsigned(_mm_movemask_pd(
                  _mm_castsi128_pd(_mm_and_si128(zero, _mm_shuffle_epi32(zero, 0xb1)))));
}
