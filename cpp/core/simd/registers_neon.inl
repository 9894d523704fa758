// 128-bit vectors of AArch64, whose multiply-add is fused. Included by registers.hpp inside its
// namespace.
using Words32 = uint32x4_t;
using Ints = uint64x2_t;
using Doubles = float64x2_t;
constexpr std::size_t quads = 1, lanes = 2, group = 4, registers = 32;
constexpr bool fused = true;

inline Words32 words(std::uint32_t x) { return vdupq_n_u32(x); }
inline Words32 load_words(const std::uint32_t* p) { return vld1q_u32(p); }
inline Words32 add_words(Words32 a, Words32 b) { return vaddq_u32(a, b); }
inline Words32 xor_words(Words32 a, Words32 b) { return veorq_u32(a, b); }
template <int k> inline Words32 rotate_words(Words32 a) {
  if constexpr (k == 16) return vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(a)));
  else return vsriq_n_u32(vshlq_n_u32(a, k), a, 32 - k);
}
inline Words32 low_words(Words32 a, Words32 b) { return vzip1q_u32(a, b); }
inline Words32 high_words(Words32 a, Words32 b) { return vzip2q_u32(a, b); }
inline Words32 low_pairs(Words32 a, Words32 b) {
  return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}
inline Words32 high_pairs(Words32 a, Words32 b) {
  return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}
// The four arguments make one row of 64 bytes.
inline void store_quads(Words32 a, Words32 b, Words32 c, Words32 d, std::uint64_t* p, std::size_t) {
  vst1q_u64(p, vreinterpretq_u64_u32(a));
  vst1q_u64(p + 2, vreinterpretq_u64_u32(b));
  vst1q_u64(p + 4, vreinterpretq_u64_u32(c));
  vst1q_u64(p + 6, vreinterpretq_u64_u32(d));
}

inline Ints load_integers(const std::uint64_t* p) { return vld1q_u64(p); }
inline void store_integers(std::int64_t* p, Ints a) { vst1q_s64(p, vreinterpretq_s64_u64(a)); }
inline Ints integers(std::int64_t x) { return vdupq_n_u64(std::uint64_t(x)); }
inline Ints add(Ints a, Ints b) { return vaddq_u64(a, b); }
inline Ints subtract(Ints a, Ints b) { return vsubq_u64(a, b); }
inline Ints exclusive_or(Ints a, Ints b) { return veorq_u64(a, b); }
inline Ints inclusive_or(Ints a, Ints b) { return vorrq_u64(a, b); }
inline Ints both(Ints a, Ints b) { return vandq_u64(a, b); }
template <int k> inline Ints shift_right(Ints a) { return vshrq_n_u64(a, k); }
inline Ints sign_mask(Ints a) {
  return vreinterpretq_u64_s64(vshrq_n_s64(vreinterpretq_s64_u64(a), 63));
}
// The low 32 bits of a over the high 32 bits of b.
inline Ints low_half_of(Ints a, Ints b) { return vbslq_u64(integers(0xffffffff), a, b); }
inline Ints bits_of(Doubles a) { return vreinterpretq_u64_f64(a); }
inline Doubles from_bits(Ints a) { return vreinterpretq_f64_u64(a); }

inline Doubles broadcast(double x) { return vdupq_n_f64(x); }
inline Doubles load_doubles(const double* p) { return vld1q_f64(p); }
inline Doubles add(Doubles a, Doubles b) { return vaddq_f64(a, b); }
inline Doubles subtract(Doubles a, Doubles b) { return vsubq_f64(a, b); }
inline Doubles multiply(Doubles a, Doubles b) { return vmulq_f64(a, b); }
inline Doubles divide(Doubles a, Doubles b) { return vdivq_f64(a, b); }
inline Doubles square_root(Doubles a) { return vsqrtq_f64(a); }
inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return vfmaq_f64(c, a, b); }
inline Doubles negative_multiply_add(Doubles a, Doubles b, Doubles c) { return vfmsq_f64(c, a, b); }
// The processor's own maximum is a NaN where y is one.
inline Doubles clamp(Doubles y, Doubles low, Doubles high) {
  const Doubles raised = vbslq_f64(vcgtq_f64(y, low), y, low);
  return vbslq_f64(vcltq_f64(raised, high), raised, high);
}
// `lanes` float32 as doubles, and those of a register.
using Floats = float32x4_t;
inline Doubles widen(const float* p) { return vcvt_f64_f32(vld1_f32(p)); }
inline void widen_all(Floats a, Doubles* to) {
  to[0] = vcvt_f64_f32(vget_low_f32(a)), to[1] = vcvt_high_f64_f32(a);
}
// a[0] + a[1], b[0] + b[1].
inline Doubles sums_of_pairs(Doubles a, Doubles b) { return vpaddq_f64(a, b); }
// a[i], b[j].
template <int i, int j> inline Doubles one_of_each(Doubles a, Doubles b) {
  if constexpr (i == 0 && j == 0) return vzip1q_f64(a, b);
  else if constexpr (i == 1 && j == 1) return vzip2q_f64(a, b);
  else if constexpr (i == 1) return vextq_f64(a, b, 1);
  else return vcopyq_laneq_f64(a, 1, b, 1);
}

// The sign bit of a flipped where the top bit of `sign` is clear.
inline Doubles sign_unless(Doubles a, Ints sign) {
  return from_bits(veorq_u64(bits_of(a), vbicq_u64(integers(INT64_MIN), sign)));
}
// One bit a lane of a comparison.
inline unsigned bits_of_lanes(Ints mask) {
  const std::uint64_t halves = vget_lane_u64(vreinterpret_u64_u32(vmovn_u64(mask)), 0);
  return unsigned((halves & 1) | (halves >> 32 & 2));
}
// One bit a lane: not (a < b); a > b; any bit of a; its sign.
inline unsigned not_less(Doubles a, Doubles b) { return 3u ^ bits_of_lanes(vcltq_f64(a, b)); }
inline unsigned above(Doubles a, Doubles b) { return bits_of_lanes(vcgtq_f64(a, b)); }
inline unsigned signs(Ints a) { return bits_of_lanes(sign_mask(a)); }
inline unsigned nonzero(Ints a) { return bits_of_lanes(vtstq_u64(a, a)); }
