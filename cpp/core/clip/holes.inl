// Holes in eight numbers: which of them are NaN or infinite, or left out by a bitmap. Included into
// each target's namespace.

// What a column's bitmap says from a number on; nothing without one. Bits of eight numbers are in a
// byte, and of the one after it where they do not begin with one.
struct Gaps {
  const std::uint8_t* at = nullptr;
  unsigned shift = 0, more = 0;
};
static inline Gaps gaps_from(const Validity& valid, std::size_t i) {
  const std::size_t bit = valid.first + i;
  if (!valid.bits) return {};
  return {valid.bits + bit / 8, unsigned(bit % 8), bit % 8 ? 1u : 0u};
}

// A bit for each of the k-th eight numbers that is there, all of them within the table; above them
// there are others.
static ELLIPSUM_INLINE unsigned there(const Gaps& gaps, std::size_t k) {
  return (gaps.at[k] | unsigned(gaps.at[k + gaps.more]) << 8) >> gaps.shift;
}

#if defined(__AVX512F__) && defined(__AVX512DQ__)

// A bit for each lane that holds no finite number.
using Holes = __mmask8;

static inline Holes holes_of(const Vec& x) {
  constexpr int quiet_nan = 0x01, above = 0x08, below = 0x10, signalling_nan = 0x80;
  return _mm512_fpclass_pd_mask(x.part[0], quiet_nan | above | below | signalling_nan);
}

// And of those that are left out.
static ELLIPSUM_INLINE Holes with_gaps(Holes holes, const Gaps& gaps, std::size_t k) {
  return Holes(holes | ~there(gaps, k));
}

static inline Vec fill_holes(const Vec& x, Holes holes, const Vec& filling) {
  return {{_mm512_mask_mov_pd(x.part[0], holes, filling.part[0])}};
}

// 0 in the lanes of holes.
static inline Vec empty_holes(const Vec& x, Holes holes) { return fill_holes(x, holes, fill(0.0)); }

// What is no finite number in the lanes of holes, which are 0 in y: what was read, or a NaN.
static inline Vec mark_holes(const Vec& y, Holes holes, const Vec& read) {
  return fill_holes(y, holes, read);
}

// One more in each lane of a hole.
static inline VecInt count_holes(const VecInt& absent, Holes holes) {
  const __m512i a = __m512i(absent.part[0]);
  return {{Mask(_mm512_mask_sub_epi64(a, holes, a, _mm512_set1_epi64(-1)))}};
}

#else

// All bits of the lanes that hold no finite number.
using Holes = VecInt;

static inline Holes holes_of(const Vec& x) {
  VecInt r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    // x - x is 0 for finite numbers alone. NOLINTNEXTLINE(misc-redundant-expression)
    r.part[p] = ~Mask(x.part[p] - x.part[p] == Doubles{});
  }
  return r;
}

// And of those that are left out.
static ELLIPSUM_INLINE Holes with_gaps(const Holes& holes, const Gaps& gaps, std::size_t k) {
  const std::int64_t bits = there(gaps, k);
  VecInt r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    Mask lane;
    for (int l = 0; l < register_lanes; ++l) lane[l] = std::int64_t{1} << (p * register_lanes + l);
    r.part[p] = holes.part[p] | Mask(((Mask{} + bits) & lane) == Mask{});
  }
  return r;
}

static inline Vec fill_holes(const Vec& x, const Holes& holes, const Vec& filling) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p)
    r.part[p] =
        Doubles((Mask(x.part[p]) & ~holes.part[p]) | (Mask(filling.part[p]) & holes.part[p]));
  return r;
}

static inline Vec empty_holes(const Vec& x, const Holes& holes) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = Doubles(Mask(x.part[p]) & ~holes.part[p]);
  return r;
}

// NaN in the lanes of holes, which are 0 in y: all bits are one operation in place of two.
static inline Vec mark_holes(const Vec& y, const Holes& holes, const Vec&) {
  Vec r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = Doubles(Mask(y.part[p]) | holes.part[p]);
  return r;
}

// One more in each lane of a hole.
static inline VecInt count_holes(const VecInt& absent, const Holes& holes) {
  VecInt r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = absent.part[p] - holes.part[p];
  return r;
}

#endif
