// Eight contiguous rows of D <= 14 numbers, as D columns of eight: one lane is one row in all of them; which
// one, is the target's matter. Permutations on AVX-512: D for D = 2, 6 for 3, 8 for 4, 17 + D for 5 to 7, 24 for
// 8, 31, 34, 35, 36 for 9 to 12, 45 and 46 for 13 and 14; of half the width on AVX2: 4, 15, 16, 22 to 32, and 16 for
// each four columns more. Numbers may be read twice, of which one reading is used; none outside the rows are read.
#pragma once
#include <utility>

#include "simd/eight.hpp"

namespace ellipsum {
namespace ELLIPSUM_TARGET {
namespace {
namespace simd {

#if defined(__AVX2__)

// On AVX-512 the compiler reads what two permutations take twice; most of it crosses lines, and rows of eight
// float64 took 1.15 times as long. (On AVX2 loads are cheaper than registers.)
template <class T> inline Doubles load_once(const char* p) {
  Doubles numbers = load_widened<T>(p);
#if defined(__AVX512F__)
  __asm__("" : ELLIPSUM_REGISTER(numbers));
#endif
  return numbers;
}

// The first `register_lanes` numbers of row r, of the last row its last ones: those before them are moved
// behind them.
template <class T, int D> inline Doubles load_row(const char* rows, int r) {
  constexpr int size = int(sizeof(T)), over = register_lanes - D;
  if constexpr (over > 0)
    if (r + 1 == vec_lanes)
      return rotated<over>(load_widened<T>(rows + (vec_lanes * D - register_lanes) * size));
  return load_once<T>(rows + r * D * size);
}

#endif
#if defined(__AVX512F__)

// Four numbers from either place.
template <class T> inline Doubles load_fours(const char* low, const char* high) {
  if constexpr (std::is_same_v<T, float>) {
    const auto* a = reinterpret_cast<const float*>(low);
    const auto* b = reinterpret_cast<const float*>(high);
    return _mm512_cvtps_pd(
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1));
  } else {
    const auto* a = reinterpret_cast<const double*>(low);
    const auto* b = reinterpret_cast<const double*>(high);
    return _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(a)), _mm256_loadu_pd(b), 1);
  }
}
inline Doubles even_quarters(Doubles a, Doubles b) { return _mm512_shuffle_f64x2(a, b, 0x88); }
inline Doubles odd_quarters(Doubles a, Doubles b) { return _mm512_shuffle_f64x2(a, b, 0xdd); }

// Eight numbers of eight rows from the `first` one on, of which those of columns from `least` on are put.
template <class T, int D>
inline void transpose(const char* rows, int first, int least, Vec (&column)[D]) {
  Doubles even[4], odd[4];  // columns of two rows
  ELLIPSUM_UNROLL
  for (int k = 0; k < 4; ++k) {
    const char* at = rows + first * int(sizeof(T));
    const Doubles a = load_row<T, D>(at, 2 * k), b = load_row<T, D>(at, 2 * k + 1);
    even[k] = _mm512_unpacklo_pd(a, b), odd[k] = _mm512_unpackhi_pd(a, b);
  }
  const auto put = [&](int j, Doubles low, Doubles high) {  // columns j and j + 4
    if (j >= least && j < D) column[j] = {{even_quarters(low, high)}};
    if (j + 4 >= least && j + 4 < D) column[j + 4] = {{odd_quarters(low, high)}};
  };
  put(first, even_quarters(even[0], even[1]), even_quarters(even[2], even[3]));
  put(first + 1, even_quarters(odd[0], odd[1]), even_quarters(odd[2], odd[3]));
  put(first + 2, odd_quarters(even[0], even[1]), odd_quarters(even[2], even[3]));
  put(first + 3, odd_quarters(odd[0], odd[1]), odd_quarters(odd[2], odd[3]));
}

// Columns from 8 on, of the last four numbers of eight rows.
template <class T, int D> inline void transpose_fours(const char* rows, Vec (&column)[D]) {
  constexpr int first = D - 4;
  const auto two_rows = [&](int r) {
    const char* at = rows + (r * D + first) * int(sizeof(T));
    return load_fours<T>(at, at + 2 * D * int(sizeof(T)));
  };
  const Doubles a = two_rows(0), b = two_rows(1), c = two_rows(4), d = two_rows(5);
  const auto put = [&](int j, Doubles low, Doubles high) {  // columns j and j + 2
    if (j >= vec_lanes) column[j] = {{even_quarters(low, high)}};
    if (j + 2 >= vec_lanes) column[j + 2] = {{odd_quarters(low, high)}};
  };
  put(first, _mm512_unpacklo_pd(a, b), _mm512_unpacklo_pd(c, d));
  put(first + 1, _mm512_unpackhi_pd(a, b), _mm512_unpackhi_pd(c, d));
}

template <class T, int D> inline void load_columns(const char* rows, Vec (&column)[D]) {
  const auto run = [&](int k) { return load_once<T>(rows + k * vec_lanes * int(sizeof(T))); };
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
    transpose<T>(rows, 0, 0, column);
    if constexpr (D > vec_lanes + 4) transpose<T>(rows, D - vec_lanes, vec_lanes, column);
    else if constexpr (D > vec_lanes) transpose_fours<T>(rows, column);
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
      const auto four = [&](int first, int least) {
        const char* at = rows + first * size;
        const Doubles row[4] = {load_row<T, D>(at, r), load_row<T, D>(at, r + 1),
                                load_row<T, D>(at, r + 2), load_row<T, D>(at, r + 3)};
        transpose(row, first, least, p, column);
      };
      four(0, 0);
      ELLIPSUM_UNROLL
      for (int first = 4; first + 4 <= D; first += 4) four(first, first);
      // The last four of each row: some are here already.
      if constexpr (D > 4 && D % 4 != 0) four(D - 4, D - D % 4);
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
