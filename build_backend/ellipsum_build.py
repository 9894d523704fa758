"""scikit-build-core, and where CMake or the compiler fails, the same build without the C++ kernels.

The package then runs on its Numba kernels. scikit-build-core's own override for a failure
(``if.failed``) takes the hook for metadata away, so that every resolver compiles everything to read
them (about 90 seconds of processor time): here that hook stays, and compiles a line. Numba is
required only where the kernels are not compiled (`lean_metadata`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lean_metadata import compiles, without_numba, without_numba_in
from scikit_build_core import build as core
from scikit_build_core.build import *  # noqa: F403  (the other hooks, metadata among them)

_WITHOUT_CORE = {"wheel.cmake": "false"}


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """The wheel; without the C++ kernels where they cannot be built."""
    return _with_fallback(core.build_wheel, wheel_directory, config_settings)


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """As :func:`build_wheel`, of an editable install."""
    return _with_fallback(core.build_editable, wheel_directory, config_settings)


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: dict[str, Any] | None = None
) -> str:
    """The metadata of the wheel that will be built."""
    return _prepared(core.prepare_metadata_for_build_wheel, metadata_directory, config_settings)


def prepare_metadata_for_build_editable(
    metadata_directory: str, config_settings: dict[str, Any] | None = None
) -> str:
    """As :func:`prepare_metadata_for_build_wheel`, of an editable install."""
    return _prepared(core.prepare_metadata_for_build_editable, metadata_directory, config_settings)


def _prepared(
    prepare: Callable[..., str], folder: str, config_settings: dict[str, Any] | None
) -> str:
    name = prepare(folder, config_settings)
    if compiles():
        without_numba(Path(folder, name, "METADATA"))
    return name


def _with_fallback(
    build: Callable[..., str],
    wheel_directory: str,
    config_settings: dict[str, Any] | None,
) -> str:
    # Neither is given the metadata prepared: their tag, or the requirement of Numba, is another's.
    try:
        name = build(wheel_directory, config_settings, None)
    except (Exception, SystemExit) as failure:
        print(
            f"ellipsum: the C++ kernels were not built ({type(failure).__name__}, see above): "
            "installing the Numba kernels alone, which give the same integers",
            file=sys.stderr,
        )
    else:
        without_numba_in(Path(wheel_directory, name))
        return name
    settings = {**(config_settings or {}), **_WITHOUT_CORE}
    return build(wheel_directory, settings, None)
