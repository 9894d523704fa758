"""Run the code of a Markdown page, block by block, and compare what it prints with the page.

A page's ``python`` blocks share one namespace, in the page's order. A ``text`` block right after
one is what it prints, to the letter; a block that prints must have one. In a ``console`` block
each line ``$ ellipsum ...`` is run, and what follows it is its output. ``python peer`` blocks
belong to other libraries and are left to ``bench/guide_peers.py``; those of an engine's page, as
``python spark``, are run by the engine's own tests, where it is installed.

Fresh keys are what makes a release private, so examples have no seed: for the run, root keys come
from a fixed stream. And the keys of draws are bound to their root and use alone, not to the last
bit of a region, which may differ between machines; what a page shows must not.

    python tests/doc_pages.py README.md docs/guides/first_mean.md    write the outputs anew
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import io
import itertools
import os
import re
import secrets
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from ellipsum.cli import main
from ellipsum.noise_keys import KEY_BYTES
from plain_noise import noise_of_seeds

ROOT = Path(__file__).parent.parent
_FENCE = re.compile(r"^```(?P<info>[^`\n]*)\n(?P<body>.*?)^```$", re.M | re.S)


@dataclass
class Block:
    """A fenced block: what it is, its text, and where in the page."""

    info: str
    body: str
    start: int
    end: int
    line: int


@dataclass
class Mismatch:
    """A block whose output is not what the page shows."""

    block: Block
    shown: str
    printed: str
    span: tuple[int, int] = field(default=(0, 0))


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page."""
    return [
        Block(m["info"].strip(), m["body"], m.start(), m.end(), text[: m.start()].count("\n") + 2)
        for m in _FENCE.finditer(text)
    ]


@contextlib.contextmanager
def fixed_randomness() -> Iterator[None]:
    """Root keys from a fixed stream: examples then print the same at every run."""
    counter = itertools.count()

    def next_root(size: int = KEY_BYTES) -> bytes:
        return hashlib.blake2b(b"example %d" % next(counter), digest_size=size).digest()

    with mock.patch.object(secrets, "token_bytes", next_root), noise_of_seeds():
        yield


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    """An empty working directory for the files that an example writes."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def run_page(path: Path) -> list[Mismatch]:
    """Run every block of a page; return the blocks whose output differs from the page."""
    text = path.read_text(encoding="utf-8")
    found, names = blocks(text), {"__name__": "__main__"}
    wrong = []
    with fixed_randomness(), empty_folder(), mock.patch.dict(os.environ, MPLBACKEND="Agg"):
        for block, after in itertools.zip_longest(found, found[1:]):
            if block.info in ("python", f"python {path.stem}"):
                output = after if after and _is_output(text, block, after) else None
                wrong += _run_python(path, block, output, names)
            elif block.info == "console":
                wrong += _run_console(block)
    return wrong


def _is_output(text: str, block: Block, after: Block) -> bool:
    return after.info == "text" and not text[block.end : after.start].strip()


def _run_python(
    path: Path, block: Block, output: Block | None, names: dict[str, object]
) -> list[Mismatch]:
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.body, str(path), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    shown = output.body if output else ""
    if printed.getvalue() == shown:
        return []
    span = (output.start, output.end) if output else (block.end, block.end)
    return [Mismatch(block, shown, printed.getvalue(), span)]


def _run_console(block: Block) -> list[Mismatch]:
    printed = io.StringIO()
    for line in block.body.replace("\\\n", "\0").splitlines():
        if line.startswith("$ ellipsum"):
            words = shlex.split(line.removeprefix("$ ellipsum").replace("\0", " "))
            argv = [name for word in words for name in sorted(glob.glob(word)) or [word]]
            print(line.replace("\0", "\\\n"), file=printed)
            with contextlib.redirect_stdout(printed):
                code = main(argv)
            if code:
                print(f"exit code {code}", file=printed)
    if printed.getvalue() == block.body:
        return []
    return [Mismatch(block, block.body, printed.getvalue(), (block.start, block.end))]


def write(path: Path) -> None:
    """Put into the page what its blocks print."""
    text = path.read_text(encoding="utf-8")
    for wrong in reversed(run_page(path)):
        info = "console" if wrong.block.info == "console" else "text"
        fence = f"```{info}\n{wrong.printed}```" if wrong.printed else ""
        if wrong.span[0] == wrong.span[1]:
            fence = f"\n\n{fence}"
        text = text[: wrong.span[0]] + fence + text[wrong.span[1] :]
        print(f"{path}:{wrong.block.line}: written")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        write(Path(argument))
