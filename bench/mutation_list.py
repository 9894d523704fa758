"""The mutations of ``mutations.py``: where, what, and which tests ought to see it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MUTATIONS", "Mutation"]


class Mutation(NamedTuple):
    """``old`` stands once in ``file``; ``tests`` are pytest's arguments."""

    name: str
    file: str
    old: str
    new: str
    tests: str


_P, _T, _C = "python/ellipsum/", "python/ellipsum/kernels/twins/", "cpp/core/"
_SUM_TESTS = "tests/test_sensitivity.py tests/test_exact_sum.py tests/test_clip_kernels.py"

MUTATIONS = [
    # ---- sensitivity ----
    Mutation(
        "bound: no room for the rounding of coordinates",
        _P + "ellipsoid.py",
        "* (1 + e_norm) + math.sqrt(self.d) / 2)",
        "* (1 + e_norm))",
        "tests/test_sensitivity.py",
    ),
    Mutation(
        "bound: a box's corner rounded down",
        _P + "ellipsoid.py",
        "corner = np.rint(self._limit)",
        "corner = np.floor(self._limit)",
        "tests/test_sensitivity.py",
    ),
    Mutation(
        "factor: replace counted once",
        _P + "guarantee.py",
        "if no_negative_products else 2.0",
        "if no_negative_products else 1.0",
        "tests/test_sensitivity.py tests/test_audit.py",
    ),
    Mutation(
        "factor: halves and histograms without their root of two",
        _P + "guarantee.py",
        "return math.sqrt(2) if no_negative",
        "return 1.0 if no_negative",
        "tests/test_adaptive.py",
    ),
    Mutation(
        "moments: off-diagonal entries doubled",
        _P + "second_moments.py",
        "+ d - i] *= np.sqrt(2.0)",
        "+ d - i] *= 2.0",
        "tests/test_estimates.py",
    ),
    Mutation(
        "grid: matrices keep 30 bits",
        _P + "grid.py",
        "_SCALE_BITS = 24",
        "_SCALE_BITS = 30",
        "tests/test_clip_kernels.py tests/test_ellipsoid.py",
    ),
    # ---- noise levels, budget ----
    Mutation(
        "level: noise rounded down",
        _P + "guarantee.py",
        "_NOISE_SLACK = 1 + 2.0**-50",
        "_NOISE_SLACK = 1 - 2.0**-50",
        "tests/test_private_sum.py tests/test_adaptive.py",
    ),
    Mutation(
        "share: the sum spends the count's too",
        _P + "private_sum.py",
        "rounded_up(multiplier * bound / math.sqrt(1 - share))",
        "rounded_up(multiplier * bound)",
        "tests/test_audit.py tests/test_private_sum.py",
    ),
    Mutation(
        "share: the count spends all",
        _P + "private_sum.py",
        "rounded_up(multiplier / math.sqrt(share)) if share",
        "rounded_up(multiplier) if share",
        "tests/test_audit.py tests/test_private_sum.py",
    ),
    Mutation(
        "count: its grid is finer than its noise",
        _P + "noise.py",
        "rounded_gaussian(1, sigma * _COUNT_STEPS, key=key)",
        "rounded_gaussian(1, sigma, key=key)",
        "tests/test_private_sum.py tests/test_audit.py",
    ),
    Mutation(
        "plan: shares add up to more than one",
        _P + "adaptive/plan.py",
        "parts[-1] += units - sum(parts)",
        "parts[-1] += units - sum(parts) + 1",
        "tests/test_plan.py tests/test_adaptive.py",
    ),
    Mutation(
        "plan: the rounds spend the count's share",
        _P + "adaptive/plan.py",
        "_rounds(_exact_shares(both, 1 - count))",
        "_rounds(_exact_shares(both, 1 - 0 * count))",
        "tests/test_plan.py tests/test_adaptive.py",
    ),
    Mutation(
        "plan: a step's mu is its share of mu",
        _P + "adaptive/plan.py",
        "return self.mu * math.sqrt(step.share)",
        "return self.mu * step.share**0.25",
        "tests/test_adaptive.py",
    ),
    Mutation(
        "plan: mu rounded up",
        _P + "guarantee.py",
        "return (1 - 2.0**-51) / self.noise_multiplier",
        "return (1 + 2.0**-49) / self.noise_multiplier",
        "tests/test_plan.py",
    ),
    Mutation(
        "calibration: no slack for the kernel",
        _P + "calibrate.py",
        "KERNEL_SLACK = 64 *",
        "KERNEL_SLACK = -64 *",
        "tests/test_calibrate.py",
    ),
    Mutation(
        "calibration: arguments moved inward",
        _P + "calibrate.py",
        "ARGUMENT_SLACK = 4 *",
        "ARGUMENT_SLACK = -4 *",
        "tests/test_calibrate.py",
    ),
    Mutation(
        "wishart: a removal and an addition at the price of one",
        _P + "second_moments.py",
        "eps, delta = eps / 2, delta / (1 + math.exp(eps / 2))",
        "eps, delta = eps, delta",
        "tests/test_audit_plans.py -k wishart",
    ),
    Mutation(
        "wishart: degrees of freedom off by one",
        _P + "wishart.py",
        "best = (cost, nu + d - 1, r2)",
        "best = (cost, nu + d - 2, r2)",
        "tests/test_audit_plans.py -k wishart",
    ),
    Mutation(
        "moments: the count is not paid for",
        _P + "second_moments.py",
        "multiplier / math.sqrt(1 - self.share) * sensitivity",
        "multiplier * sensitivity",
        "tests/test_audit_plans.py -k covariance",
    ),
    # ---- noise, keys ----
    Mutation(
        "keys: the count has the sum's",
        _P + "private_sum.py",
        "key=keys.of(Use.COUNT)",
        "key=keys.of(Use.SUM)",
        "tests/test_noise_keys.py",
    ),
    Mutation(
        "keys: not bound to the job",
        _P + "noise_keys.py",
        "_absorb(state, (use.value, self._job, *draw))",
        "_absorb(state, (use.value, *draw))",
        "tests/test_noise_keys.py",
    ),
    Mutation(
        "keys: not bound to the budget",
        _P + "private_sum.py",
        "promise.neighbors.value, *promise.asked,",
        "promise.neighbors.value,",
        "tests/test_noise_keys.py",
    ),
    Mutation(
        "seed: a seeded release calls itself private",
        _P + "guarantee.py",
        "return () if seed is None else",
        "return () if True else",
        "tests/test_private_sum.py tests/test_release.py",
    ),
    Mutation(
        "caveat: a sum that raises calls itself private",
        _P + "private_sum.py",
        'if total.nonfinite == "raise":',
        'if total.nonfinite == "never":',
        "tests/test_private_sum.py",
    ),
    Mutation(
        "resolver: half an integer is not a boundary",
        _P + "kernels/exact_gaussian.py",
        "return tail((j + Fraction(1, 2)) / sigma",
        "return tail((j + Fraction(9, 16)) / sigma",
        "tests/test_noise.py",
    ),
    Mutation(
        "noise, twin: nothing is ambiguous",
        _T + "noise.py",
        "0.5 - s * Z_ERROR)",
        "2.0)",
        "tests/test_noise.py",
    ),
    Mutation(
        "noise, twin: the tail is not resolved",
        _T + "noise.py",
        "off + s * (2.0 / m) < 0.5",
        "off < 0.5",
        "tests/test_noise.py",
    ),
    # ---- order: what is public when ----
    Mutation(
        "order: a radius from the raw histogram",
        _P + "adaptive/rounds.py",
        "self._remembered(noisy / plan.n",
        "self._remembered(counts / plan.n",
        "tests/test_adaptive.py",
    ),
    Mutation(
        "order: a centre from the raw sums",
        _P + "adaptive/rounds.py",
        "region.unscale(noisy.reshape(2, d)",
        "region.unscale(exact.astype(np.float64).reshape(2, d)",
        "tests/test_adaptive.py",
    ),
    Mutation(
        "order: a plan from the raw count",
        _P + "adaptive/rounds.py",
        "return int(self._noisy(np.array([count]), 1.0, mu)[0])",
        "return self._noisy(np.array([count]), 1.0, mu) is None or count",
        "tests/test_adaptive.py",
    ),
    Mutation(
        "budget: a second release is not refused",
        _P + "exact_sum.py",
        "if (self._releases and not again) or not lineage.claim(",
        "if False and not lineage.claim(",
        "tests/test_lineage.py tests/test_private_sum.py tests/test_exact_sum.py",
    ),
    Mutation(
        "budget: a call that fails has spent it",
        _P + "private_sum.py",
        "keys = self._keys(ellipsoid, state, seed)",
        "total.claim_release(again=True); keys = self._keys(ellipsoid, state, seed)",
        "tests/test_private_sum.py tests/test_lineage.py",
    ),
    Mutation(
        "merge: a part counts twice",
        _P + "exact_sum.py",
        "if not self._marks.isdisjoint(other._marks):",
        "if False:",
        "tests/test_lineage.py",
    ),
    Mutation(
        "merge: what was released is forgotten",
        _P + "exact_sum.py",
        "self._releases = max(self._releases, state.releases)",
        "pass",
        "tests/test_exact_sum.py tests/test_lineage.py tests/test_private_sum.py",
    ),
    # ---- what comes in ----
    Mutation(
        "from_bytes: a sum beyond its rows",
        _P + "exact_sum.py",
        "state.clipped > state.rows or _beyond(self)",
        "state.clipped > state.rows",
        "tests/test_exact_sum.py",
    ),
    Mutation(
        "from_bytes: a box's limits unchecked",
        _P + "ellipsoid.py",
        "if float(np.max(limit)) > 2.0**_LIMIT_BITS:",
        "if False:",
        "tests/test_exact_sum.py tests/test_ellipsoid.py",
    ),
    Mutation(
        "from_bytes: checksum unread",
        _P + "sum_bytes.py",
        "if _checksum(raw[:-_CHECKSUM_BYTES]) != raw[-_CHECKSUM_BYTES:]:",
        "if False:",
        "tests/test_exact_sum.py",
    ),
    Mutation(
        "arrow: a null list is read",
        _P + "rows/arrow.py",
        "whole &= ~_nulls(array)",
        "pass",
        "tests/test_arrow.py",
    ),
    Mutation(
        "arrow: a null fixed-size list is read",
        _P + "rows/arrow.py",
        "return _blank(block, _nulls(array)) if array.null_count else block",
        "return block",
        "tests/test_arrow.py",
    ),
    Mutation(
        "csv: blank lines are no records",
        _P + "rows/csv_file.py",
        "ignore_empty_lines=False",
        "ignore_empty_lines=True",
        "tests/test_csv.py",
    ),
    Mutation(
        "cli: texts that are not ours",
        _P + "cli/exit.py",
        "if ours and code.co_code[trace.tb_lasti] == _RAISE:",
        "if True:",
        "tests/test_cli_errors.py",
    ),
    # ---- the twin ----
    Mutation(
        "clip, twin: a huge row is not moved in",
        _T + "clip.py",
        "factor = radius / norm if outside else",
        "factor = 2 * radius / norm if outside else",
        _SUM_TESTS,
    ),
    Mutation(
        "merge, twin: no carry",
        _T + "exact_sum.py",
        "if total < low[j]:",
        "if False:",
        "tests/test_exact_sum.py",
    ),
    # ---- the C++ core ----
    Mutation(
        "clip, C++: a huge row is not moved in",
        _C + "clip/exceptional.inl",
        "const double factor = outside ? radius / norm",
        "const double factor = outside ? 2 * radius / norm",
        _SUM_TESTS,
    ),
    Mutation(
        "clip, C++: infinities are numbers",
        _C + "clip/exceptional.inl",
        "finite &= std::isfinite(x[j]);",
        "finite &= !std::isnan(x[j]);",
        _SUM_TESTS,
    ),
    Mutation(
        "clip, C++: the streaming clamp is at twice the limit",
        _C + "clip/stream.inl",
        "clamp(y, load<double>(s.limit + j))",
        "clamp(y, load<double>(s.limit + j) * fill(2.0))",
        _SUM_TESTS,
    ),
    Mutation(
        "clip, C++: a row's factor reaches the next",
        _C + "clip/stream.inl",
        "s.factor[r] = task == Task::box ? 1.0 : 0.0",
        "s.factor[r] = 1.0",
        _SUM_TESTS,
    ),
    Mutation(
        "clip, C++: matrix inputs keep 30 bits",
        _C + "clip/clip.hpp",
        "h * 0x1.000001p24",
        "h * 0x1.000002p23",
        _SUM_TESTS,
    ),
    Mutation(
        "merge, C++: no carry",
        _C + "clip/exact_sum.hpp",
        "const std::uint64_t carry = sum < low[j];",
        "const std::uint64_t carry = 0;",
        "tests/test_exact_sum.py",
    ),
    Mutation(
        "threads, C++: parts overlap by a row",
        _C + "clip/clip_sum.cpp",
        "batch.n / count + (t < batch.n % count));",
        "batch.n / count + (t + 1 < count));",
        _SUM_TESTS,
    ),
    Mutation(
        "halves, C++: magnitudes with their sign",
        _C + "clip/clip.hpp",
        "partial[d + j] += (size - sum) / 2;",
        "partial[d + j] += (sum - size) / 2;",
        "tests/test_adaptive.py",
    ),
    Mutation(
        "distances, C++: a row that is not finite lies far away",
        _C + "clip/exceptional.inl",
        "if (!all_finite(region.d, s.x)) return 0;",
        "if (!all_finite(region.d, s.x)) return double(INFINITY);",
        "tests/test_adaptive.py tests/test_clip_kernels.py",
    ),
    Mutation(
        "noise, C++: nothing is ambiguous",
        _C + "noise/gaussian.hpp",
        "subtract(doubles(0.5), multiply(s, doubles(z_error)))",
        "doubles(2.0)",
        "tests/test_noise.py",
    ),
    Mutation(
        "noise, C++: the tail's uncertainty left out",
        _C + "noise/gaussian.hpp",
        "not_less(multiply_add(s, two_over_m, off), limit)",
        "not_less(off, limit)",
        "tests/test_noise.py",
    ),
    Mutation(
        "noise, C++: the slow path without its error",
        _C + "noise/gaussian_resolve.cpp",
        "const Unsigned error = newton_error + (top < 121 ? Unsigned(1) << (121 - top) : 1);",
        "const Unsigned error = 0 * (newton_error + Unsigned(top));",
        "tests/test_noise.py",
    ),
    Mutation(
        "key stream, C++: the nonce's high word is dropped",
        _C + "noise/chacha20.hpp",
        "x[15] = simd::words(std::uint32_t(nonce >> 32));",
        "x[15] = simd::words(0);",
        "tests/test_noise.py",
    ),
]
