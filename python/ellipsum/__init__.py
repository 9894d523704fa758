"""Differentially private sums and means of vectors: shaped, exact, fast."""

from importlib.metadata import version as _version

from ._backend import Backend, backend

__version__ = _version("ellipsum")
__all__ = ["Backend", "__version__", "backend"]
