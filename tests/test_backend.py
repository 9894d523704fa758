"""The choice of backend, instruction set and threads."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ellipsum.kernels import backend as _backend
from ellipsum.kernels import twins

CODE = "import ellipsum; print(ellipsum.backend())"


def run(code=CODE, **environment):
    base = {k: v for k, v in os.environ.items() if not k.startswith("ELLIPSUM_")}
    return subprocess.run(
        [sys.executable, "-c", code], env=base | environment, capture_output=True, text=True
    )


def test_each_target_can_be_forced_by_name():
    core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    assert core.targets()[-1] == "baseline"
    for name in core.targets():
        assert run(ELLIPSUM_CPU=name).stdout.startswith(f"cpp ({name}): forced by ELLIPSUM_CPU")


def test_an_unknown_or_missing_target_is_a_clear_error():
    core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    result = run(ELLIPSUM_CPU="sse9")
    assert result.returncode != 0
    assert "ELLIPSUM_CPU=sse9 is unknown: use baseline, avx2 or avx512" in result.stderr
    for name in {"avx2", "avx512"} - set(core.targets()):
        assert f"ELLIPSUM_CPU={name} is not" in run(ELLIPSUM_CPU=name).stderr


def test_an_unknown_backend_is_a_clear_error():
    assert "use cpp or numba" in run(ELLIPSUM_BACKEND="fortran").stderr
    assert run(ELLIPSUM_BACKEND="numba").stdout.startswith("numba (jit): forced")


def test_threads_come_from_the_argument_then_the_environment_then_one(monkeypatch):
    monkeypatch.delenv("ELLIPSUM_THREADS", raising=False)
    assert _backend.thread_count() == 1
    assert _backend.thread_count(3) == 3
    monkeypatch.setenv("ELLIPSUM_THREADS", "2")
    assert (_backend.thread_count(), _backend.thread_count(5)) == (2, 5)


@pytest.mark.parametrize("bad", ["0", "-1", "two", "1.5", "1025"])
def test_a_bad_environment_variable_for_threads_is_named(monkeypatch, bad):
    monkeypatch.setenv("ELLIPSUM_THREADS", bad)
    with pytest.raises(ValueError, match="ELLIPSUM_THREADS must be a whole number above 0"):
        _backend.thread_count()


@pytest.mark.parametrize("bad", [0, -2, 1025, 2**31, 2**70])
def test_a_number_of_threads_out_of_range_is_refused(bad):
    with pytest.raises(ValueError, match="threads must be at least 1"):
        _backend.thread_count(bad)


@pytest.mark.parametrize("bad", [1.0, "2", True])
def test_threads_must_be_a_whole_number(bad):
    with pytest.raises(TypeError, match="threads must be a whole number"):
        _backend.thread_count(bad)


FORK = """
import os, numpy as np
from ellipsum.kernels import _core
x, none = np.ones((1000, 20)), np.empty(0)
def total():
    partial = np.zeros(20, np.int64)
    _core.clip_sum(x, np.zeros(20), np.ones(20), none, none, 2.0**23, partial, 4)
    return partial[0]
assert total() == 1000
child = os.fork()
if child == 0:
    os._exit(0 if total() == 1000 else 1)
assert os.waitpid(child, 0)[1] == 0
print("ok")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_threads_work_after_a_fork():
    pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    assert run(FORK).stdout == "ok\n"


def test_an_import_without_the_extension_says_why_it_runs_on_numba():
    code = "import sys; sys.modules['ellipsum.kernels._core'] = None; " + CODE
    assert "not built by this install" in run(code).stdout
    assert "this install has no C++ kernels" in run(code, ELLIPSUM_BACKEND="cpp").stderr


def test_both_backends_have_the_same_functions_and_parameters():
    core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    compiled = {n for n in dir(core) if callable(getattr(core, n))}
    compiled -= {"choose_target", "targets", "variant_of", "variants"}
    assert compiled == {n for n in twins.__all__ if callable(getattr(twins, n))}
    for name in compiled:
        ours, twin = getattr(core, name), getattr(twins, name)
        if inspect.isclass(ours):
            assert public(ours) == public(twin), name
            continue
        parameters = re.findall(r"(\w+): ", re.match(rf"{name}\((.*)\)", ours.__doc__)[1])
        assert parameters == list(inspect.signature(twin).parameters), name


def public(kernel_class):
    return {name for name in dir(kernel_class) if not name.startswith("_")}


def test_backend_is_a_name_a_cpu_and_a_reason():
    said = _backend.backend()
    assert said.name in ("cpp", "numba") and said.cpu and said.reason in str(said)


def test_the_stub_names_what_the_extension_has():
    core = pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    stub = ast.parse(Path(core.__file__).with_name("_core.pyi").read_text())
    named = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert named == {name for name in dir(core) if callable(getattr(core, name))}


CALLER = "from .jit import jit\nfrom .callee import f\n\n\n@jit\ndef g():\n    return 10 * f()\n"
CALLEE = "from .jit import jit\n\n\n@jit\ndef f():\n    return {}\n"


def test_a_changed_source_is_not_hidden_by_the_cache_of_another(tmp_path):
    """Numba looks at the time of the caller's file alone, which here stays the same."""
    copied = tmp_path / "copied"
    copied.mkdir()
    (copied / "__init__.py").touch()
    (copied / "jit.py").write_text((Path(twins.__file__).parent / "jit.py").read_text())
    (copied / "caller.py").write_text(CALLER)
    for value in (1, 22):  # of other lengths: Python goes by whole seconds and lengths
        (copied / "callee.py").write_text(CALLEE.format(value))
        code = "from copied.caller import g; print(g())"
        assert run(code, PYTHONPATH=str(tmp_path)).stdout == f"{10 * value}\n"
    assert len(list(copied.rglob("*.nbi"))) == 4  # cached indeed


def test_every_twin_is_cached_by_the_one_decorator():
    for path in Path(twins.__file__).parent.glob("*.py"):
        assert "cache=True" not in path.read_text() or path.name == "jit.py"


def test_import_and_a_first_sum_load_no_module_that_takes_longer_than_the_rest():
    """Most of the time would be SciPy's: its parts load when first used."""
    pytest.importorskip("ellipsum.kernels._core", reason="this install has no C++ kernels")
    slow = (
        "('scipy.special', 'scipy.optimize', 'scipy.stats', 'scipy.integrate', 'scipy.spatial', "
        "'pyarrow', 'numpy.ma', 'urllib.request')"
    )
    code = f"""
import sys, numpy, ellipsum
total = ellipsum.ExactSum(ellipsum.Ellipsoid.ball(1.0, d=9))
total.add(numpy.ones((5000, 9))).add([numpy.ones(9)])
print([name for name in {slow} if name in sys.modules])"""
    assert run(code, ELLIPSUM_BACKEND="cpp").stdout.strip() == "[]"
