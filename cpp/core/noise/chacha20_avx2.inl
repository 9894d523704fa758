// Two quarter rounds side by side on 16 registers, written out because no compiler gets by without
// spilling: a, b and d of all four columns are 12 of them, sums and shifts of two the others; c and
// the two shuffles stay in memory, where each c is read and written once a quarter round.
// Included by chacha20.hpp inside its namespace.
alignas(32) constexpr std::uint8_t rotated_16[32] = {2, 3,  0,  1,  6,  7, 4,  5,  10, 11, 8,
                                                     9, 14, 15, 12, 13, 2, 3,  0,  1,  6,  7,
                                                     4, 5,  10, 11, 8,  9, 14, 15, 12, 13};
alignas(32) constexpr std::uint8_t rotated_8[32] = {3,  0,  1,  2,  7,  4,  5,  6,  11, 8, 9,
                                                    10, 15, 12, 13, 14, 3,  0,  1,  2,  7, 4,
                                                    5,  6,  11, 8,  9,  10, 15, 12, 13, 14};

// clang-format off
// a += b, d = (d ^ a) rotated by whole bytes.
#define ELLIPSUM_ADD_A(bytes)           \
  "vpaddd %[b0], %[a0], %[a0]\n\t"      \
  "vpaddd %[b1], %[a1], %[a1]\n\t"      \
  "vpxor %[a0], %[d0], %[d0]\n\t"       \
  "vpxor %[a1], %[d1], %[d1]\n\t"       \
  "vpshufb " bytes ", %[d0], %[d0]\n\t" \
  "vpshufb " bytes ", %[d1], %[d1]\n\t"
// b = (b ^ c) rotated.
#define ELLIPSUM_XOR_B(left, right)     \
  "vpxor %[c0], %[b0], %[b0]\n\t"       \
  "vpxor %[c1], %[b1], %[b1]\n\t"       \
  "vpsrld $" right ", %[b0], %[t0]\n\t" \
  "vpsrld $" right ", %[b1], %[t1]\n\t" \
  "vpslld $" left ", %[b0], %[b0]\n\t"  \
  "vpslld $" left ", %[b1], %[b1]\n\t"  \
  "vpor %[t0], %[b0], %[b0]\n\t"        \
  "vpor %[t1], %[b1], %[b1]\n\t"
// clang-format on

inline void two_quarter_rounds(Words32& a0, Words32& b0, Words32& at0, Words32& d0, Words32& a1,
                               Words32& b1, Words32& at1, Words32& d1) {
  Words32 c0, c1, t0, t1;
  __asm__(ELLIPSUM_ADD_A("%[by16]")
          "vpaddd %[at0], %[d0], %[c0]\n\t"
          "vpaddd %[at1], %[d1], %[c1]\n\t"
          ELLIPSUM_XOR_B("12", "20")
          ELLIPSUM_ADD_A("%[by8]")
          "vpaddd %[c0], %[d0], %[c0]\n\t"
          "vpaddd %[c1], %[d1], %[c1]\n\t"
          "vmovdqa %[c0], %[at0]\n\t"
          "vmovdqa %[c1], %[at1]\n\t"
          ELLIPSUM_XOR_B("7", "25")
          : [a0] "+x"(a0), [b0] "+x"(b0), [d0] "+x"(d0), [a1] "+x"(a1), [b1] "+x"(b1),
            [d1] "+x"(d1), [at0] "+m"(at0), [at1] "+m"(at1), [c0] "=&x"(c0), [c1] "=&x"(c1),
            [t0] "=&x"(t0), [t1] "=&x"(t1)
          : [by16] "m"(rotated_16), [by8] "m"(rotated_8));
}
#undef ELLIPSUM_ADD_A
#undef ELLIPSUM_XOR_B
