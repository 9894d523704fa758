"""Write the seeds of the fuzzers: odd lines, lists and small files, and sums as bytes.

python tests/fuzz/make_corpus.py
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_readers import MODES

from ellipsum import Ellipsoid, ExactSum

HERE = Path(__file__).parent

LINES = (
    b"1,2\n\xef\xbb\xbf3,4\n\n1", b'1,"2\n"3,4\nx"y,"5"\n"6""7",8', b"1\r5,2\r\n3,4\r",
    b"a,b\n1,NA\n-1e400,nan\n+.5,5.", b"\xff\xfe1,\x002\n\xc3\x28,1", b"1;2\n0,5;1,5\n# note",
    b"a\tb\n1\t2", b"inf,-Infinity\nnan(1),0x10\n1_0, 7 ", b'"a,1",b\n"1","2"\n',
)  # fmt: skip


def binary() -> dict[str, bytes]:
    table = pa.table({"a": [1.0, None], "b": [2, 3]})
    lists = pa.table({"v": [[1.0, 2.0], None]})
    files = {}
    for name, content in (("wide", table), ("list", lists)):
        with pa.BufferOutputStream() as out:
            pq.write_table(content, out)
            files[f"parquet {name}"] = out.getvalue().to_pybytes()
        for kind, writer in (("arrow", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
            out = pa.BufferOutputStream()
            with writer(out, content.schema) as file:
                file.write_table(content)
            files[f"{kind} {name}"] = out.getvalue().to_pybytes()
    for name, array in (("c", np.ones((2, 2))), ("big", np.asfortranarray(np.ones((2, 2), ">i2")))):
        out = io.BytesIO()
        np.save(out, array)
        files[f"npy {name}"] = out.getvalue()
    return files


def readers() -> dict[str, bytes]:
    seeds = {}
    for k, lines in enumerate(LINES):
        for mode in ("csv", "csv with names", "tsv"):
            seeds[f"{mode} {k}"] = bytes([MODES.index(mode), k % 3]) + lines
    for k in range(4):
        items = bytes(range(k, 120, 3))
        seeds[f"list {k}"] = bytes([MODES.index("list"), k % 3]) + items
    for name, content in binary().items():
        seeds[name] = bytes([MODES.index(name.split()[0]), 1]) + content
    return seeds


def states() -> dict[str, bytes]:
    regions = {
        "ball": Ellipsoid.ball(2.0, d=2),
        "box": Ellipsoid.box([0, 0, 0], [1, 2, 3]),
        "ellipsoid": Ellipsoid.for_gaussian([1.0, 2.0], clip_probability=0.1),
        "matrix": Ellipsoid.for_covariance([[2.0, 0.5], [0.5, 1.0]], clip_probability=0.1),
    }
    rows = np.linspace(-3, 3, 12)
    return {
        name: ExactSum(region).add(np.resize(rows, (4, region.d))).to_bytes()
        for name, region in regions.items()
    }


def main() -> None:
    for folder, seeds in (("corpus_readers", readers()), ("corpus_state", states())):
        (HERE / folder).mkdir(exist_ok=True)
        for name, content in seeds.items():
            (HERE / folder / name.replace(" ", "_")).write_bytes(content)


if __name__ == "__main__":
    main()
