"""The extra is needed where it is used, and nowhere else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

TRIED = """
import sys, ellipsum.tradeoff, ellipsum.records
print("torch" in sys.modules)
import builtins
real, missing = builtins.__import__, None
def without(name, *rest, **more):
    if name.partition(".")[0] == missing:
        raise ImportError(name)
    return real(name, *rest, **more)
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == missing:
            raise ImportError(name)
builtins.__import__ = without
sys.meta_path.insert(0, Gone())
for missing in {missing!r}:
    for name in [n for n in sys.modules if n.startswith("ellipsum.learned")]:
        del sys.modules[name]
    try:
        import ellipsum.learned
    except ImportError as error:
        print(missing, "torch" in sys.modules, error)
"""


def test_nothing_else_imports_pytorch_and_an_error_names_the_extra():
    """One process for all: each part is missing in turn, and none has been imported before."""
    parts = ["torch", "safetensors", "sklearn"]
    there = [part for part in parts if importlib.util.find_spec(part)]
    # `needs` looks for them in this order: the first that is not there is the one that is named
    tried = parts[: parts.index(next((p for p in parts if p not in there), parts[-1])) + 1]
    code = TRIED.format(missing=tried)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "False" and len(lines) == 1 + len(tried), done.stderr
    for part, said in zip(tried, lines[1:], strict=True):
        assert said.startswith(f"{part} False ellipsum.learned needs")
        assert "pip install 'ellipsum[learned]'" in said


ASKED = """
import sys, ellipsum
heavy = ["torch", "scipy.optimize", "ellipsum.tradeoff", "ellipsum.records"]
print([name for name in heavy if name in sys.modules])
print({"engines", "learned", "records", "tradeoff", "__version__"} <= set(dir(ellipsum)))
print([name for name in heavy if name in sys.modules])
print(ellipsum.tradeoff.__name__, ellipsum.records.__name__, ellipsum.engines.__name__)
print("torch" in sys.modules, hasattr(ellipsum, "nothing"))
try:
    print(ellipsum.learned.__name__)
except ImportError as error:
    print("ellipsum.learned", "ellipsum[learned]" in str(error))
"""


def test_packages_are_there_when_they_are_asked_for_and_not_before():
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["[]", "True", "[]"], done.stderr
    assert lines[3] == "ellipsum.tradeoff ellipsum.records ellipsum.engines"
    assert lines[4] == "False False"
    assert lines[5] in ("ellipsum.learned", "ellipsum.learned True")
