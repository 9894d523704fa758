"""The mutations of ``mutations.py`` in the C++ core."""

from __future__ import annotations

from mutation import SUM_TESTS, C, Mutation

CORE = [
    Mutation(
        "clip, C++: a huge row is not moved in",
        C + "clip/exceptional.inl",
        "const double factor = outside ? radius / norm",
        "const double factor = outside ? 2 * radius / norm",
        SUM_TESTS,
    ),
    Mutation(
        "clip, C++: infinities are numbers",
        C + "clip/exceptional.inl",
        "~Mask(x.part[p] - x.part[p] == Doubles{})",
        "~Mask(x.part[p] == x.part[p])",
        "tests/test_holes.py",
    ),
    Mutation(
        "clip, C++: the streaming clamp is at twice the limit",
        C + "clip/stream.inl",
        "clamp(y, load<double>(record + limit_slot));\n      g.changed",
        "clamp(y, load<double>(record + limit_slot) * fill(2.0));\n      g.changed",
        SUM_TESTS,
    ),
    Mutation(
        "clip, C++: matrix inputs keep 30 bits",
        C + "clip/clip.hpp",
        "h * 0x1.000001p24",
        "h * 0x1.000002p23",
        SUM_TESTS,
    ),
    Mutation(
        "low rank, C++: the products are not rounded to 29 bits",
        C + "clip/matrix.inl",
        "store(at, split_29_bits(sums, ",
        "store(at, sums + fill(0.0) * split_29_bits(sums, ",
        "tests/test_low_rank.py",
    ),
    Mutation(
        "huge rows, C++: the exponent is that of numbers not rounded",
        C + "clip/exceptional.inl",
        "const double m = round_to_29_bits(std::frexp(h[j], &e));",
        "const double m = std::frexp(h[j], &e);",
        "tests/test_clip_kernels.py -k threshold",
    ),
    Mutation(
        "merge, C++: no carry",
        C + "clip/exact_sum.hpp",
        "const std::uint64_t carry = sum < low[j];",
        "const std::uint64_t carry = 0;",
        "tests/test_exact_sum.py",
    ),
    Mutation(
        "threads, C++: parts overlap by a row",
        C + "clip/clip_sum.cpp",
        "batch.n / count + (t < batch.n % count));",
        "batch.n / count + (t + 1 < count));",
        SUM_TESTS,
    ),
    Mutation(
        "halves, C++: magnitudes with their sign",
        C + "clip/clip.hpp",
        "partial[d + j] += (size - sum) / 2;",
        "partial[d + j] += (sum - size) / 2;",
        "tests/test_adaptive.py tests/test_passes.py",
    ),
    Mutation(
        "clip, C++: a hole is zero, not the centre",
        C + "clip/exceptional.inl",
        "store(x + j, fill_holes(read, holes, load_some<double>(center + j, d - j)));",
        "store(x + j, fill_holes(read, holes, fill(0.0)));",
        "tests/test_holes.py",
    ),
    Mutation(
        "noise, C++: nothing is ambiguous",
        C + "noise/gaussian.hpp",
        "subtract(broadcast(0.5), multiply(s, broadcast(z_error)))",
        "broadcast(2.0)",
        "tests/test_noise.py tests/test_key_stream.py",
    ),
    Mutation(
        "noise, C++: the tail's uncertainty left out",
        C + "noise/gaussian.hpp",
        "not_less(multiply_add(s, two_over_m, off), limit)",
        "not_less(off, limit)",
        "tests/test_noise.py tests/test_key_stream.py",
    ),
    Mutation(
        "noise, C++: the slow path without its error",
        C + "noise/gaussian_resolve.cpp",
        "const Unsigned error = newton_error + (top < 121 ? Unsigned(1) << (121 - top) : 1);",
        "const Unsigned error = 0 * (newton_error + Unsigned(top));",
        "tests/test_noise.py tests/test_key_stream.py",
    ),
    Mutation(
        "key stream, C++: the nonce's high word is dropped",
        C + "noise/chacha20.hpp",
        "d.w3 = simd::words(std::uint32_t(nonce >> 32));",
        "d.w3 = simd::words(0);",
        "tests/test_noise.py tests/test_key_stream.py",
    ),
    Mutation(
        "keys, C++: strings with one hash and one length are one",
        C + "keys/key_table.cpp",
        "if (word_at(a + i) != word_at(b + i)) return false;",
        "if (a == nullptr) return false;",
        "tests/test_group_keys.py",
    ),
    Mutation(
        "keys, C++: a string is compared without its last word",
        C + "keys/key_table.cpp",
        "return last_word(a, size) == last_word(b, size);",
        "return true;",
        "tests/test_group_keys.py",
    ),
    Mutation(
        "two Gaussians, C++: no margin for the roundings of the terms",
        C + "quadratic_form/pair.cpp",
        "const double doubt = terms.doubt + 8 * normal",
        "const double doubt = 0 * terms.doubt + 8 * normal",
        "tests/test_gaussian_pair.py -k never_below",
    ),
]
