"""The clip kernels against reading the same array: each target, arrangement, task and layout.

    python bench/bench_layouts.py                  # about five minutes; --quick: one, rougher
    python bench/bench_layouts.py --check          # also fails where a row is below its ratio

writes ``bench/results/FAMILY/layouts.md``, a folder for each family of processors. One thread;
every figure is the least of several repeats, taken in turns with reading; every answer is checked.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

import peers

peers.single_thread()

import numpy as np  # noqa: E402

import measure  # noqa: E402
from bench_passes import Case  # noqa: E402
from ellipsum import Ellipsoid, ExactSum  # noqa: E402
from ellipsum.kernels.backend import kernels, use_kernels  # noqa: E402
from report import DTYPES, Table, family_folder, markdown  # noqa: E402

DS = (4, 10, 16, 64, 128, 1024, 16384)
#: Least share of reading that a row may reach, by d, for float32 and float64 (the best target).
WANTED = {10: (0.3, 0.75), 16: (0.5, 0.9)}
WANTED |= dict.fromkeys((64, 128, 1024, 16384), (0.75, 0.75))
#: Reading alone by columns goes by blocks of as many bytes of doubles: as many as kernels' own that
#: stay in a second level of cache.
BLOCK_BYTES = 1 << 20
#: Of more bytes than any array here has: each column to its end.
WHOLE = 1 << 40
#: What one column makes, again and again: 256 KiB of it at d = 64.
AGAIN_BYTES = 16 << 20
#: A column may take this many times as long as a row, and another pass as the clip to a ball.
WANTED_COLUMNS, WANTED_PASSES = 1.5, 1.3


def total_of(rows: object, region: Ellipsoid, target: str = "") -> np.ndarray:
    with use_kernels(f"cpp-{target}"):
        return ExactSum(region).add(rows).integers()


def boxes_of(d: int) -> tuple[Ellipsoid, Ellipsoid]:
    """A cube around 0, and a box with a centre and a width for each coordinate."""
    center, width = np.linspace(-0.01, 0.01, d), np.linspace(0.6, 0.8, d)
    cube = Ellipsoid.box(np.full(d, -0.7), np.full(d, 0.7))
    return cube, Ellipsoid.box(center - width, center + width)


def show(line: dict[str, object]) -> dict[str, object]:
    print(line, flush=True)
    return line


def targets_table(megabytes: int, repeats: int) -> Table:
    """GB/s of rows: reading, each target in the arrangement that it measured, and Numba, in a ball
    around 0; and in an ellipsoid with a centre and a scale for each coordinate."""
    table: Table = []
    names = kernels().targets()
    for dtype in DTYPES:
        for d in DS:
            rows, region = measure.rows_of(d, dtype, megabytes), measure.half_clipped(d)
            shape = region.center, region.scale, region.clip_norm
            wanted = total_of(rows, region)
            assert all((total_of(rows, region, name) == wanted).all() for name in names)
            own = measure.half_clipped_ellipsoid(d)
            jobs = [partial(total_of, rows, region, name) for name in ["", *names[1:]]]
            seconds = measure.best(
                partial(measure.read_alone, rows),
                partial(peers.numba_fastmath, rows, *shape),
                partial(total_of, rows, own),
                *jobs,
                repeats=repeats,
            )
            speed = [rows.nbytes / 1e9 / s for s in seconds]
            line = {"dtype": dtype, "d": d, "read": speed[0], "Numba fastmath": speed[1]}
            line |= {"ellipsum": speed[3], "ellipsum / read": speed[3] / speed[0]}
            line |= {"ellipsum / Numba": speed[3] / speed[1]}
            line |= {"own axes": speed[2], "own axes / read": speed[2] / speed[0]}
            table.append(show(line | dict(zip(names[1:], speed[4:], strict=True))))
    return table


def arrangements_table(megabytes: int, repeats: int, *, columns: bool) -> Table:
    """Share of reading of each arrangement of the best target, and of half its width."""
    table: Table = []
    best = kernels().targets()[:2]
    names = [name for name in kernels().variants() if name.partition(":")[0] in best]
    names = [name for name in names if (":columns" in name) == columns]
    for dtype in DTYPES:
        for d in DS[1:-1] if columns else DS[1:]:
            rows, region = measure.rows_of(d, dtype, megabytes), measure.half_clipped(d)
            data = np.asfortranarray(rows) if columns else rows
            jobs = [partial(total_of, data, region, name) for name in names]
            read, *seconds = measure.best(partial(measure.read_alone, rows), *jobs, repeats=repeats)
            ratios = {name: read / s for name, s in zip(names, seconds, strict=True)}
            table.append(show({"dtype": dtype, "d": d, **ratios}))
    return table


def tasks_table(megabytes: int, repeats: int, *, columns: bool) -> Table:
    """Boxes' share of reading; time of the other passes in times of the clip's to a ball. Of rows,
    or of an array in Fortran order."""
    table: Table = []
    for dtype in DTYPES:
        for d in DS[:-1] if columns else DS:
            case = Case(d, dtype, megabytes)
            data = np.asfortranarray(case.rows) if columns else case.rows
            region = measure.half_clipped(d)
            cube, own_box = boxes_of(d)
            read, ball, box, own, halves, distances = measure.best(
                partial(measure.read_alone, case.rows),
                partial(total_of, data, region),
                partial(total_of, data, cube),
                partial(total_of, data, own_box),
                partial(case.halves, data),
                partial(case.distances, data),
                repeats=repeats,
            )
            line = {"dtype": dtype, "d": d, "read": case.rows.nbytes / 1e9 / read}
            line |= {"cube / read": read / box, "own box / read": read / own}
            line |= {"cube / ball": box / ball, "own box / ball": own / ball}
            line |= {"halves / ball": halves / ball, "distances / ball": distances / ball}
            table.append(show(line))
    return table


def in_columns(rows: np.ndarray) -> dict[str, tuple[object, measure.Columns]]:
    """The same rows by columns, in the containers that are installed, and these columns."""
    fortran = np.asfortranarray(rows)
    line = 64 // rows.itemsize
    apart = np.empty((rows.shape[1], rows.shape[0] + line), rows.dtype)[:, :-line]
    apart[...] = rows.T
    # The first has its columns a power of two apart, the second one has them a line more apart.
    layouts: dict[str, tuple[object, measure.Columns]] = {
        "Fortran array": (fortran, measure.Columns(list(fortran.T))),
        "Fortran, spaced": (apart.T, measure.Columns(list(apart))),
    }
    names = [f"x{j}" for j in range(rows.shape[1])]
    try:
        import pandas
        import polars
        import pyarrow
    except ImportError:
        return layouts
    layouts["pandas"] = pandas.DataFrame(fortran, columns=names), layouts["Fortran array"][1]
    # Columns that their owners allocated, each by itself.
    columns = [pyarrow.array(c) for c in fortran.T]
    arrow = pyarrow.table([pyarrow.concat_arrays([c, c[:0]]) for c in columns], names)
    lie = [column.chunk(0).to_numpy(zero_copy_only=True) for column in arrow.columns]
    layouts["Arrow"] = arrow, measure.Columns(lie)
    frame = polars.from_arrow(arrow).select(polars.all().neg().neg())
    lie = [column.to_numpy(allow_copy=False) for column in frame.get_columns()]
    layouts["Polars"] = frame, measure.Columns(lie)
    return layouts


def columns_table(megabytes: int, repeats: int) -> Table:
    """GB/s by columns, and how many times slower than the same rows in row order; and reading
    alone of the same columns, in blocks."""
    table: Table = []
    for dtype in DTYPES:
        for d in DS[:-1]:
            rows, region = measure.rows_of(d, dtype, megabytes), measure.half_clipped(d)
            layouts = in_columns(rows)
            wanted = total_of(rows, region)
            assert all((total_of(x, region) == wanted).all() for x, _ in layouts.values())
            blocks = [partial(columns.read_alone, BLOCK_BYTES) for _, columns in layouts.values()]
            read, whole, by_rows, *seconds = measure.best(
                partial(measure.read_alone, rows),
                partial(layouts["Fortran array"][1].read_alone, WHOLE),
                partial(total_of, rows, region),
                *[partial(total_of, x, region) for x, _ in layouts.values()],
                *blocks,
                repeats=repeats,
            )
            speed = [rows.nbytes / 1e9 / s for s in seconds]
            line: dict[str, object] = {"dtype": dtype, "d": d, "read": rows.nbytes / 1e9 / read}
            line |= {"read by columns": rows.nbytes / 1e9 / whole}
            line |= {"rows": rows.nbytes / 1e9 / by_rows}
            for name, ours, alone in zip(layouts, speed, speed[len(layouts) :], strict=False):
                line |= {name: ours, f"{name}, read": alone, f"rows / {name}": line["rows"] / ours}
            table.append(show(line))
    return table


def again(d: int, dtype: str, what: str, megabytes: int) -> float:
    """Share of reading that a pass reaches over one row again and again: all that it costs, but for
    the memory that rows come from."""
    rows, (cube, own_box) = measure.rows_of(d, dtype, megabytes), boxes_of(d)
    regions = {"ellipsum": measure.half_clipped(d), "own axes": measure.half_clipped_ellipsoid(d)}
    regions |= {"cube": cube, "own box": own_box}
    row = np.broadcast_to(rows[:1], rows.shape)
    read, ours = measure.best(
        partial(measure.read_alone, rows), partial(total_of, row, regions[what]), repeats=3
    )
    return read / ours


def again_by_columns(d: int, dtype: str, megabytes: int) -> float:
    """GB/s over one column again and again, a part of it that stays in the cache: all that columns
    cost, but for the memory that they come from."""
    fortran = np.asfortranarray(measure.rows_of(d, dtype, megabytes))
    region = measure.half_clipped(d)
    column = fortran[: AGAIN_BYTES // fortran[0].nbytes, 0].copy()
    rows = np.broadcast_to(column[:, None], (len(column), d))
    for _ in range(3):
        total_of(fortran, region)  # what is fastest there is known by then
    return rows.nbytes / 1e9 / measure.best(partial(total_of, rows, region), repeats=30)[0]


def failures(tables: dict[str, Table], megabytes: int) -> list[str]:
    """What falls below its ratio, and what bounds it."""
    found = []
    boxes = tables["Other passes, times of the clip"]
    for line in [*tables["Rows, GB/s"], *boxes]:
        wanted = WANTED.get(line["d"], (0, 0))[line["dtype"] == "float64"]
        for what in ("ellipsum", "own axes", "cube", "own box"):
            if line.get(f"{what} / read", wanted) < wanted:
                bound = again(line["d"], line["dtype"], what, megabytes)
                found.append(f"{line['dtype']} d = {line['d']}: {line[f'{what} / read']:.3f} of "
                             f"reading ({what}), wanted {wanted}; one row again and again: "
                             f"{bound:.3f}")  # fmt: skip
    for line in tables["Rows, GB/s"]:
        if line["d"] > 8 and line["ellipsum / Numba"] < 1:
            found.append(f"{line['dtype']} d = {line['d']}: slower than Numba")
    for lie, lines in (("", boxes), (" by columns", tables["Other passes by columns"])):
        for line in lines:
            for what in ("halves", "cube", "own box"):
                if (times := line[f"{what} / ball"]) > WANTED_PASSES:
                    found.append(f"{line['dtype']} d = {line['d']}: {what}{lie} takes "
                                 f"{times:.2f} times as long as the ball")  # fmt: skip
    for line in tables["Columns, GB/s"]:
        # A row's norm needs all of its columns: they are read in blocks, and no faster than that.
        for key in [key for key in line if key.startswith("rows / ")]:
            name = key.removeprefix("rows / ")
            if line[key] > WANTED_COLUMNS:
                alone = line["rows"] / line[f"{name}, read"]
                cached = line["rows"] / again_by_columns(line["d"], line["dtype"], megabytes)
                found.append(f"{line['dtype']} d = {line['d']}: {name} takes {line[key]:.2f} times "
                             f"as long as rows; reading it alone in blocks of 1 MiB {alone:.2f}, "
                             f"one column again and again {cached:.2f}")  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    megabytes, repeats = (128, 3) if options.quick else (512, 7)
    tables = {
        "Rows, GB/s": targets_table(megabytes, repeats),
        "Columns, GB/s": columns_table(megabytes // 2, repeats),
        "Other passes, times of the clip": tasks_table(megabytes // 2, repeats, columns=False),
        "Other passes by columns": tasks_table(megabytes // 2, repeats, columns=True),
        "Arrangements, of reading": arrangements_table(megabytes // 2, repeats, columns=False),
        "Arrangements of columns, of reading": arrangements_table(
            megabytes // 2, repeats, columns=True
        ),
    }
    text = [f"# {measure.family()}\n\nMachine: {measure.machine()}.\n"]
    text += [f"\n## {title}\n\n{markdown(table)}" for title, table in tables.items()]
    below = failures(tables, megabytes // 2)
    text += ["\n## Below what is wanted\n\n", *(f"- {line}\n" for line in below or ["nothing"])]
    (family_folder() / "layouts.md").write_text("".join(text))
    if options.check and below:
        sys.exit("\n".join(below))


if __name__ == "__main__":
    main()
