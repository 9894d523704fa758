"""Run the suite again under each instruction set that the first run did not take.

    python .ci/each_target.py [SECONDS]     that all before it took

Those of older processors with the kernels that NumPy and OpenBLAS take there, which round
otherwise; on the oldest all of it runs. Where SECONDS are many, less (LATE, LATEST). Where the
compiled core is missing, on Numba: .ci/without_compiler.
"""

import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from ellipsum import backend

#: What the libraries take on the processors that have no more than these instruction sets.
LIBRARIES = {
    "avx2": {"OPENBLAS_CORETYPE": "Haswell"},
    "baseline": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": " ".join(np._core._multiarray_umath.__cpu_dispatch__),
    },
}

#: What is built on kernels, or has no part in them: each of these ran once already. What is left
#: holds every kernel's bits, its twin's, and the whole way of a row. (The arrangements of every
#: instruction set are forced by their own tests, whatever the process begins with.)
EVERYWHERE_ONCE = ("learned_*", "engine*", "arrangements", "choice")
ELSEWHERE = (
    *EVERYWHERE_ONCE,
    *("docs", "resume*", "ledger", "cli", "cli_*", "*errata", "tradeoff_*"),
    *("audit*", "group_audit", "group_selection", "budget", "channels", "claims", "layout", "csv*"),
    *("koehler*", "mean_*", "poulsen*", "sources", "priv_unit", "demo", "plot", "command"),
    *("record_*", "projection_*", "private_moments", "best_region", "calibrate", "column_names"),
    *("adaptive", "box_alone", "interrupted", "not_what_they_say", "projection"),
    *("attacks*", "arrow_records", "c_stream", "files", "frames", "lists", "npz_labels"),
    *("estimator", "fuzz_corpus", "labels_decide_nothing", "lineage", "mutation_list"),
    *("noise_keys", "one_record_decides_nothing", "partitioned_folders", "parts", "plan"),
    *("budget_first", "rows_of_a_person", "ahead", "displays", "group_streams", "several_sums"),
    "quadratic_form_fit",
    *("progress", "radius", "release", "ridged_intervals", "second_moments", "tabular"),
)


#: CI has an hour. Where so many seconds are over, on slow machines, only those run that compare the
#: kernels with their twins, and on the slowest a few of them: the first run had all, on Numba too.
LATE, LATEST = 1200, 2400
FEW = ("backend", "clip_kernels", "noise", "run_means", "short_rows")


def tests(elsewhere: tuple[str, ...]) -> list[Path]:
    names = [f"test_{name}.py" for name in elsewhere]
    found = sorted(Path("tests").glob("test_*.py"))
    return [test for test in found if not any(fnmatch(test.name, name) for name in names)]


def runs(test: Path, seconds: int) -> bool:
    """Does a test run where so many seconds are over?"""
    if seconds > LATEST:
        return test.stem.removeprefix("test_") in FEW
    return seconds <= LATE or any(word in test.read_text() for word in ("twins", "clip_cases"))


def main() -> int:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    settings = [{"ELLIPSUM_BACKEND": "numba"}]
    if backend().name == "cpp":
        from ellipsum.kernels import _core

        settings = [{"ELLIPSUM_CPU": name} for name in _core.targets() if name != backend().cpu]
    for setting in settings:
        target = setting.get("ELLIPSUM_CPU", "")
        setting |= LIBRARIES.get(target, {})
        known = (f"{k}={v}" for k, v in setting.items())
        print("--", *known, f"(after {seconds} s)", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow"]
        elsewhere = EVERYWHERE_ONCE if target == "baseline" else ELSEWHERE
        command += [str(test) for test in tests(elsewhere) if runs(test, seconds)]
        if subprocess.run(command, env={**os.environ, **setting}).returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
