// What AVX-512 does in its own way. Included by gaussian.hpp inside its namespace.

inline Doubles to_double(Ints m) { return _mm512_cvtepi64_pd(m); }

// Stores the nearest integers to v and returns them as doubles.
inline Doubles store_nearest(Doubles v, std::int64_t* out) {
  const Ints nearest = _mm512_cvtpd_epi64(v);
  simd::store_integers(out, nearest);
  return _mm512_cvtepi64_pd(nearest);
}

// n / d from a reciprocal of 14 bits, doubled twice: the divider is left to the square root.
inline Doubles quotient(Doubles n, Doubles d) {
  const Doubles rough = _mm512_rcp14_pd(d);
  const Doubles r = _mm512_fmadd_pd(rough, _mm512_fnmadd_pd(d, rough, simd::broadcast(1)), rough);
  const Doubles q = _mm512_mul_pd(n, r);
  return _mm512_fmadd_pd(r, _mm512_fnmadd_pd(d, q, n), q);
}

// 64 - log2 m: the mantissa times a tabulated reciprocal 2^s is 1 + r with |r| <= 0.0305. The
// tables stay in registers.
inline void tail_bits(const Doubles* m, Doubles* bits) {
  namespace c = gaussian_coefficients;
  Doubles r[width], whole[width], p[width];
  for (std::size_t g = 0; g < width; ++g) {
    const Doubles mantissa = _mm512_getmant_pd(m[g], _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
    const Ints index = _mm512_srli_epi64(simd::bits_of(m[g]), 48);  // its low 4 bits count
    const Doubles reciprocal = _mm512_permutex2var_pd(simd::load_doubles(c::reciprocal), index,
                                                      simd::load_doubles(c::reciprocal + 8));
    const Doubles s_plus_64 =
        _mm512_permutex2var_pd(simd::load_doubles(c::log2_reciprocal_plus_64), index,
                               simd::load_doubles(c::log2_reciprocal_plus_64 + 8));
    r[g] = _mm512_fmsub_pd(mantissa, reciprocal, simd::broadcast(1));
    whole[g] = simd::subtract(s_plus_64, _mm512_getexp_pd(m[g]));  // exact
  }
  horner(c::log_poly, r, p);
  for (std::size_t g = 0; g < width; ++g) bits[g] = _mm512_fnmadd_pd(r[g], p[g], whole[g]);
}
