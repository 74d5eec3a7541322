"""Trains every network at the paper's size on made pictures: speed, memory, loss, and CPU and GPU.

Run from the project's folder::

    python tests/benchmarks/bench_networks.py [--pictures 256] [--size paper] [--only san]

Prints for each network pictures a second of training, with their changes but without finding
edges; the largest memory, of the device or of the process; and the loss of the first and the last
pass. Where there is a GPU, the codes that it computes must agree with those of the CPU to 1e-3 of
their norm, or the script fails. On a CPU use few pictures: ``--pictures 16`` takes a minute.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from entries import entry, report

from cppcl.features import EXTRACTORS, make_extractor
from cppcl.modality import MODALITIES

AGREEMENT = 1e-3
N_CLASSES = 8
PASSES = 3


def made(n: int, *, coloured: bool) -> list[tuple[NDArray[np.uint8], int]]:
    """Draw pictures of eight classes: so many boxes, in black or in colours."""
    rng = np.random.default_rng(int(coloured))
    pictures = []
    for number in range(n):
        picture = np.full((256, 256, 3), 255, dtype=np.uint8)
        for _ in range(1 + number % N_CLASSES):
            top, left = rng.integers(0, 200, 2)
            height, width = rng.integers(20, 56, 2)
            box = picture[top : top + height, left : left + width]
            box[:] = rng.integers(0, 200, 3) if coloured else 0
            if not coloured:
                box[4:-4, 4:-4] = 255
        pictures.append((picture, number % N_CLASSES))
    return pictures


def measure(name: str, n: int, size: str) -> dict[str, Any]:
    """Train one network for some passes and measure it."""
    import torch

    from tasks.workers.memory import peak_memory

    on_gpu = torch.cuda.is_available()
    extractor: Any = make_extractor(name, {"size": size, "epochs": PASSES, "held_out": 0.0})
    given = [made(n, coloured=coloured) for coloured in (False, True)]
    losses: list[float] = []
    times: list[float] = []

    def note(epoch: Any) -> None:
        losses.append(epoch.loss)
        times.append(time.perf_counter())

    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    extractor.fit_both(*given, callback=note)
    # The first pass loads kernels.
    seconds = (times[-1] - times[0]) / (len(times) - 1)
    memory = torch.cuda.max_memory_allocated() if on_gpu else peak_memory()
    apart = 0.0
    if on_gpu:
        for modality, pairs in zip(MODALITIES, given, strict=True):
            pictures = [picture for picture, _ in pairs[:8]]
            there = extractor.branch(modality).transform(pictures)
            with torch.no_grad():
                here = on_cpu(extractor.branch(modality), pictures)
            error = np.linalg.norm(there - here, axis=1) / np.linalg.norm(here, axis=1)
            apart = max(apart, float(error.max()))
        if apart > AGREEMENT:
            raise SystemExit(f"{name}: codes of GPU and CPU differ by {apart:.2g} of their norm")
    per_sketch = {"san": 1, "shape3d": 4}.get(name, 3)
    return entry(
        f"network {name}, {size}",
        seconds,
        device="cuda" if on_gpu else "cpu",
        pictures_a_second=n * per_sketch / seconds,
        memory_mib=memory / 2**20,
        first_loss=losses[0],
        last_loss=losses[-1],
        gpu_error=apart,
    )


def on_cpu(extractor: Any, pictures: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """Codes by the CPU, also where there is a GPU."""
    import torch

    there = torch.cuda.is_available
    torch.cuda.is_available = lambda: False
    try:
        codes: NDArray[np.float32] = extractor.transform(pictures)
        return codes
    finally:
        torch.cuda.is_available = there


def main() -> None:
    """Measure every network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=256, help="sketches, and as many images")
    parser.add_argument("--size", choices=("paper", "small"), default="paper")
    parser.add_argument("--only", nargs="*", help="names of networks")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    networks = sorted(name for name, extractor in EXTRACTORS.items() if extractor.cross_modal)
    for name in options.only or networks:
        report([measure(name, options.pictures, options.size)], options.json)


if __name__ == "__main__":
    main()
