"""Extraction at scale: speed-up by workers, cost of orchestration, memory of flow and scheduler.

Time it on an idle machine. Every figure is beside what the same processor does without Dask.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parent))

from made_pictures import make_pictures

import tasks.stages.extract
from cppcl.datasets.emoji import Emoji
from storage import Reference
from tasks.cluster.scheduling import Finished
from tasks.cluster.session import cluster_session
from tasks.stages.extract import extract_features
from tasks.stages.fetch import fetch_data
from tasks.workers.blocks import extract_block
from tasks.workers.memory import peak_memory
from tasks.workspace import Workspace

LIMITS = {"speed_up_ratio": 0.90, "overhead": 0.10, "flow_bytes": 1.5e9, "scheduler_bytes": 500e6}
"""At least, at most, at most, at most."""
EXTRACTOR = "hog"
MEMORY = "2GiB"


def make_table(folder: Path, n_pictures: int) -> tuple[Workspace, Reference, Path]:
    """Made pictures and their table: all but a few are images."""
    root = folder / "pictures"
    emoji = Emoji().fetch(folder / "data")
    classes = [f"class {k}" for k in range(50)]
    make_pictures(root, emoji, classes=classes, n_sketches=len(classes), n_images=n_pictures)
    workspace = Workspace(folder / "workspace")
    options = {"root": root}
    table = fetch_data(workspace=workspace, name="tuberlin", options=options, key_parameters={})
    return workspace, table.reference, root


def extract(workspace: Workspace, table: Reference, **changes: Any) -> Any:
    """Extract the images anew."""
    arguments: dict[str, Any] = {
        "modality": "image",
        "extractor": EXTRACTOR,
        "options": {},
        "longest_side": 128,
        "block_rows": 32,
        "mode": "force",
        **changes,
    }
    return extract_features(workspace=workspace, table=table, **arguments)


@contextmanager
def in_a_loop(share: slice = slice(None)) -> Iterator[None]:
    """Extract in this process, one block after the other."""

    def run(blocks: Any, partial: str, root: str, spec: Any, device: str, store: str) -> Any:
        for done, block in enumerate(blocks[share], start=1):
            yield Finished(extract_block(partial, block, root, spec, store), done)

    before = tasks.stages.extract.run_blocks
    tasks.stages.extract.run_blocks = run
    try:
        yield
    finally:
        tasks.stages.extract.run_blocks = before


def bare(folder: str, part: int, n_parts: int, extractor_name: str) -> None:
    """Describe a share of the pictures, in a process that knows no Dask; prints its seconds."""
    from tasks.samples import open_pictures
    from tasks.workers.extractors import ExtractorSpec, read_unchanged, transform_each

    workspace = Workspace(Path(folder) / "workspace")
    (reference,) = workspace.store.references("fetch")
    pictures = open_pictures(workspace.store, reference)
    rows = pictures.table.rows("image")
    blocks = [rows[at : at + 32] for at in range(0, len(rows), 32)][part::n_parts]
    spec = ExtractorSpec(extractor_name, "{}", 128)
    extractor = spec.make("")
    warm = read_unchanged(
        str(pictures.root), pictures.table.paths[rows[0]], pictures.table.sha256[rows[0]], 128
    )
    transform_each(extractor, [warm])
    print("ready", flush=True)
    sys.stdin.readline()
    started = time.perf_counter()
    for block in blocks:
        samples = [
            read_unchanged(
                str(pictures.root), pictures.table.paths[row], pictures.table.sha256[row], 128
            )
            for row in block
        ]
        transform_each(extractor, samples)
    print(time.perf_counter() - started, flush=True)


def seconds_bare(folder: Path, n_processes: int, extractor: str) -> float:
    """Seconds of so many bare processes that share the pictures, until the last is done."""
    program = [sys.executable, __file__, "--bare", str(folder)]
    processes = [
        subprocess.Popen(
            [*program, str(part), str(n_processes), extractor],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # as on workers
        )
        for part in range(n_processes)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    times = [float(process.communicate()[0]) for process in processes]
    return max(times)


def seconds_on_workers(
    workspace: Workspace, table: Reference, n_workers: int, extractor: str
) -> float:
    """Seconds of extraction on so many workers that are up and have extracted before."""
    with cluster_session(workers=n_workers, memory_per_worker=MEMORY) as session:
        session.client().wait_for_workers(n_workers, timeout=120)
        extract(workspace, table, extractor=extractor, modality="sketch", block_rows=4)
        started = time.perf_counter()
        made = extract(workspace, table, extractor=extractor)
        seconds = time.perf_counter() - started
    shutil.rmtree(workspace.store.path(made.reference))  # a run finds none to replace
    return seconds


def measure_speed_up(
    folder: Path, n_pictures: int, repeats: int, extractor: str
) -> dict[str, float]:
    """Speed-up from one to two workers, in that from one to two bare processes, turn about.

    A machine that others use changes its speed by a tenth from one minute to the next, so that the
    best times of the four are of different machines. Each turn gives a ratio, from which a steady
    drift drops out; the median of the turns counts.
    """
    workspace, table, _ = make_table(folder, n_pictures)
    times: dict[str, list[float]] = {"bare 1": [], "bare 2": [], "dask 1": [], "dask 2": []}
    for _ in range(repeats):
        for n in (1, 2):
            times[f"bare {n}"].append(seconds_bare(folder, n, extractor))
            times[f"dask {n}"].append(seconds_on_workers(workspace, table, n, extractor))
    taken = {name: np.array(found) for name, found in times.items()}
    bare_speed_ups, dask_speed_ups = (taken[f"{k} 1"] / taken[f"{k} 2"] for k in ("bare", "dask"))
    ratios = dask_speed_ups / bare_speed_ups
    return {
        **{
            f"{name.replace(' ', '_')}_s": float(np.median(found)) for name, found in taken.items()
        },
        "bare_speed_up": float(np.median(bare_speed_ups)),
        "dask_speed_up": float(np.median(dask_speed_ups)),
        "least_ratio": float(ratios.min()),
        "largest_ratio": float(ratios.max()),
        "speed_up_ratio": float(np.median(ratios)),
    }


def measure_overhead(folder: Path, n_pictures: int) -> dict[str, float]:
    """Processor time of flow, scheduler and one worker, beside that of a plain loop."""
    workspace, table, _ = make_table(folder, n_pictures)
    with in_a_loop():
        extract(workspace, table, modality="sketch")
        started = time.process_time()
        extract(workspace, table)
        loop = time.process_time() - started
    with cluster_session(workers=1, memory_per_worker=MEMORY) as session:
        client = session.client()
        extract(workspace, table, modality="sketch", block_rows=4)

        def spent() -> tuple[float, float]:
            return time.process_time(), sum(client.run(time.process_time).values())

        before = spent()
        extract(workspace, table)
        flow, worker = (now - then for now, then in zip(spent(), before, strict=True))
    return {
        "pictures": n_pictures,
        "loop_cpu_s": loop,
        "flow_cpu_s": flow,
        "worker_cpu_s": worker,
        "overhead": (flow + worker) / loop - 1,
    }


@contextmanager
def scheduler_apart() -> Iterator[tuple[str, psutil.Process]]:
    """A scheduler and two workers in processes of their own: its address, and its process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    program += ["--port", "0", "--no-dashboard"]
    scheduler = subprocess.Popen(program, stderr=subprocess.PIPE, text=True, env=environment)
    workers: list[subprocess.Popen[bytes]] = []
    try:
        found = None
        while found is None:
            found = re.search(r"tcp://[\d.]+:\d+", scheduler.stderr.readline())
        threading.Thread(target=scheduler.stderr.read, daemon=True).start()
        command = [sys.executable, "-m", "distributed.cli.dask_worker", found[0], "--nthreads"]
        command += ["1", "--memory-limit", MEMORY, "--resources", "CPU=1", "--no-dashboard"]
        for _ in range(2):
            workers.append(
                subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
                )
            )
        yield found[0], psutil.Process(scheduler.pid)
    finally:
        for process in (*workers, scheduler):
            process.terminate()
        for process in (*workers, scheduler):
            process.wait(30)


def measure_memory(folder: Path, n_rows: int, n_blocks: int) -> dict[str, Any]:
    """Memory of the flow's process and of the scheduler while many short blocks are extracted."""
    rng = np.random.default_rng(0)
    files = {modality: folder / f"{modality}.npy" for modality in ("sketch", "image")}
    np.save(files["sketch"], rng.standard_normal((2, 16), dtype=np.float32))
    np.save(files["image"], rng.standard_normal((n_rows, 16), dtype=np.float32))
    lines = ["modality,row,label"]
    lines += [f"sketch,{k},a" for k in range(2)]
    lines += [f"image,{k},{'ab'[k % 2]}" for k in range(n_rows)]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    workspace = Workspace(folder / "workspace")
    table = fetch_data(
        workspace=workspace,
        name="matrices",
        options={
            "sketch_features": files["sketch"],
            "image_features": files["image"],
            "labels": folder / "labels.csv",
        },
        key_parameters={},
    ).reference
    before = peak_memory()
    most, ended = [0, 0], threading.Event()
    with scheduler_apart() as (address, scheduler), cluster_session(address) as session:
        session.client()

        def watch(flow: psutil.Process) -> None:
            while not ended.wait(0.1):
                for place, process in enumerate((flow, scheduler)):
                    most[place] = max(most[place], process.memory_info().rss)

        thread = threading.Thread(target=watch, args=(psutil.Process(),), daemon=True)
        thread.start()
        started = time.perf_counter()
        extract(
            workspace,
            table,
            extractor="precomputed",
            options={"length": 16},
            block_rows=-(-n_rows // n_blocks),
        )
        seconds = time.perf_counter() - started
        ended.set()
        thread.join()
    return {
        "rows": n_rows,
        "blocks": n_blocks,
        "seconds": seconds,
        "peak_before_bytes": before,
        "flow_bytes": most[0],
        "scheduler_bytes": most[1],
    }


def main() -> int:
    """Measure what is asked for, and say whether it is within its limits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bare", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=("speed_up", "overhead", "memory"))
    parser.add_argument("--pictures", type=int, default=12_000, help="for the speed-up")
    parser.add_argument(
        "--extractor", default=EXTRACTOR, help="of the speed-up; cnn in the experiment tuberlin"
    )
    parser.add_argument("--repeats", type=int, default=5, help="turns of the speed-up")
    parser.add_argument("--loop", type=int, default=20_000, help="pictures for the overhead")
    parser.add_argument("--rows", type=int, default=200_000, help="for the memory")
    parser.add_argument("--blocks", type=int, default=10_000, help="for the memory")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.bare:
        folder, part, n_parts, extractor = options.bare
        bare(folder, int(part), int(n_parts), extractor)
        return 0
    work = {
        "speed_up": partial(
            measure_speed_up,
            n_pictures=options.pictures,
            repeats=options.repeats,
            extractor=options.extractor,
        ),
        "overhead": partial(measure_overhead, n_pictures=options.loop),
        "memory": partial(measure_memory, n_rows=options.rows, n_blocks=options.blocks),
    }
    found: dict[str, Any] = {}
    failed = False
    for name in [options.only] if options.only else work:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = work[name](Path(folder))
        for quantity, value in found[name].items():
            limit = LIMITS.get(quantity)
            within = limit is None or (
                value >= limit if quantity == "speed_up_ratio" else value <= limit
            )
            failed |= not within
            word = "" if limit is None else f"  limit {limit:.4g}: {'met' if within else 'MISSED'}"
            print(f"{name} {quantity}: {value:.4g}{word}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
