// Eight contiguous rows of D <= 8 numbers, as D columns of eight: one lane is one row in all of them; which
// one, is the target's matter. Permutations on AVX-512: D for D = 2, 6 for 3, 8 for 4, 17 + D for 5 to 7, 24 for
// 8; of half the width on AVX2: 4, 15, 16, 22 to 32. Numbers may be read twice, of which one reading is used;
// none outside the rows are read.
#pragma once
#include <utility>

#include "simd/eight.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {
namespace simd {

#if defined(__AVX2__)

// The first `register_lanes` numbers of row r, of the last row its last ones: those before them are moved
// behind them.
template <class T, int D> inline Doubles load_row(const char* rows, int r) {
  constexpr int size = int(sizeof(T)), over = register_lanes - D;
  if constexpr (over > 0)
    if (r + 1 == vec_lanes)
      return rotated<over>(load_widened<T>(rows + (vec_lanes * D - register_lanes) * size));
  return load_widened<T>(rows + r * D * size);
}

#endif
#if defined(__AVX512F__)

inline Doubles even_quarters(Doubles a, Doubles b) { return _mm512_shuffle_f64x2(a, b, 0x88); }
inline Doubles odd_quarters(Doubles a, Doubles b) { return _mm512_shuffle_f64x2(a, b, 0xdd); }

template <class T, int D> inline void load_columns(const char* rows, Vec (&column)[D]) {
  const auto run = [&](int k) { return load_widened<T>(rows + k * vec_lanes * int(sizeof(T))); };
  if constexpr (D == 1) {
    column[0] = {{run(0)}};
  } else if constexpr (D == 2) {
    const Doubles a = run(0), b = run(1);
    column[0] = {{_mm512_unpacklo_pd(a, b)}}, column[1] = {{_mm512_unpackhi_pd(a, b)}};
  } else if constexpr (D == 3) {
    const Doubles a = run(0), b = run(1), c = run(2);
    const auto take = [&](__m512i of_two, int of_third, __m512i at) {
      return Vec{{_mm512_mask_permutexvar_pd(_mm512_permutex2var_pd(a, of_two, b),
                                             __mmask8(of_third), at, c)}};
    };
    const auto entries = [](int j) {  // of column j in the rows; modulo 8 in the third run
      return _mm512_setr_epi64(j, 3 + j, 6 + j, 9 + j, 12 + j, 15 + j, 18 + j, 21 + j);
    };
    column[0] = take(entries(0), 0xc0, entries(0));
    column[1] = take(entries(1), 0xe0, entries(1));
    column[2] = take(entries(2), 0xe0, entries(2));
  } else if constexpr (D == 4) {
    const Doubles a = run(0), b = run(1), c = run(2), d = run(3);
    const Doubles even = _mm512_unpacklo_pd(a, b), odd = _mm512_unpackhi_pd(a, b);
    const Doubles more_even = _mm512_unpacklo_pd(c, d), more_odd = _mm512_unpackhi_pd(c, d);
    column[0] = {{even_quarters(even, more_even)}}, column[2] = {{odd_quarters(even, more_even)}};
    column[1] = {{even_quarters(odd, more_odd)}}, column[3] = {{odd_quarters(odd, more_odd)}};
  } else {
    Doubles even[4], odd[4];  // columns of two rows
    ELLIPSUM_UNROLL
    for (int k = 0; k < 4; ++k) {
      const Doubles a = load_row<T, D>(rows, 2 * k), b = load_row<T, D>(rows, 2 * k + 1);
      even[k] = _mm512_unpacklo_pd(a, b), odd[k] = _mm512_unpackhi_pd(a, b);
    }
    const auto put = [&](int j, Doubles low, Doubles high) {  // columns j and j + 4
      column[j] = {{even_quarters(low, high)}};
      if (j + 4 < D) column[j + 4] = {{odd_quarters(low, high)}};
    };
    put(0, even_quarters(even[0], even[1]), even_quarters(even[2], even[3]));
    put(1, even_quarters(odd[0], odd[1]), even_quarters(odd[2], odd[3]));
    put(2, odd_quarters(even[0], even[1]), odd_quarters(even[2], even[3]));
    put(3, odd_quarters(odd[0], odd[1]), odd_quarters(odd[2], odd[3]));
  }
}

#elif defined(__AVX2__)

// Columns of four rows of four numbers, the first of which is of column `first`, to part p of those from
// `least` on.
template <int D>
inline void transpose(const Doubles (&row)[4], int first, int least, int p, Vec (&column)[D]) {
  const Doubles even = _mm256_unpacklo_pd(row[0], row[1]), odd = _mm256_unpackhi_pd(row[0], row[1]);
  const Doubles more_even = _mm256_unpacklo_pd(row[2], row[3]),
                more_odd = _mm256_unpackhi_pd(row[2], row[3]);
  const auto put = [&](int j, Doubles of_rows) {
    if (first + j >= least && first + j < D) column[first + j].part[p] = of_rows;
  };
  put(0, _mm256_permute2f128_pd(even, more_even, 0x20));
  put(1, _mm256_permute2f128_pd(odd, more_odd, 0x20));
  put(2, _mm256_permute2f128_pd(even, more_even, 0x31));
  put(3, _mm256_permute2f128_pd(odd, more_odd, 0x31));
}

template <class T, int D> inline void load_columns(const char* rows, Vec (&column)[D]) {
  constexpr int size = int(sizeof(T));
  const auto run = [&](int k) { return load_widened<T>(rows + k * register_lanes * size); };
  ELLIPSUM_UNROLL
  for (int p = 0; p < vec_parts; ++p) {
    if constexpr (D == 1) {
      column[0].part[p] = run(p);
    } else if constexpr (D == 2) {
      const Doubles a = run(2 * p), b = run(2 * p + 1);
      column[0].part[p] = _mm256_unpacklo_pd(a, b), column[1].part[p] = _mm256_unpackhi_pd(a, b);
    } else {
      const int r = p * register_lanes;
      const Doubles first[4] = {load_row<T, D>(rows, r), load_row<T, D>(rows, r + 1),
                                load_row<T, D>(rows, r + 2), load_row<T, D>(rows, r + 3)};
      transpose(first, 0, 0, p, column);
      if constexpr (D > 4) {  // the last four of each row: some are here already
        const auto last = [&](int k) { return load_widened<T>(rows + ((k + 1) * D - 4) * size); };
        const Doubles rest[4] = {last(r), last(r + 1), last(r + 2), last(r + 3)};
        transpose(rest, D - 4, 4, p, column);
      }
    }
  }
}

#else

// Lane l of column j is entry l D + j.
template <int D, int j> struct Column {
  static constexpr int entry(int lane) { return lane * D + j; }
  static Vec take(const Vec (&runs)[D]) {
    return {{pair<0>(runs), pair<2>(runs), pair<4>(runs), pair<6>(runs)}};
  }
  template <int l> static Doubles pair(const Vec (&runs)[D]) {
    constexpr int a = entry(l), b = entry(l + 1);
    return one_of_each<a % 2, b % 2>(runs[a / 8].part[a % 8 / 2], runs[b / 8].part[b % 8 / 2]);
  }
};

template <class T, int D, int... j>
inline void take_columns(const char* rows, Vec (&column)[D], std::integer_sequence<int, j...>) {
  const Vec runs[D] = {load<T>(rows + j * vec_lanes * int(sizeof(T)))...};
  ((column[j] = Column<D, j>::take(runs)), ...);
}
template <class T, int D> inline void load_columns(const char* rows, Vec (&column)[D]) {
  take_columns<T>(rows, column, std::make_integer_sequence<int, D>());
}

#endif

}  // namespace simd
}  // namespace
}  // namespace ELLIPSUM_TARGET
}  // namespace ellipsum
