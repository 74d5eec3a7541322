"""Milliseconds to describe a picture of 256 pixels on one core, for every descriptor.

Run from the project's folder::

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_descriptors.py [--json bench.json] [--folder F]

Sketches are made of curves of one pen, or read from a folder. Descriptors that can describe the
contours of photographs are also timed on made photographs, with their edges by Canny's detector.
Those that learn are fitted on 60 sketches first, which counts apart. The paper prints 1.1 s a
sketch for LKS and 0.04 s an image for its CNN, on a machine of its own.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from entries import entry, report, seconds_each

from cppcl.features import EXTRACTORS, make_extractor
from cppcl.pictures.decoding import decode_picture

PAPER = {"lks": 1.1, "cnn": 0.04}
"""Seconds a picture that the paper prints."""
SIDE = 256
N_TRAINING = 60
REPEATS = 3


def sketches(n: int, seed: int = 0) -> list[NDArray[np.uint8]]:
    """Circles, arcs and bent lines of a pen of two pixels on white, (256, 256, 3)."""
    from PIL import Image, ImageDraw

    generator = np.random.default_rng(seed)
    pictures = []
    for _ in range(n):
        picture = Image.new("RGB", (SIDE, SIDE), "white")
        pen = ImageDraw.Draw(picture)
        for start in generator.integers(0, 360, 4):
            x, y, radius = generator.integers((60, 60, 15), (196, 196, 55))
            box = tuple(int(v) for v in (x - radius, y - radius, x + radius, y + radius))
            pen.arc(box, int(start), int(start) + int(generator.integers(120, 361)), "black", 2)
            points = generator.integers(20, 236, (4, 2))
            pen.line([tuple(map(int, point)) for point in points], "black", 2, "curve")
        pictures.append(np.asarray(picture))
    return pictures


def photographs(n: int, seed: int = 0) -> list[NDArray[np.uint8]]:
    """Soft blobs of several sizes in colours, with grain, (256, 256, 3)."""
    from scipy.ndimage import gaussian_filter

    generator = np.random.default_rng(seed)
    pictures = []
    for _ in range(n):
        noise = generator.standard_normal((4, SIDE, SIDE, 3))
        layers = (
            scale * gaussian_filter(layer, (scale, scale, 0))
            for layer, scale in zip(noise, (1, 4, 12, 24), strict=True)
        )
        gray = sum(layers)
        gray = np.clip(128 + 40 * gray / gray.std(), 0, 255)
        pictures.append(gray.astype(np.uint8))
    return pictures


def measure(name: str, drawn: list[Any], training: list[Any], taken: list[Any]) -> list[Any]:
    """Time one extractor on sketches, and on photographs where it finds contours by itself."""
    extractor = make_extractor(name)
    rest: dict[str, Any] = {"dimension": extractor.dimension}
    if extractor.learns:
        started = time.perf_counter()
        extractor = extractor.fit(training)
        rest["fit_s"] = time.perf_counter() - started
    peer = ("paper", PAPER[name]) if name in PAPER else ()
    pictures = taken if name.startswith("cnn") else drawn
    spent = seconds_each(extractor.transform, pictures, REPEATS)
    entries = [entry(f"descriptor {name}", spent, *peer, ms=1e3 * spent, **rest)]
    if "contours" in inspect.signature(EXTRACTORS[name]).parameters:
        of_photographs = make_extractor(name, {"contours": "canny"})
        if extractor.learns:
            of_photographs.from_arrays(extractor.to_arrays())
        spent = seconds_each(of_photographs.transform, taken, REPEATS)
        label = f"descriptor {name}, photographs by canny"
        entries.append(entry(label, spent, ms=1e3 * spent, dimension=extractor.dimension))
    return entries


def main() -> None:
    """Time every extractor of more than one value; `bench_networks.py` has those that train."""
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path, help="sketches to time instead of made ones")
    parser.add_argument("--pictures", type=int, default=20, help="pictures that are timed")
    parser.add_argument("--only", nargs="*", help="names of extractors")
    options = parser.parse_args()
    drawn, training = sketches(options.pictures), sketches(N_TRAINING, seed=1)
    if options.folder:
        files = sorted(path for path in options.folder.rglob("*") if path.is_file())
        order = np.random.default_rng(0).permutation(len(files))
        read = [decode_picture(files[k]) for k in order[: options.pictures + N_TRAINING]]
        drawn, training = read[: options.pictures], read[options.pictures :]
    taken = photographs(options.pictures)
    print("the paper: LKS 1.1 s a sketch, CNN 0.04 s an image")
    with threadpool_limits(1):
        alone = {n for n, e in EXTRACTORS.items() if e.takes_pictures and not e.cross_modal}
        for name in options.only or sorted(alone):
            if make_extractor(name).dimension > 1:
                report(measure(name, drawn, training, taken), options.json)


if __name__ == "__main__":
    main()
