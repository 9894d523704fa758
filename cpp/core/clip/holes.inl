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

// A bit for each of n numbers, a multiple of 8: byte k of the words, whose lowest comes first, has
// those of the k-th eight.
template <std::size_t most> struct HoleBits {
  std::uint64_t words[most / 64];
  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(words); }
  const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(words); }

  void clear(std::size_t n) { std::memset(words, 0, words_of_bits(n) * sizeof *words); }
  void copy(const std::uint64_t* from, std::size_t n) {
    std::memcpy(words, from, words_of_bits(n) * sizeof *words);
  }
  void copy_to(std::uint64_t* to, std::size_t n) const {
    std::memcpy(to, words, words_of_bits(n) * sizeof *words);
  }
  // What is not there.
  ELLIPSUM_INLINE void read(const Gaps& gaps, std::size_t n) {
    clear(n);
    if (!gaps.at) return;
    std::size_t w = 0;
    for (; 64 * (w + 1) <= n; ++w) {
      std::uint64_t bits;
      std::memcpy(&bits, gaps.at + 8 * w, sizeof bits);
      if (gaps.more)
        bits = bits >> gaps.shift | std::uint64_t(gaps.at[8 * w + 8]) << (64 - gaps.shift);
      words[w] = ~bits;
    }
    for (std::size_t k = 8 * w; 8 * k < n; ++k) bytes()[k] = std::uint8_t(~there(gaps, k));
  }
  ELLIPSUM_INLINE std::int64_t count(std::size_t n) const {
    std::int64_t bits = 0;
    for (std::size_t w = 0; w < words_of_bits(n); ++w) bits += __builtin_popcountll(words[w]);
    return bits;
  }
};

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

// The same of a byte of such bits.
static ELLIPSUM_INLINE Holes with_gone(Holes holes, std::uint8_t gone) { return holes | gone; }
static ELLIPSUM_INLINE std::uint8_t byte_of(Holes holes) { return holes; }

static inline Vec fill_holes(const Vec& x, Holes holes, const Vec& filling) {
  return {{_mm512_mask_mov_pd(x.part[0], holes, filling.part[0])}};
}

// 0 in the lanes of holes.
static inline Vec empty_holes(const Vec& x, Holes holes) { return fill_holes(x, holes, fill(0.0)); }

// What is no finite number in the lanes of holes, which are 0 in y: what was read, or a NaN.
static inline Vec mark_holes(const Vec& y, Holes holes, const Vec& read) {
  return fill_holes(y, holes, read);
}

// One more in each lane of a hole; or in one register for all of them.
static inline Mask count_holes(const Mask& absent, Holes holes) {
  const __m512i a = __m512i(absent);
  return Mask(_mm512_mask_sub_epi64(a, holes, a, _mm512_set1_epi64(-1)));
}
static inline VecInt count_holes(const VecInt& absent, Holes holes) {
  return {{count_holes(absent.part[0], holes)}};
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

// And of those that are left out. By halves of lanes: SSE2 compares no more.
static ELLIPSUM_INLINE Holes with_gone(const Holes& holes, std::uint8_t gone) {
  typedef std::int32_t Halves __attribute__((vector_size(sizeof(Mask))));
  VecInt r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    Halves bit;
    for (int l = 0; l < 2 * register_lanes; ++l) bit[l] = 1 << (p * register_lanes + l / 2);
    r.part[p] = holes.part[p] | Mask(((Halves{} + std::int32_t(gone)) & bit) == bit);
  }
  return r;
}
static ELLIPSUM_INLINE Holes with_gaps(const Holes& holes, const Gaps& gaps, std::size_t k) {
  return with_gone(holes, std::uint8_t(~there(gaps, k)));
}

static ELLIPSUM_INLINE std::uint8_t byte_of(const Holes& holes) {
  unsigned bits = 0;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) bits |= signs((Ints)holes.part[p]) << (p * register_lanes);
  return std::uint8_t(bits);
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

// One more in each lane of a hole; or in one register for all of them.
static ELLIPSUM_INLINE Mask count_holes(const Mask& absent, const Holes& holes) {
  Mask sum = absent;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) sum -= holes.part[p];
  return sum;
}
static inline VecInt count_holes(const VecInt& absent, const Holes& holes) {
  VecInt r;
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) r.part[p] = absent.part[p] - holes.part[p];
  return r;
}

#endif

// How many holes each of n rows has, of a column after another: bit r of plane k is bit k of the count of
// row r, so that a column costs two operations on 1/64 words a row for each bit of d, and no branch.
template <std::size_t most> class HoleCounts {
 public:
  void clear() { columns_ = used_ = 0; }
  // One more in each row that has a bit in `carry`, which is used up.
  ELLIPSUM_INLINE void add(HoleBits<most>& carry, std::size_t n) {
    if (++columns_ >> used_) planes_[used_++].clear(n);
    for (std::size_t k = 0; k < used_; ++k) {
      HoleBits<most>& plane = planes_[k];
      for (std::size_t w = 0; w < words_of_bits(n); ++w) {
        const std::uint64_t both = plane.words[w] & carry.words[w];
        plane.words[w] ^= carry.words[w], carry.words[w] = both;
      }
    }
  }
  // Of the eight rows from r on.
  ELLIPSUM_INLINE VecInt of(std::size_t r) const {
    VecInt count{};
    for (std::size_t k = used_; k-- > 0;) {
      ELLIPSUM_UNROLL
      for (int p = 0; p < vec_parts; ++p) count.part[p] += count.part[p];
      count = count_holes(count, with_gone(Holes{}, planes_[k].bytes()[r / vec_lanes]));
    }
    return count;
  }
  // How many rows have one.
  std::int64_t rows(std::size_t n) const {
    HoleBits<most> some;
    some.clear(n);
    for (std::size_t k = 0; k < used_; ++k)
      for (std::size_t w = 0; w < words_of_bits(n); ++w) some.words[w] |= planes_[k].words[w];
    return some.count(n);
  }

 private:
  HoleBits<most> planes_[40];  // no memory holds 2^40 columns
  std::size_t used_ = 0;       // the bits of `columns_`
  std::uint64_t columns_ = 0;
};
