"""Time of every extractor, as a ratio to one HOG of scikit-image; CUDA too where there is one.

Run from the project's folder, with one thread as on a Dask worker::

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_features.py [--pictures 32]

Where torch finds a CUDA device, the network runs on it too: its features must agree with those of
the CPU to 1e-3 of their norm, or the script fails.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from cppcl.features import EXTRACTORS, make_extractor

AGREEMENT = 1e-3


def drawings(n: int) -> list[NDArray[np.uint8]]:
    """White pictures with random dark strokes, (256, 256, 3)."""
    from PIL import Image, ImageDraw

    generator = np.random.default_rng(0)
    pictures = []
    for _ in range(n):
        picture = Image.new("RGB", (256, 256), "white")
        pen = ImageDraw.Draw(picture)
        for _ in range(8):
            pen.line([tuple(p) for p in generator.integers(20, 236, (4, 2))], "black", 3)
        pictures.append(np.asarray(picture))
    return pictures


def milliseconds(work: Callable[[], object], n: int, repeats: int = 3) -> float:
    """Median time a picture after one warm-up."""
    work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return 1e3 * statistics.median(seconds) / n


def peer(pictures: list[NDArray[np.uint8]]) -> None:
    """HOG of scikit-image on 128 x 128 grey pictures."""
    from skimage.feature import hog

    for picture in pictures:
        hog(
            picture[::2, ::2, 0],
            orientations=9,
            pixels_per_cell=(18, 18),
            cells_per_block=(2, 2),
        )


def on_cuda(pictures: list[NDArray[np.uint8]]) -> None:
    """Compare the network on CUDA with the CPU, in values and in time."""
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device: the network ran on the CPU alone")
        return
    extractor = make_extractor("cnn")
    fast = extractor.transform(pictures)
    name = torch.cuda.get_device_name()
    time_cuda = milliseconds(lambda: extractor.transform(pictures), len(pictures))
    available = torch.cuda.is_available
    torch.cuda.is_available = lambda: False
    try:
        slow_extractor = make_extractor("cnn")
        slow = slow_extractor.transform(pictures)
        time_cpu = milliseconds(lambda: slow_extractor.transform(pictures), len(pictures))
    finally:
        torch.cuda.is_available = available
    error = float((np.linalg.norm(fast - slow, axis=1) / np.linalg.norm(slow, axis=1)).max())
    print(f"{name}: {time_cuda:.2f} ms, CPU {time_cpu:.2f} ms, relative difference {error:.1e}")
    if error > AGREEMENT:
        raise SystemExit(f"features on {name} differ from the CPU's by more than {AGREEMENT}")


def main() -> None:
    """Time every extractor that takes pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=32)
    pictures = drawings(parser.parse_args().pictures)
    unit = milliseconds(lambda: peer(pictures), len(pictures))
    print(f"{'skimage hog':16} {unit:8.2f} ms a picture, ratio 1")
    for name in sorted(set(EXTRACTORS) - {"precomputed"}):
        extractor = make_extractor(name).fit(pictures)
        value = milliseconds(lambda e=extractor: e.transform(pictures), len(pictures))
        print(f"{name:16} {value:8.2f} ms a picture, ratio {value / unit:.2f}")
    on_cuda(pictures)


if __name__ == "__main__":
    main()
