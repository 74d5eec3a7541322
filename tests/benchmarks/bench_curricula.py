"""Milliseconds of one core to score a picture, and seconds to make curricula of many.

Run from the project's folder::

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_curricula.py [--json bench.json]
        [--images FOLDER] [--sketches FOLDER] [--dask 4883]

Pictures are made, or read from folders. Peers of the scores are the paper's own times: 8 minutes
for objectness of 4,883 images, on a machine of its own. With ``--dask N`` N images, repeated where
there are fewer, are extracted in blocks by two workers, decoding included.

All admissible pairs without listing them are timed against their list, which must agree; the time
of one gradient at 200,000 samples is that of an iteration of the pacing step.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "cppcl" / "features"))

from bench_descriptors import photographs, sketches
from entries import entry, report, seconds
from scenes import overlaps, scene

from cppcl.curriculum import AllPairs, Chain, ExplicitPairs, order_by_scores, pairs_from_scores
from cppcl.features import Extractor, make_extractor
from cppcl.images import decode_picture

PAPER_IMAGES, PAPER_SECONDS = 4883, 480.0
N_TRAINING = 40
REPEATS = 3


def read(folder: Path | None, made: Callable[[int], list[Any]], n: int) -> list[Any]:
    """Pictures of a folder in a fixed random order, or made ones."""
    if folder is None:
        return made(n)
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".jpg", ".png"})
    order = np.random.default_rng(0).permutation(len(files))
    return [decode_picture(files[k]) for k in order[:n]]


def cpu_seconds_each(scorer: Extractor, pictures: Sequence[Any]) -> float:
    """Median processor time of a picture after one warm-up, whatever else runs here."""
    scorer.transform(pictures[:1])
    times = []
    for picture in [*pictures] * REPEATS:
        started = time.process_time()
        scorer.transform([picture])
        times.append(time.process_time() - started)
    return statistics.median(times)


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
        spent = cpu_seconds_each(scorer, pictures[:20])
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
    for name, options in (
        ("objectness", {}),
        ("objectness", {"easiness": "printed"}),
        ("edge_boxes", {}),
        ("colour_contrast", {}),
    ):
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
        what = " ".join(["scenes,", name, *map(str, options.values())])
        entries.append(entry(what, statistics.median(times), **rest))
    return entries


def measure_pairs() -> list[dict[str, Any]]:
    """Time one smooth hinge over all pairs, with and without listing them."""
    rng = np.random.default_rng(0)
    entries = []
    for n, n_classes in ((5864, 1), (200_000, 250), (200_000, 1)):
        scores, labels, v = rng.random(n), np.arange(n) % n_classes, rng.random(n)
        order = order_by_scores(scores, labels, scope="within_class")
        sampled = seconds(lambda s=scores, g=labels: pairs_from_scores(s, g, scope="within_class"))
        what = f"{n:,} samples, {n_classes} classes"
        entries.append(entry(f"sampled pairs, {what}", sampled, admissible=order.n_pairs))
        for curriculum in (AllPairs(order), Chain(order)):
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
            name = f"{type(curriculum).__name__}, {what}"
            entries.append(entry(name, spent, *peer, pairs=curriculum.n_pairs, **rest))
    return entries


def measure_dask(folder: Path | None, n_images: int) -> list[dict[str, Any]]:
    """Seconds of the stage of extraction for so many images, two workers and blocks of 32."""
    from PIL import Image

    from tasks import cluster
    from tasks.extract import extract_features
    from tasks.fetch import fetch_data
    from tasks.learn import learn_features
    from tasks.split import split_table
    from tasks.workspace import Workspace

    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "pictures"
        pictures = read(folder, photographs, min(n_images, 400))
        drawn = sketches(4)
        for label in "ab":
            for side in ("sketches", "images"):
                (root / side / label).mkdir(parents=True)
        for k in range(n_images):
            picture = pictures[k % len(pictures)].copy()
            picture[0, 0] = k % 256, k // 256, 0  # no two alike: rows would be copied
            Image.fromarray(picture).save(root / "images" / "ab"[k % 2] / f"{k:05}.png")
        for k, picture in enumerate(drawn):
            Image.fromarray(picture).save(root / "sketches" / "ab"[k % 2] / f"{k}.png")
        workspace = Workspace(Path(place) / "workspace")
        given: dict[str, Any] = {"workspace": workspace}
        given["table"] = fetch_data(
            workspace=workspace, name="folder", options={"root": root}, key_parameters={}
        ).reference
        options = {"train_sketches": 0.5, "train_images": 0.5}
        split = split_table(**given, rule="counted", options=options, seed=0).reference
        common: dict[str, Any] = {"modality": "image", "extractor": "objectness", "options": {}}
        common |= {**given, "longest_side": 256}
        with cluster.session("local", 2, "3GiB"):
            started = time.perf_counter()
            learned = learn_features(**common, split=split).reference
            fitted = time.perf_counter()
            extract_features(**common, block_rows=32, learned=learned)
            done = time.perf_counter()
    name = f"objectness of {n_images:,} images, 2 Dask workers"
    peer = "paper", PAPER_SECONDS * n_images / PAPER_IMAGES
    return [entry(name, done - fitted, *peer, learn_s=fitted - started)]


def main() -> None:
    """Measure everything that is asked for."""
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--images", type=Path, help="images instead of made ones")
    parser.add_argument("--sketches", type=Path, help="sketches instead of made ones")
    parser.add_argument("--dask", type=int, metavar="N", help="also extract N images by Dask")
    options = parser.parse_args()
    with threadpool_limits(1):
        images = read(options.images, photographs, 20 + N_TRAINING)
        drawings = read(options.sketches, sketches, 20 + N_TRAINING)
        report(measure_scores(images, drawings), options.json)
        report(measure_finding(), options.json)
        report(measure_pairs(), options.json)
    if options.dask:
        report(measure_dask(options.images, options.dask), options.json)


if __name__ == "__main__":
    main()
