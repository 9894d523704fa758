"""Run the suite again under each instruction set that the first run did not take.

Where the compiled core is missing, on Numba: .ci/without_compiler.
"""

import os
import subprocess
import sys

from ellipsum import backend

#: What no kernel has a part in: each of these ran once already.
ELSEWHERE = (
    *("learned_*", "engine*", "docs", "resume*", "ledger", "cli_*", "*errata", "tradeoff_*"),
    *("audit*", "group_audit", "group_selection", "budget", "channels", "claims", "layout", "csv*"),
    *(
        "koehler*",
        "mean_*",
        "poulsen*",
        "record_release",
        "sources",
        "priv_unit",
        "demo",
        "plot",
        "command",
        "private_moments",
        "record_names",
    ),
)


def main() -> int:
    settings = [{"ELLIPSUM_BACKEND": "numba"}]
    if backend().name == "cpp":
        from ellipsum.kernels import _core

        settings = [{"ELLIPSUM_CPU": name} for name in _core.targets() if name != backend().cpu]
    for setting in settings:
        print("--", *(f"{k}={v}" for k, v in setting.items()), flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow"]
        command += [f"--ignore-glob=tests/test_{name}.py" for name in ELSEWHERE]
        if subprocess.run(command, env={**os.environ, **setting}).returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
