"""Break the guarantee on purpose, one line at a time, and see that a test fails for each.

    python bench/mutations.py                      # all of them: about 20 minutes on two cores
    python bench/mutations.py --only carry clamp   # those whose names hold one of the words
    python bench/mutations.py --list
    python bench/mutations.py --table bench/results/mutations.md  # and write it down

Each mutation is a piece of text that stands once in a file, what takes its place, and the tests
that ought to see it. It is made in a copy of the source tree; where the file belongs to the C++
core, the copy's extension is built again (CMake, Ninja and a compiler are needed, and
``CMAKE_CXX_COMPILER_LAUNCHER`` is heeded). A mutation that survives is a hole in the tests; one
whose text is not found has to be brought up to date. In the end the tests that failed are run once
more without any mutation, and must pass. The exit code is the number of all that went wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from mutation import Mutation
from mutation_list import MUTATIONS

ROOT = Path(__file__).parent.parent
_LEFT_OUT = shutil.ignore_patterns(
    ".git", "build", "results", "__pycache__", ".*_cache", ".hypothesis", ".benchmarks", "*.so"
)


PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]


#: The table's head; what a run leaves out keeps the line that it has.
HEAD = """# Mutations

`python bench/mutations.py --table FILE` breaks the guarantee on purpose at each of these places,
and names the test that failed first, and the day of that run. Lines of an earlier day are of the
code of that day; that each mutation still has a place in today's is tested
(`tests/test_mutation_list.py`).

| mutation | file | seen by | run on |
|---|---|---|---|
"""


class Verdict(NamedTuple):
    """What became of a mutation."""

    ok: bool
    words: str


def copy_tree(to: Path) -> Path:
    """The sources, and the extension that is built, if there is one."""
    tree = to / "tree"
    shutil.copytree(ROOT, tree, ignore=_LEFT_OUT)
    for built in (ROOT / "python/ellipsum/kernels").glob("_core*.so"):
        shutil.copy2(built, tree / "python/ellipsum/kernels")
    return tree


def run(command: list[str], tree: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ELLIPSUM_")}
    environment["PYTHONPATH"] = str(tree / "python")
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)


def build(tree: Path, target: str) -> str:
    """Compile the extension of the copy; what the compiler says if it fails."""
    where = tree.parent / "build"
    pybind11 = run([sys.executable, "-m", "pybind11", "--cmakedir"], tree).stdout.strip()
    steps = [
        ["cmake", "-G", "Ninja", "-S", str(tree), "-B", str(where), "-DSKBUILD=2"],
        ["cmake", "--build", str(where), "--parallel", "2"],
    ]
    steps[0] += ["-DCMAKE_BUILD_TYPE=Release", f"-Dpybind11_DIR={pybind11}"]
    # a fifth of the time, where what is mutated is the same in every instruction set
    alone = "ON" if target == "baseline" else "OFF"
    steps[0] += ["-DELLIPSUM_OPTIMIZE=-O1", f"-DELLIPSUM_BASELINE_ALONE={alone}"]
    steps[0] += [f"-DPython_EXECUTABLE={sys.executable}"]
    for step in steps:
        done = run(step, tree)
        if done.returncode:
            return done.stdout[-2000:] + done.stderr[-2000:]
    for built in where.glob("_core*.so"):
        shutil.copy2(built, tree / "python/ellipsum/kernels")
    return ""


def judge(mutation: Mutation, tree: Path) -> Verdict:
    """Make the mutation in the copy, run its tests, and put the file back."""
    path = tree / mutation.file
    text = path.read_text()
    if text.count(mutation.old) != 1:
        return Verdict(False, f"STALE: found {text.count(mutation.old)} times")
    compiled = mutation.file.startswith("cpp/")
    try:
        path.write_text(text.replace(mutation.old, mutation.new))
        if compiled and (failure := build(tree, mutation.target)):
            return Verdict(False, f"does not compile: {failure}")
        if compiled and mutation.target not in targets_of(tree):
            return Verdict(False, f"not run: this processor has no {mutation.target}")
        done = run([*PYTEST, *mutation.tests.split()], tree)
    finally:
        path.write_text(text)
    if done.returncode == 0:
        return Verdict(False, "SURVIVED")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode != 1 or not failed or failed[0].startswith("ERROR"):
        return Verdict(False, "no test ran: " + (done.stdout + done.stderr)[-500:])
    return Verdict(True, failed[0].split(" - ")[0].removeprefix("FAILED "))


def targets_of(tree: Path) -> list[str]:
    """The instruction sets that the copy's extension has, of those of this processor."""
    code = "from ellipsum.kernels import _core; print(*_core.targets())"
    return run([sys.executable, "-c", code], tree).stdout.split()


def control(tests: list[str], tree: Path, compiled: bool) -> bool:
    """Do the tests that saw a mutation pass without one? Of all their parameters: which there are
    depends on the instruction sets that were built."""
    failure = build(tree, "every") if compiled else ""
    done = run([*PYTEST, *dict.fromkeys(test.partition("[")[0] for test in tests)], tree)
    good = not failure and done.returncode == 0
    print("control: they pass without a mutation" if good else "control FAILED: " + done.stdout)
    return good


def write_table(path: Path, found: dict[str, str]) -> None:
    """A line for each mutation: what this run found, else what the table said of the same file."""
    old = path.read_text().splitlines() if path.exists() else []
    cells = [line.strip("| ").split(" | ") for line in old if line.startswith("| ")]
    known = {(cell[0], cell[1]): tuple(cell[2:]) for cell in cells if len(cell) == 4}
    today = datetime.now(timezone.utc).date().isoformat()
    lines = []
    for m in MUTATIONS:
        seen, day = known.get((m.name, f"`{m.file}`"), ("not run", "never"))
        if m.name in found:
            seen, day = " ".join(found[m.name].split()), today
        lines.append(f"| {m.name} | `{m.file}` | {seen} | {day} |\n")
    path.write_text(HEAD + "".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD")
    parser.add_argument("--list", action="store_true", help="print them, and run nothing")
    parser.add_argument("--table", type=Path, help="a Markdown file to bring up to date")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS if any(word in m.name for word in arguments.only)]
    width, bad = max(len(m.name) for m in chosen), 0
    with tempfile.TemporaryDirectory() as folder:
        tree = ROOT if arguments.list else copy_tree(Path(folder))
        # those that compile come last, so that the others meet the extension as it was built
        for compiled in (False, True):
            failed: list[str] = []
            for mutation in (m for m in chosen if m.file.startswith("cpp/") == compiled):
                if arguments.list:
                    print(f"{mutation.name:{width}}  {mutation.file}")
                    continue
                verdict = judge(mutation, tree)
                bad += not verdict.ok
                failed += [verdict.words] if verdict.ok else []
                print(f"{mutation.name:{width}}  {verdict.words}", flush=True)
                if arguments.table:
                    words = f"`{verdict.words}`" if verdict.ok else verdict.words
                    write_table(arguments.table, {mutation.name: words})
            if failed:
                bad += not control(failed, tree, compiled)
    return bad


if __name__ == "__main__":
    sys.exit(main())
