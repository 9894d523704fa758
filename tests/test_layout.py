"""What the architecture promises about its files, checked on a source checkout."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python/ellipsum"
CODE = [
    p
    for d in ("cpp", "python", "tests", "bench")
    for p in (ROOT / d).rglob("*")
    if p.suffix in (".py", ".cpp", ".hpp", ".inl")
]

#: Which room (a folder or a file of the package) may import which; every other import is upward.
#: In the order of the floors: a room imports from rooms above its line only.
MAY_IMPORT = {
    "notebook": set(),
    "_validate": set(),
    "_estimator": set(),
    "kernels": {"_validate"},
    "grid": {"_validate"},
    "lineage": set(),
    "column_units": set(),
    "column_names": {"column_units"},
    "noise_keys": set(),
    "plot": {"column_names"},
    "plot_groups": {"plot"},
    "tabular": {"notebook"},
    "sealed_bytes": set(),
    "sum_bytes": {"sealed_bytes"},
    "partial_bytes": {"sealed_bytes", "sum_bytes"},
    "units": {"_validate"},
    "wishart": set(),
    "calibrate": {"_validate"},
    "accounting": {"calibrate"},
    "durable": set(),
    "privacy_unit": {"_validate"},
    "guarantee": {"_validate", "accounting", "calibrate", "privacy_unit"},
    "noise": {"_validate", "kernels", "noise_keys"},
    "quadratic_form": {"_validate", "kernels", "notebook", "plot"},
    "tradeoff": {"_estimator", "_validate", "column_names", "guarantee", "notebook", "plot"},
    "low_rank": {"_validate", "grid"},
    "shapes": {
        "_validate", "calibrate", "column_names", "grid", "guarantee", "low_rank", "quadratic_form",
        "units",
    },
    "ellipsoid": {
        "_validate", "column_names", "grid", "guarantee", "low_rank", "shapes", "sum_bytes",
    },
    "gaussian_shape": {"ellipsoid", "shapes"},
    "rows": {"_validate", "column_names", "column_units", "kernels", "sealed_bytes"},
    "users": {"_validate", "column_names", "kernels", "rows"},
    "far_users": {"column_names", "rows", "users"},
    "kernel_parts": {"kernels", "rows"},
    "totals": {"kernels"},
    "exact_sum": {
        "_validate", "column_names", "ellipsoid", "kernel_parts", "kernels", "lineage",
        "partial_bytes", "rows", "sum_bytes", "totals",
    },
    "several_sums": {"column_names", "ellipsoid", "exact_sum", "rows"},
    "release": {"column_names", "column_units", "guarantee", "plot", "tabular"},
    "budget": {"accounting", "durable", "guarantee", "privacy_unit", "release"},
    "sum_release": {"_validate", "ellipsoid", "guarantee", "low_rank", "release"},
    "adaptive": {
        "_validate", "column_names", "ellipsoid", "exact_sum", "grid", "guarantee", "kernels",
        "noise", "noise_keys", "release", "rows", "sealed_bytes", "sum_release", "tabular", "units",
    },
    "jobs": {
        "_validate", "adaptive", "column_names", "durable", "ellipsoid", "exact_sum", "guarantee",
        "noise_keys", "rows", "sealed_bytes", "users",
    },
    "present": {"_validate", "ellipsoid", "guarantee", "sum_release"},
    "one_sum": {
        "ellipsoid", "exact_sum", "guarantee", "low_rank", "noise", "noise_keys", "present",
        "sum_bytes", "sum_release",
    },
    "private_sum": {
        "_validate", "adaptive", "budget", "column_names", "column_units", "ellipsoid", "exact_sum",
        "far_users", "gaussian_shape", "guarantee", "jobs", "noise", "noise_keys", "one_sum",
        "present", "rows", "sum_bytes", "sum_release", "users",
    },
    "groups": {
        "_validate", "accounting", "budget", "calibrate", "column_names", "column_units",
        "ellipsoid", "exact_sum", "guarantee", "jobs", "kernels", "lineage", "noise", "noise_keys",
        "plot_groups", "present", "release", "rows", "sealed_bytes", "sum_bytes", "sum_release",
        "users",
    },
    "engines": {"adaptive", "column_names", "column_units", "ellipsoid", "exact_sum", "rows"},
    "estimates": {"adaptive", "budget", "guarantee", "private_sum", "release"},
    "second_moments": {
        "_validate", "adaptive", "budget", "column_names", "column_units", "ellipsoid", "estimates",
        "exact_sum", "guarantee", "noise", "noise_keys", "wishart",
    },
    "records": {
        "_estimator", "_validate", "accounting", "adaptive", "budget", "calibrate", "column_names",
        "column_units", "ellipsoid", "estimates", "exact_sum", "guarantee", "kernels", "lineage",
        "noise", "noise_keys", "notebook", "privacy_unit", "quadratic_form", "release", "rows",
        "sealed_bytes", "second_moments", "shapes", "tradeoff", "wishart",
    },
    "learned": {
        "_validate", "calibrate", "guarantee", "noise", "noise_keys", "notebook", "records",
        "release", "rows", "tradeoff",
    },
}  # fmt: skip
DOORS = {"__init__", "__main__", "cli", "displays"}  # they may import every room


def rooms_imported(path: Path) -> set[str]:
    """Rooms that a module imports: late and type-only imports count."""
    here = path.relative_to(PACKAGE).with_suffix("").parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        base = [*here[: len(here) - node.level], *(node.module or "").split(".")]
        base = [part for part in base if part]
        found |= {base[0]} if base else {alias.name for alias in node.names}
    return found - {here[0], "__version__"}


def test_no_import_goes_up_and_every_room_has_its_floor():
    floors = list(MAY_IMPORT)
    for room, below in MAY_IMPORT.items():
        assert below <= set(floors[: floors.index(room)]), f"{room} would import upward"
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if room not in DOORS:
            assert room in MAY_IMPORT, f"{room} has no floor in this test"
            assert rooms_imported(path) <= MAY_IMPORT[room], path.name


def modules_imported(path: Path) -> set[Path]:
    """Modules of the same folder that a module imports: late and type-only imports count."""
    siblings = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            siblings |= {path.parent / f"{name.split('.')[0]}.py" for name in names}
    return {p for p in siblings if p.exists()}


def test_no_circle_inside_a_folder():
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        arrows = {p: modules_imported(p) for p in folder.glob("*.py")}
        while free := [p for p, below in arrows.items() if not below & arrows.keys()]:
            for p in free:
                del arrows[p]
        assert not arrows, f"a circle of {sorted(p.name for p in arrows)}"


def test_no_file_is_too_long():
    for path in CODE:
        assert len(path.read_text().splitlines()) <= 400, path.name


def test_no_function_of_the_package_is_over_60_lines():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                words = (ast.get_docstring(node, clean=False) or "").count("\n") + 1
                assert node.end_lineno - node.lineno + 1 - words <= 60, f"{path.name}: {node.name}"


def test_the_core_knows_no_python_and_does_not_print():
    for path in (p for p in (ROOT / "cpp/core").rglob("*") if p.is_file()):
        text = path.read_text()
        assert not re.search(r"Python\.h|pybind|numpy/|std::cout|printf\(", text), path.name


def test_the_version_is_written_once():
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    holders = [p.name for p in CODE if version in p.read_text()]
    assert not holders


def test_the_sdist_holds_every_module_that_the_tests_import():
    """README's second line works from the sdist too. (`.ci/sdist` builds one and tries.)"""
    left_out = re.search(r"^sdist.exclude = \[(.*)\]", (ROOT / "pyproject.toml").read_text(), re.M)
    excluded = [ROOT / name for name in re.findall(r'"([^"]+)"', left_out[1])]
    assert excluded and ROOT / "tests" not in excluded
    for path in (ROOT / "tests").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                found = ROOT / "bench" / f"{name.split('.')[0]}.py"
                assert not any(found.is_relative_to(folder) for folder in excluded) or (
                    not found.exists()
                ), f"{path.name} imports {found.name}, which the sdist leaves out"


#: What may stand at the top of a checkout, beside what git does not see.
TOP = {
    ".ci", ".clang-format", ".clang-tidy", ".github", ".gitignore", ".pre-commit-config.yaml",
    "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md",
    "LICENSE", "README.md", "bench", "build_backend", "cpp", "docs", "pyproject.toml", "python",
    "tests",
}  # fmt: skip


def test_nothing_strange_lies_at_the_top():
    listed = ["git", "-C", str(ROOT), "ls-tree", "--name-only", "HEAD"]
    try:
        found = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):  # an unpacked source distribution
        found = "\n".join(TOP & {path.name for path in ROOT.iterdir()})
    assert found.split() and set(found.split()) <= TOP
