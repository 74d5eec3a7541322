"""Milliseconds of one core to score a picture, and seconds to make curricula of many.

Run from the project's folder::

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_curricula.py [--json bench.json]
        [--images FOLDER ...] [--sketches FOLDER ...] [--dask 4883 [--kill]]
        [--objects FOLDER] [--only]

Pictures are made, or read from folders. Peers of the scores are the paper's own times: 8 minutes
for objectness of 4,883 images, on a machine of its own. With ``--dask N``, ``cppcl run`` makes the
curricula of N training images, repeated where there are fewer, from the files to the pairs, in
blocks and by two workers; with ``--kill`` it is killed half-way and run again. With ``--objects``
scores are compared with the size of objects in photographs. ``--only``: nothing but these two.

All admissible pairs without listing them are timed against their list, which must agree; the time
of one gradient at 200,000 samples is that of an iteration of the pacing step.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "cppcl" / "features"))

from bench_descriptors import photographs, sketches
from curricula_by_command import PAPER_IMAGES, PAPER_SECONDS, measure_run
from entries import entry, report, seconds, seconds_each
from scenes import overlaps, scene

from cppcl.curriculum import (
    AllPairs,
    ChainedPairs,
    ExplicitPairs,
    order_by_scores,
    pairs_from_scores,
)
from cppcl.features import make_extractor
from cppcl.pictures.decoding import decode_picture

N_TRAINING = 40
REPEATS = 3
OF_IMAGES: tuple[tuple[str, dict[str, str]], ...] = (
    ("objectness", {}),
    ("objectness", {"easiness": "printed"}),
    ("edge_boxes", {}),
    ("colour_contrast", {}),
)


def files_of(folders: Sequence[Path]) -> list[Path]:
    """Pictures of folders in a fixed random order."""
    found = (path for folder in folders for path in folder.rglob("*"))
    files = sorted(path for path in found if path.suffix in {".jpg", ".png"})
    return [files[k] for k in np.random.default_rng(0).permutation(len(files))]


def read(files: Sequence[Path], made: Callable[[int], list[Any]], n: int) -> list[Any]:
    """First pictures of files, or made ones."""
    return [decode_picture(file) for file in files[:n]] if files else made(n)


def measure_scores(images: Sequence[Any], drawings: Sequence[Any]) -> list[dict[str, Any]]:
    """Time every score, one picture at a time."""
    paper = ("paper, objectness", PAPER_SECONDS / PAPER_IMAGES)
    entries = []
    for name, pictures, peer in (
        ("objectness", images, paper),
        ("edge_boxes", images, paper),
        ("colour_contrast", images, paper),
        ("edgeness", drawings, ()),
    ):
        scorer = make_extractor(name).fit(pictures[-N_TRAINING:])
        spent = seconds_each(scorer.transform, pictures[:20], REPEATS, time.process_time)
        hours = {f"{PAPER_IMAGES}_images_2_cores_s": spent * PAPER_IMAGES / 2} if peer else {}
        entries.append(entry(f"score {name}", spent, *peer, ms=1e3 * spent, **hours))
    return entries


def measure_finding() -> list[dict[str, Any]]:
    """What scores make of made scenes.

    ``share_with_object``: of 200 scenes, those with the object in one of the 30 best windows.
    ``behind``, ``over``: rank correlation of the score with the number of distractors, which
    should be negative. ``size``: that with the object's share of the picture, among 8 distractors.
    """
    from scipy.stats import spearmanr

    clutter: dict[str, Any] = {"n_distractors": 60, "distractor_scale": (0.02, 0.06)}
    counts = np.repeat([0, 2, 4, 8, 16, 32, 64], 20)
    training = [
        scene(50_000 + k, int(counts[7 * k % len(counts)]), occluding=bool(k % 2))[0]
        for k in range(N_TRAINING)
    ]
    scenes = [scene(seed, **clutter) for seed in range(200)]
    of_size = [scene(7000 + k, 8, object_scale=(0.12, 0.9)) for k in range(140)]
    crowds = {
        name: [scene(3000 + k, int(n), occluding=name == "over")[0] for k, n in enumerate(counts)]
        for name in ("behind", "over")
    }
    entries = []
    for name, options in OF_IMAGES:
        scorer: Any = make_extractor(name, options).fit(training)
        best, times = [], []
        for picture, box in scenes:
            started = time.process_time()
            found = scorer.scored_windows(picture)
            times.append(time.process_time() - started)
            best.append(overlaps(found.windows[found.best], box).max())
        rest = {"share_with_object": float(np.mean(np.array(best) >= 0.5))}
        for crowd, pictures in crowds.items():
            scores = scorer.transform(pictures)[:, 0]
            rest[crowd] = float(spearmanr(counts, scores).statistic)
        shares = [np.prod(box[2:] - box[:2]) for _, box in of_size]
        scores = scorer.transform([picture for picture, _ in of_size])[:, 0]
        rest["size"] = float(spearmanr(shares, scores).statistic)
        label = " ".join(["scenes,", name, *map(str, options.values())])
        entries.append(entry(label, statistics.median(times), **rest))
    return entries


def measure_object_share(home: Path) -> list[dict[str, Any]]:
    """Rank correlation of each score with the share of a photograph that its object covers.

    Photographs are those of the Queen Mary test part below a folder, ``CLASS/img/NAME``; their
    objects were cut out by the authors' detector, ``CLASS/cropped/NAME``, and not scaled. Scores
    that learn do so from the photographs.
    """
    from PIL import Image
    from scipy.stats import spearmanr

    def area(path: Path) -> int:
        with Image.open(path) as picture:
            return picture.width * picture.height

    pairs = [(p, p.parents[1] / "cropped" / p.name) for p in sorted(home.glob("**/img/*.jpg"))]
    pairs = [pair for pair in pairs if pair[1].exists()]
    if not pairs:
        raise SystemExit(f"--objects {home} holds no CLASS/img/NAME with a CLASS/cropped/NAME")
    shares = [area(cropped) / area(whole) for whole, cropped in pairs]
    pictures = [decode_picture(whole, longest_side=256) for whole, _ in pairs]
    entries = []
    for name, options in OF_IMAGES:
        started = time.process_time()
        scores = make_extractor(name, options).fit(pictures).transform(pictures)[:, 0]
        spent = (time.process_time() - started) / len(pictures)
        rest = {"photographs": len(pictures), "share": float(spearmanr(shares, scores).statistic)}
        label = " ".join(["objects,", name, *options.values()])
        entries.append(entry(label, spent, **rest))
    return entries


def measure_pairs() -> list[dict[str, Any]]:
    """Time one smooth hinge over all pairs, with and without listing them."""
    rng = np.random.default_rng(0)
    entries = []
    for n, n_classes in ((5864, 1), (200_000, 250), (200_000, 1)):
        scores, labels, v = rng.random(n), np.arange(n) % n_classes, rng.random(n)
        order = order_by_scores(scores, labels, scope="within_class")
        sampled = seconds(lambda s=scores, g=labels: pairs_from_scores(s, g, scope="within_class"))
        label = f"{n:,} samples, {n_classes} classes"
        entries.append(entry(f"sampled pairs, {label}", sampled, admissible=order.n_pairs))
        for curriculum in (AllPairs(order), ChainedPairs(order)):
            curriculum.smoothed_gradient(v, 1e-2)  # compiles
            spent = seconds(lambda c=curriculum, v=v: c.smoothed_gradient(v, 1e-2))
            peer: tuple[Any, ...] = ()
            rest: dict[str, Any] = {}
            if isinstance(curriculum, AllPairs) and order.n_pairs < 2e7:
                explicit = ExplicitPairs(order.pairs(), n)
                peer = (
                    "listed pairs",
                    seconds(lambda e=explicit, v=v: e.smoothed_gradient(v, 1e-2)),
                )
                found, expected = (c.smoothed_gradient(v, 1e-2) for c in (curriculum, explicit))
                rest["relative_error"] = abs(found[0] / expected[0] - 1)
            name = f"{type(curriculum).__name__}, {label}"
            entries.append(entry(name, spent, *peer, pairs=curriculum.n_pairs, **rest))
    return entries


def main() -> None:
    """Measure everything that is asked for."""
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    for side in ("images", "sketches"):
        parser.add_argument(f"--{side}", type=Path, nargs="+", default=[], metavar="FOLDER")
    parser.add_argument("--objects", type=Path, metavar="FOLDER", help="Queen Mary test part")
    parser.add_argument("--dask", type=int, metavar="N", help="also run as far as N images' pairs")
    parser.add_argument("--only", action="store_true", help="what --dask and --objects ask for")
    parser.add_argument("--kill", action="store_true", help="kill that half-way, and run it again")
    options = parser.parse_args()
    files = files_of(options.images)
    if options.dask:
        found = measure_run(files, photographs, sketches, options.dask, kill=options.kill)
        report(found, options.json)
    with threadpool_limits(1):
        if options.objects:
            report(measure_object_share(options.objects), options.json)
        if options.only:
            return
        images = read(files, photographs, 20 + N_TRAINING)
        drawings = read(files_of(options.sketches), sketches, 20 + N_TRAINING)
        report(measure_scores(images, drawings), options.json)
        report(measure_finding(), options.json)
        report(measure_pairs(), options.json)


if __name__ == "__main__":
    main()
