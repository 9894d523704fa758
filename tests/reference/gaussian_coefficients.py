"""Constants of the rounded Gaussian, computed with mpmath and written for both backends.

    python tests/reference/gaussian_coefficients.py [--check]

Writes ``cpp/core/noise/gaussian_coefficients.hpp`` and
``python/ellipsum/kernels/twins/gaussian_coefficients.py`` (``--check`` compares instead) and prints
the measured approximation errors that docs/guarantees/noise.md quotes. About a minute.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 50
ROOT = Path(__file__).parents[2]
HEADER = ROOT / "cpp/core/noise/gaussian_coefficients.hpp"
MODULE = ROOT / "python/ellipsum/kernels/twins/gaussian_coefficients.py"

BITS_MAX = 64  # tail probabilities p >= 2^-64
KNEE = 17  # the error of z may grow like 1/p from p = 2^-17 on
ABOVE, BELOW = 8, 7  # degrees of z = N(t)/D(t), t = sqrt(-log2 p) - 1
ATANH_DEGREE = 6  # of log2((1+f)/(1-f))/f in f^2, |f| <= 3 - 2 sqrt 2
INVERSE_DEGREE = 3  # of 1/d, sqrt(1/2) <= d - 1 <= sqrt 2: the start of a Newton step
LOG_DEGREE = 6  # of log2(1+r)/r, |r| <= 0.0305
TABLE_BITS = 4  # the mantissa's leading bits choose the reciprocal
NODES = 78  # of the resolver's table: x_j = j/8, up to 9.625
FRACTION = 125  # its fixed point: 2^-125

Function = Callable[[mpf], mpf]


def upper_quantile(bits: mpf) -> mpf:
    """z >= 0 with P(Z > z) = 2^-bits: Newton's method on log P, from the asymptotic start."""
    target = -bits * mp.log(2)
    z = mp.sqrt(-2 * target) - mpf("0.8")
    while True:
        tail = mp.erfc(z / mp.sqrt(2)) / 2
        step = (mp.log(tail) - target) * tail / mp.npdf(z)
        z += step
        if abs(step) < mpf(10) ** (5 - mp.dps):
            return z


def polynomial(coefficients: list[mpf], x: mpf) -> mpf:
    return mp.polyval(coefficients[::-1], x)


def ratio(solution: list[mpf], x: mpf) -> mpf:
    numerator, denominator = solution[: ABOVE + 1], [mpf(1), *solution[ABOVE + 1 :]]
    return polynomial(numerator, x) / polynomial(denominator, x)


def chebyshev(a: mpf, b: mpf, count: int) -> list[mpf]:
    return [
        (a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * (i + mpf(1) / 2) / count) for i in range(count)
    ]


def interpolate(f: Function, nodes: list[mpf]) -> list[mpf]:
    """Numerator and denominator (without its leading 1) of the rational interpolant."""
    size = ABOVE + BELOW + 1
    matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
    for i, x in enumerate(nodes):
        right[i] = f(x)
        for j in range(ABOVE + 1):
            matrix[i, j] = x**j
        for j in range(1, BELOW + 1):
            matrix[i, ABOVE + j] = -right[i] * x**j
    return list(mp.lu_solve(matrix, right))


def weighted_error(solution: list[mpf], f: Function, t: mpf) -> mpf:
    return abs(ratio(solution, t) - f(t)) / (1 + mpf(2) ** ((t + 1) ** 2 - KNEE))


def worst_between(solution: list[mpf], f: Function, a: mpf, b: mpf) -> mpf:
    return max(weighted_error(solution, f, a + (b - a) * k / 8) for k in range(9))


def minimax_ratio(f: Function, b: mpf, rounds: int = 60) -> list[mpf]:
    """Weighted near-minimax on [0, b]: nodes moved until the lobes of the error are level.

    Each gap between nodes is scaled by a power of its lobe (de Boor's balancing).
    """
    nodes = chebyshev(mpf(0), mp.sqrt(KNEE + 12) - 1, ABOVE + BELOW + 1)
    best: tuple[mpf, list[mpf]] | None = None
    for _ in range(rounds):
        solution = interpolate(f, nodes)
        gaps = list(pairwise([mpf(0), *nodes, b]))
        lobes = [worst_between(solution, f, *gap) for gap in gaps]
        if best is None or max(lobes) < best[0]:
            best = (max(lobes), solution)
        level = mp.exp(sum(map(mp.log, lobes)) / len(lobes))
        widths = [
            (hi - lo) * (level / e) ** mpf("0.08") for (lo, hi), e in zip(gaps, lobes, strict=True)
        ]
        scale = b / sum(widths)
        nodes = [scale * sum(widths[: i + 1]) for i in range(len(widths) - 1)]
    assert best is not None
    return best[1]


def report(name: str, error: mpf) -> None:
    print(f"{name}: 2^{mp.nstr(mp.log(error, 2), 6)}")


def rational() -> tuple[list[float], list[float]]:
    top = mp.sqrt(BITS_MAX) - 1
    cache: dict[mpf, mpf] = {}

    def f(t: mpf) -> mpf:
        if t not in cache:
            cache[t] = upper_quantile((t + 1) ** 2)
        return cache[t]

    solution = [mpf(float(c)) for c in minimax_ratio(f, top)]
    error = max(weighted_error(solution, f, top * k / 3000) for k in range(3001))
    report(f"z: absolute error over 1 + 2^-{KNEE}/p", error)
    return [float(c) for c in solution[: ABOVE + 1]], [1.0, *map(float, solution[ABOVE + 1 :])]


def near_minimax(
    name: str, f: Function, a: mpf, b: mpf, degree: int, weight: Function
) -> list[float]:
    fitted = [mpf(float(c)) for c in mp.chebyfit(f, [a, b], degree + 1)][::-1]
    points = chebyshev(a, b, 1000)
    report(name, max(abs(polynomial(fitted, x) - f(x)) * weight(x) for x in points))
    return [float(c) for c in fitted]


def atanh_polynomial() -> list[float]:
    def f(q: mpf) -> mpf:
        root = mp.sqrt(q)
        return 2 * mp.atanh(root) / root / mp.log(2)

    top = (3 - 2 * mp.sqrt(2)) ** 2 * (1 + mpf(2) ** -40)
    return near_minimax(
        "log2 by atanh, absolute error", f, mpf(2) ** -60, top, ATANH_DEGREE, mp.sqrt
    )


def inverse_polynomial() -> list[float]:
    root = mp.sqrt(2)
    return near_minimax(
        "1/d, relative error", lambda d: 1 / d, 1 + 1 / root, 1 + root, INVERSE_DEGREE, lambda d: d
    )


def reciprocals() -> tuple[list[float], list[float]]:
    """2^s near 1/centre of each mantissa interval, and s to 12 bits: the logarithm of the double
    is s within 2^-53.4."""
    count = 1 << TABLE_BITS
    centres = [1 + (i + mpf(1) / 2) / count for i in range(count)]
    logs = [mp.nint(-mp.log(centre, 2) * 2**12) / 2**12 for centre in centres]
    return [float(mpf(2) ** s) for s in logs], [float(s) for s in logs]


def table_polynomial() -> list[float]:
    def f(r: mpf) -> mpf:
        return (mp.log1p(r) / r if r else mpf(1)) / mp.log(2)

    edge = mpf("0.0305")  # 1/33, and what the 12 bits of s add
    return near_minimax("log2 by table, absolute error", f, -edge, edge, LOG_DEGREE, abs)


def node(j: int) -> tuple[int, int, int]:
    """Q/phi at x = j/8 in units of 2^-125; 1/phi = fraction * 2^(exponent - 127)."""
    x = mpf(j) / 8
    tail, density = mp.erfc(x / mp.sqrt(2)) / 2, mp.npdf(x)
    exponent = int(mp.floor(-mp.log(density, 2)))
    fraction = mp.nint(mp.ldexp(1 / density, 127 - exponent))
    return int(mp.nint(mp.ldexp(tail / density, FRACTION))), int(fraction), exponent


def cpp_array(name: str, values: list[float]) -> str:
    body = ",\n    ".join(v.hex() for v in values)
    return f"constexpr double {name}[{len(values)}] = {{\n    {body}}};\n"


def cpp_nodes() -> str:
    def halves(value: int) -> str:
        return f"0x{value >> 64:016x}, 0x{value & (2**64 - 1):016x}"

    rows = ",\n    ".join(
        f"{{{halves(mills)}, {halves(fraction)}, {exponent}}}"
        for mills, fraction, exponent in map(node, range(NODES))
    )
    return f"constexpr GaussianNode nodes[{NODES}] = {{\n    {rows}}};\n"


HEADER_TEXT = """\
// Written by tests/reference/gaussian_coefficients.py; do not edit.
#pragma once
#include <cstdint>

namespace ellipsum {{
namespace {{
namespace gaussian_coefficients {{

// z = N(t)/D(t), t = sqrt(-log2 p) - 1; constant term first.
{numerator}
{denominator}
// log2((1+f)/(1-f))/f in f^2.
{atanh}
// 1/d to 13 bits, 1 + sqrt(1/2) <= d <= 1 + sqrt(2).
{inverse}
// log2(1+r)/r.
{table_poly}
// Near the reciprocals of the centres of [1 + i/16, 1 + (i+1)/16): 2^s with s of 12 bits.
{recip}
{logs}
#ifdef ELLIPSUM_GAUSSIAN_NODES
// At x = j/8: Q/phi in units of 2^-{fraction}; 1/phi = fraction * 2^(exponent - 127).
struct GaussianNode {{
  std::uint64_t mills_high, mills_low, fraction_high, fraction_low;
  int exponent;
}};
{nodes}#endif

}}  // namespace gaussian_coefficients
}}  // namespace
}}  // namespace ellipsum
"""

MODULE_TEXT = '''\
"""Written by tests/reference/gaussian_coefficients.py; do not edit."""

#: z = N(t)/D(t), t = sqrt(-log2 p) - 1; constant term first.
NUMERATOR = {numerator}
DENOMINATOR = {denominator}
#: log2((1+f)/(1-f))/f in f^2.
ATANH = {atanh}
'''


def python_tuple(values: list[float]) -> str:
    return "(\n" + "".join(f"    {v!r},\n" for v in values) + ")"


def texts() -> tuple[str, str]:
    numerator, denominator = rational()
    atanh, table_poly, inverse = atanh_polynomial(), table_polynomial(), inverse_polynomial()
    recip, logs = reciprocals()
    header = HEADER_TEXT.format(
        fraction=FRACTION,
        numerator=cpp_array("numerator", numerator),
        denominator=cpp_array("denominator", denominator),
        atanh=cpp_array("atanh_poly", atanh),
        table_poly=cpp_array("log_poly", table_poly),
        recip=cpp_array("reciprocal", recip),
        logs=cpp_array("log2_reciprocal_plus_64", [64 + s for s in logs]),
        inverse=cpp_array("inverse_poly", inverse),
        nodes=cpp_nodes(),
    )
    module = MODULE_TEXT.format(
        numerator=python_tuple(numerator),
        denominator=python_tuple(denominator),
        atanh=python_tuple(atanh),
    )
    return header, module


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="compare with the files, write nothing"
    )
    check = parser.parse_args().check
    same = True
    for path, text in zip((HEADER, MODULE), texts(), strict=True):
        if check:
            same &= path.read_text() == text
        else:
            path.write_text(text)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
