"""Does an installed package work? Run from outside of a checkout's package folder.

python .ci/smoke.py [cpp|numba]     with the backend that it must have come with
"""

import subprocess
import sys
from importlib.metadata import requires

import numpy as np

import ellipsum
from ellipsum import Ellipsoid, ExactSum, PrivateMean, QuadraticForm, backend


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else "cpp"
    assert backend().name == wanted, backend()
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    region = Ellipsoid.for_gaussian([1.0, 1.0, 1.0])
    release = PrivateMean(region, epsilon=1, delta=1e-6)(rows)
    assert release.private and np.all(np.abs(release.value) < 1), release
    halves = ExactSum(region).add(rows[:300]).merge(ExactSum(region).add(rows[300:]))
    assert halves.to_bytes() == ExactSum(region).add(rows).to_bytes()
    assert abs(QuadraticForm([1.0, 1.0]).sf(2.0) - np.exp(-1)) < 1e-12
    command = [sys.executable, "-m", "ellipsum", "info"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert wanted in printed
    needs = [line for line in requires("ellipsum") or [] if "extra ==" not in line]
    assert any(line.startswith("numba") for line in needs) == (wanted == "numba"), needs
    print(f"ellipsum {ellipsum.__version__} from {ellipsum.__path__[0]}: {backend()}")


if __name__ == "__main__":
    main()
