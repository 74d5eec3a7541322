"""Our publishing of blocks beside Icechunk's transactions: speed, kill -9, damage.

Run from the project's folder, in any environment with NumPy and Zarr::

    python tests/benchmarks/bench_storage.py [--rows 10000] [--columns 1280]

Everything is also given as a ratio to writing and reading one plain ``.npy`` file in the same
run. The Icechunk part runs where ``import icechunk`` works (measured with icechunk 1.1.21).
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import itertools
import multiprocessing
import os
import pickle
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from entries import seconds

from storage import Recipe, Store, Writer, write_block

ROWS_PER_BLOCK = 256
N_PROCESSES = 2
CHECKED = [ZstdCodec(level=1), Crc32cCodec()]


def block_values(block: int, rows: int, columns: int) -> np.ndarray:
    """Half zeros, half normal: what a rectified layer of a network gives."""
    values = np.random.default_rng(block).standard_normal((rows, columns), np.float32)
    return np.maximum(values, 0)


class Grid:
    """The array that is written: blocks by number."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns

    @property
    def n_blocks(self) -> int:
        return -(-self.rows // ROWS_PER_BLOCK)

    def slice(self, block: int) -> slice:
        return slice(block * ROWS_PER_BLOCK, min((block + 1) * ROWS_PER_BLOCK, self.rows))

    def block(self, block: int) -> np.ndarray:
        rows = self.slice(block)
        return block_values(block, rows.stop - rows.start, self.columns)

    def whole(self) -> np.ndarray:
        return np.concatenate([self.block(block) for block in range(self.n_blocks)])


class Ours:
    """Blocks into ``.partial``, checked, flushed to disk and renamed."""

    name = "cppcl store"

    def __init__(self, root: Path, grid: Grid) -> None:
        self.store, self.grid, self.root = Store(root), grid, root
        self.recipe = Recipe("benchmark", "1", {"rows": grid.rows})

    def write(self, spread: Callable[[Any, list[int]], list[Any]]) -> int:
        """Write what is pending through `spread(target, blocks)`; return how many blocks."""
        written = 0

        def create(writer: Writer) -> None:
            nonlocal written
            shape = (self.grid.rows, self.grid.columns)
            writer.array("x", shape=shape, dtype="float32", rows_per_block=ROWS_PER_BLOCK)
            pending = writer.pending_blocks("x")
            written = len(pending)
            spread((self, str(writer.path)), pending)

        self.store.get_or_create(self.recipe, create)
        return written

    @staticmethod
    def put(target: str, block: int, values: np.ndarray) -> None:
        write_block(target, "x", block, values)

    @staticmethod
    def finish(target: str) -> None:
        """Nothing to hand back: the files are the state."""

    def readable(self) -> bool:
        return self.store.find(self.recipe.reference) is not None

    def read(self, rows: slice | None = None) -> np.ndarray:
        artifact = self.store.open(self.recipe.reference)
        return artifact.array("x") if rows is None else artifact.rows("x", rows)


class Icechunk:
    """One transaction: forked sessions write, the coordinator merges and commits."""

    name = "Icechunk"

    def __init__(self, root: Path, grid: Grid, codecs: Any = None) -> None:
        self.root, self.grid = root, grid
        self.codecs = CHECKED if codecs is None else codecs

    def repository(self) -> Any:
        import icechunk

        # It warns at every opening that commits to a local file system are not safe from another.
        icechunk.set_logs_filter("off")
        storage = icechunk.local_filesystem_storage(str(self.root))
        return icechunk.Repository.open_or_create(storage)

    def write(self, spread: Callable[[Any, list[int]], list[Any]]) -> int:
        repository = self.repository()
        session = repository.writable_session("main")
        zarr.create_array(
            session.store,
            name="x",
            shape=(self.grid.rows, self.grid.columns),
            dtype="float32",
            chunks=(ROWS_PER_BLOCK, self.grid.columns),
            compressors=self.codecs,
            filters=None,
            config={"write_empty_chunks": True},
            overwrite=True,
        )
        session.commit("declare")
        session = repository.writable_session("main")
        blocks = list(range(self.grid.n_blocks))
        session.merge(*spread((self, session.fork()), blocks))
        session.commit("fill")
        return len(blocks)

    def put(self, target: Any, block: int, values: np.ndarray) -> None:
        array = zarr.open_array(target.store, path="x", mode="r+")
        array.with_config({"write_empty_chunks": True})[self.grid.slice(block)] = values

    @staticmethod
    def finish(target: Any) -> Any:
        return target

    def array(self) -> zarr.Array[Any]:
        session = self.repository().readonly_session("main")
        return zarr.open_array(session.store, path="x", mode="r")

    def readable(self) -> bool:
        """True if any value of the unfinished write can be seen (unwritten ones read as 0)."""
        try:
            return bool(np.any(self.array()[:]))
        except (FileNotFoundError, KeyError, zarr.errors.ArrayNotFoundError):
            return False

    def read(self, rows: slice | None = None) -> np.ndarray:
        return np.asarray(self.array()[slice(None) if rows is None else rows])


def work(kind: Any, target: Any, blocks: list[int], barrier: Any, done: Any, results: Any) -> None:
    """Write blocks in a process of its own, counting them in `done`."""
    target = pickle.loads(target)
    values = {block: kind.grid.block(block) for block in blocks}  # making them is not timed
    barrier.wait()
    for block in blocks:
        kind.put(target, block, values[block])
        with done.get_lock():
            done.value += 1
    results.put(pickle.dumps(kind.finish(target)))


class Spread:
    """Writes blocks by processes of its own, and times them without their start."""

    def __init__(self, kill_after: int | None = None) -> None:
        self.kill_after, self.seconds = kill_after, 0.0

    def __call__(self, kind_and_target: tuple[Any, Any], blocks: list[int]) -> list[Any]:
        kind, target = kind_and_target
        context = multiprocessing.get_context("spawn")
        barrier, results = context.Barrier(N_PROCESSES + 1), context.Queue()
        done = context.Value("i", 0)
        payload = pickle.dumps(target)
        processes = [
            context.Process(
                target=work,
                args=(kind, payload, blocks[i::N_PROCESSES], barrier, done, results),
                daemon=True,
            )
            for i in range(N_PROCESSES)
        ]
        for process in processes:
            process.start()
        barrier.wait()
        self.start = time.perf_counter()
        if self.kill_after is not None:
            while done.value < self.kill_after:
                time.sleep(0.0005)
            for process in processes:
                process.kill()
                process.join()
            os.kill(os.getpid(), signal.SIGKILL)
        returned = [pickle.loads(results.get()) for _ in processes]
        for process in processes:
            process.join()
        return returned


def timed_write(kind: Any) -> float:
    """Seconds from the first block to the published array."""
    spread = Spread()
    kind.write(spread)
    return time.perf_counter() - spread.start


def write_npy(path: Path, values: np.ndarray) -> None:
    """One file in one process, flushed to disk."""
    with path.open("wb") as stream:
        np.save(stream, values)
        stream.flush()
        os.fsync(stream.fileno())


def write_and_die(kind: Any, kill_after: int) -> None:
    """Write in a process that is killed with its workers after some blocks."""
    kind.write(Spread(kill_after))


def after_a_kill(kind: Any, grid: Grid) -> str:
    """Kill a write in the middle; say what can be seen and what the next one writes."""
    process = multiprocessing.get_context("spawn").Process(
        target=write_and_die, args=(kind, grid.n_blocks // 2)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    visible = kind.readable()
    written = kind.write(Spread())
    assert np.array_equal(kind.read(), grid.whole())
    return (
        f"half-written state readable: {'yes' if visible else 'no'}; the next run wrote "
        f"{written} of {grid.n_blocks} blocks; {files_of(kind.root)[1] / 1e6:.1f} MB on disk then"
    )


def files_of(root: Path) -> tuple[list[Path], int]:
    """Return the non-empty files below a folder and their bytes."""
    found = sorted(path for path in root.rglob("*") if path.is_file() and path.stat().st_size)
    return found, sum(path.stat().st_size for path in found)


def after_damage(kind: Any, expected: np.ndarray, damage: str) -> Counter[str]:
    """Damage one file at a time, read everything, count how it went and where it was silent."""
    rng = np.random.default_rng(0)
    counts: Counter[str] = Counter()
    flips = {path: 5 if path.stat().st_size > 8192 else 100 for path in files_of(kind.root)[0]}
    for path in [p for p, n in flips.items() for _ in range(n if damage == "flip" else 1)]:
        original = path.read_bytes()
        if damage == "flip":
            data = bytearray(original)
            data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
            path.write_bytes(data)
        else:
            path.unlink()
        try:
            intact = np.array_equal(kind.read(), expected)
            place = path.relative_to(kind.root).parts[0]
            counts["right all the same" if intact else f"SILENTLY WRONG (in {place})"] += 1
        except Exception:
            counts["error"] += 1
        path.write_bytes(original)
    return counts


def compare_codecs(root: Path, grid: Grid) -> None:
    """Print speed and size of the codecs that were considered, each with a crc32c."""
    rng = np.random.default_rng(0)
    codes = np.zeros((grid.rows, 1200), np.float32)
    columns = rng.permuted(np.tile(np.arange(1200), (grid.rows, 1)), axis=1)[:, :20]
    np.put_along_axis(codes, columns, rng.standard_normal(columns.shape, np.float32), axis=1)
    arrays = {
        "rectified": grid.whole(),
        "codes": codes,
        "noise": rng.standard_normal((grid.rows, grid.columns), np.float32),
    }
    codecs = {
        "blosc lz4": BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"),
        "blosc zstd 1": BloscCodec(cname="zstd", clevel=1, shuffle="shuffle"),
        "zstd 1": ZstdCodec(level=1),
        "zstd 3": ZstdCodec(level=3),
    }
    for (title, values), (name, codec) in itertools.product(arrays.items(), codecs.items()):
        place = root / f"{title} {name}"
        array = zarr.create_array(
            store=place,
            shape=values.shape,
            dtype="float32",
            chunks=(ROWS_PER_BLOCK, values.shape[1]),
            compressors=[codec, Crc32cCodec()],
            filters=None,
        )
        cpu = time.process_time  # of all threads: other work on the machine matters less
        write = seconds(functools.partial(array.__setitem__, slice(None), values), 5, cpu)
        read = seconds(functools.partial(array.__getitem__, slice(None)), 5, cpu)
        size, rate = files_of(place)[1] / values.nbytes, values.nbytes / 1e6
        print(
            f"{title:10} {name:13} write {rate / write:5.0f}   read {rate / read:5.0f} "
            f"MB per CPU second   size {size:.3f} x raw"
        )


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=1280)
    options = parser.parse_args()
    grid = Grid(options.rows, options.columns)
    values = grid.whole()
    small = Grid(min(options.rows, 4096), min(options.columns, 64))
    print(f"{grid.rows}x{grid.columns} float32, {grid.n_blocks} blocks, {N_PROCESSES} processes")
    kinds: list[type] = [Ours]
    if importlib.util.find_spec("icechunk"):
        kinds.append(Icechunk)
    else:
        print("icechunk is not installed: its part is left out")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        npy = root / "x.npy"
        write, read = seconds(lambda: write_npy(npy, values), 3), seconds(lambda: np.load(npy), 3)
        rate = values.nbytes / 1e6
        print(f".npy          write {rate / write:5.0f} MB/s   read {rate / read:5.0f} MB/s")
        for kind_class in kinds:
            writes = []
            for repeat in range(5):
                kind = kind_class(root / f"{kind_class.__name__}{repeat}", grid)
                writes.append(timed_write(kind))
            assert np.array_equal(kind.read(), values)
            wrote, whole = statistics.median(writes), seconds(kind.read, 3)
            starts = np.random.default_rng(0).integers(0, grid.rows, 50)
            row = seconds(lambda: [kind.read(slice(i, i + 1)) for i in starts], 3) / 50  # noqa: B023
            size = files_of(kind.root)[1] / values.nbytes
            print(
                f"{kind.name:13} write {rate / wrote:5.0f} MB/s ({wrote / write:.2f} x .npy)   "
                f"read {rate / whole:5.0f} MB/s ({whole / read:.2f} x .npy)   "
                f"one row {1000 * row:.1f} ms   size {size:.2f} x raw"
            )
        print()
        compare_codecs(root, grid)
        print("\nkill -9 of all processes after half of the blocks")
        for kind_class in kinds:
            kind = kind_class(root / f"kill{kind_class.__name__}", grid)
            print(f"{kind.name:13} {after_a_kill(kind, grid)}")
        variants: list[tuple[str, Any]] = [("cppcl store", Ours(root / "damage", small))]
        if Icechunk in kinds:
            plain = [ZstdCodec(level=0)]
            variants += [
                ("Icechunk, Zarr's default codecs", Icechunk(root / "plain", small, plain)),
                ("Icechunk with crc32c", Icechunk(root / "crc", small)),
            ]
        flips = "one bit flipped, 5 times in each file of values and 100 times in each other file"
        for damage, title in (("flip", flips), ("delete", "each stored file deleted")):
            print(f"\n{title}, then everything read")
            for name, kind in variants:
                if damage == "flip":
                    kind.write(Spread())
                counts = after_damage(kind, small.whole(), damage)
                print(f"{name:32} {dict(counts)}")


if __name__ == "__main__":
    main()
