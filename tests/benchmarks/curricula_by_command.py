"""Curricula of many images by ``cppcl run``: in one go, or killed half-way and run again."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from entries import entry
from numpy.typing import NDArray
from PIL import Image

ROOT = Path(__file__).parents[2]
PAPER_IMAGES, PAPER_SECONDS = 4883, 480.0
N_SKETCHES, N_CLASSES = 330, 33
"""Of the data set of which the paper times so many images."""
BLOCK_ROWS = 32
WORKERS = 2
NAME = "curricula-of-many"
Make = Callable[[int], Sequence[Any]]


def write_pictures(root: Path, files: Sequence[Path], make: Make, sketches: Make, n: int) -> int:
    """Write n training images, and one a class for the test; returns how many are distinct.

    Images are copies of files, or made ones where there are no files. From the second round on a
    byte behind the end makes each another file: rows of the same file would be copied.
    """
    n = n + N_CLASSES
    contents = [(file.suffix, file.read_bytes()) for file in files[:n]] or [
        (".png", encoded(picture)) for picture in make(400)
    ]
    folders = [root / side / f"{k}" for side in ("images", "sketches") for k in range(N_CLASSES)]
    for folder in folders:
        folder.mkdir(parents=True)
    for k in range(n):
        turn, which = divmod(k, len(contents))
        suffix, content = contents[which]
        path = folders[k % N_CLASSES] / f"{k:05}{suffix}"
        path.write_bytes(content + bytes([turn] if turn else []))
    for k, picture in enumerate(sketches(N_SKETCHES + N_CLASSES)):
        folder = folders[N_CLASSES + k % N_CLASSES]
        (folder / f"{k:03}.png").write_bytes(encoded(picture))
    return min(n, len(contents))


def encoded(picture: NDArray[np.uint8]) -> bytes:
    """PNG file of a picture."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG")
    return file.getvalue()


def processor_seconds() -> float:
    """Of all processes that this one started and that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def configuration(root: Path) -> dict[str, Any]:
    """Experiment on them; features are the scores, so that nothing else is extracted."""
    scores = {
        "sketch": {"name": "edgeness"},
        "image": {"name": "objectness", "learn_from": "image"},
    }
    amounts = {"test_sketches": 1, "test_images": 1}
    return {
        "name": NAME,
        "dataset": {"name": "folder", "root": str(root)},
        "block_rows": BLOCK_ROWS,
        "features": scores,
        "curriculum": scores,
        "protocols": {
            "all": {
                "split": {"rule": "counted", "seeds": [0], **amounts},
                "methods": {"raw_cosine": None},
            }
        },
        "compute": {"workers": WORKERS},
    }


@contextmanager
def started(file: Path, workspace: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the experiment as far as its curricula; neither it nor its workers outlive the block."""
    run = subprocess.Popen(
        [
            *(sys.executable, "-m", "deployments.cli", "run", str(file), "--json"),
            *("--until", "curricula", "--workspace", str(workspace)),
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield run
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()


def finished(run: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    """Record and remarks of a run that came to its end."""
    out, said = run.communicate()
    if run.returncode:
        raise SystemExit(f"the run ended with exit code {run.returncode}:\n{said}")
    return json.loads(out.splitlines()[-1]), said


def kill_half_way(run: subprocess.Popen[str], workspace: Path, n_blocks: int) -> int:
    """Kill a run once half of the blocks of images are there; returns how many are."""

    def done() -> int:
        return max(
            (
                len(list(p.glob("arrays/features/c.*")))
                for p in workspace.glob("store/extract/*.partial")
            ),
            default=0,
        )

    while done() < n_blocks // 2:
        try:
            code = run.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            continue
        raise SystemExit(f"the run ended with exit code {code} before it could be killed")
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    return done()


def measure_run(
    files: Sequence[Path], make: Make, sketches: Make, n: int, *, kill: bool
) -> list[dict[str, Any]]:
    """Seconds of everything from the files to the pairs, two workers and blocks of 32.

    ``processor_s`` is what all its processes took of the cores, whatever else runs here.

    The peer is the paper's time for objectness alone, on a machine of its own.
    """
    peer = "paper", PAPER_SECONDS * n / PAPER_IMAGES
    n_blocks = -(-(n + N_CLASSES) // BLOCK_ROWS)
    with tempfile.TemporaryDirectory() as place:
        root, file, workspace = (Path(place) / name for name in ("all", "run.yaml", "workspace"))
        n_distinct = write_pictures(root, files, make, sketches, n)
        file.write_text(yaml.safe_dump(configuration(root)))
        rest: dict[str, Any] = {"distinct": n_distinct}
        how = "cppcl run"
        used, begun = processor_seconds(), time.perf_counter()
        if kill:
            with started(file, workspace) as run:
                before = kill_half_way(run, workspace, n_blocks)
            rest["first_s"] = time.perf_counter() - begun
            rest["blocks_before"] = before
            how = "cppcl run, killed half-way and run again"
        with started(file, workspace) as run:
            record, said = finished(run)
        spent = time.perf_counter() - begun
        rest["processor_s"] = processor_seconds() - used
        if kill and f"{before} of {n_blocks} blocks were done" not in said:
            raise SystemExit(f"the {before} finished blocks were not used again:\n{said}")
        rest |= {f"{stage}_s": seconds for stage, seconds in record["seconds"].items()}
    return [entry(f"curricula of {n:,} images, {how}", spent, *peer, **rest)]
