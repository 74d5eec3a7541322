"""Drawings as people would make them: what a trained model finds for them, and for clean ones.

Run from the project's folder, after ``cppcl run emoji --workspace DIR``::

    python tests/benchmarks/drawings/bench_jittered_drawings.py --workspace DIR
        [--protocol instance] [--method cprl] [--splits 3] [--seed 0] [--parts]

Every test sketch of a split is rendered from its SVG as it is, and at random moved, reduced to 0.6
to 1, with strokes 0.5 to 3 times as wide and up to 30 % of them missing. The same model searches
with both among the test pictures: by features of drawings as they are, and by the mean of these
and those in the form of the training sketches, which ``cppcl search`` takes where that helps. With
``--parts`` each change is made alone too. Target: rank-1 of jittered drawings is at least 80 % of
that of clean ones.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parent))

from jittered_drawings import Jitter, jittered, random_jitter

from cppcl.pictures.decoding import Picture
from cppcl.retrieval.exact import nearest
from storage import Reference
from tasks.drawings import described, drawings_of
from tasks.lineage import Lineage
from tasks.model import Model
from tasks.samples import open_split, targets
from tasks.workers.extractors import extractor_of
from tasks.workspace import Workspace

PARTS = ("shift", "scale", "width", "missing")
TARGET = 0.8


def first_right(model: Model, codes: NDArray[np.floating]) -> NDArray[np.int64]:
    """Place, from 0, of the first right test picture for every test sketch."""
    split = open_split(model.workspace.store, model.lineage.split)
    table, target = model.pictures.table, model.lineage.training.parameters["target"]
    gallery = model.codes.rows("image_codes", split.test_images)
    metric: Any = model.workspace.metric_of(model.lineage.training.reference)
    found, _ = nearest(codes, gallery, len(gallery), metric=metric)
    there = targets(table, "image", target, split.test_images)[found]
    return (there == targets(table, "sketch", target, split.test_sketches)[:, None]).argmax(axis=1)


def drawn(model: Model, seed: int, parts: bool) -> dict[str, list[Picture]]:
    """Test sketches by how they are changed."""
    split = open_split(model.workspace.store, model.lineage.split)
    table, side = (
        model.pictures.table,
        extractor_of(model.workspace.store.open(model.lineage.features["sketch"])).longest_side,
    )
    paths = [table.paths[k] for k in table.rows("sketch")[split.test_sketches]]
    files = [(model.pictures.root / path).read_bytes() for path in paths]
    rng = np.random.default_rng(seed)
    jitters = [random_jitter(rng) for _ in files]
    changes = {"clean": [Jitter()] * len(files)}
    if parts:
        changes |= {part: [jitter.alone(part) for jitter in jitters] for part in PARTS}
    changes["jittered"] = jitters
    return {
        name: [jittered(svg, jitter, side=side) for svg, jitter in zip(files, made, strict=True)]
        for name, made in changes.items()
    }


def measure(model: Model, seed: int, parts: bool) -> dict[tuple[str, str], NDArray[np.int64]]:
    """First right places by change, as drawings are and in the form."""
    store = model.workspace.store
    drawings = drawings_of(model.workspace, model.lineage)
    print(f"  {drawings}")
    extractor = extractor_of(store.open(model.lineage.features["sketch"])).make(str(store.root))
    found = {}
    for name, pictures in drawn(model, seed, parts).items():
        features_of = [
            extractor.transform(described(picture, drawings.form)) for picture in pictures
        ]
        plain = np.stack([rows[0] for rows in features_of])
        formed = np.stack([rows.mean(axis=0) for rows in features_of])
        for way, rows in (("as it is", plain), ("and in form", formed)):
            found[name, way] = first_right(model, model.method.encode_sketches(rows))
    return found


def main() -> None:
    """Print rank-1 and rank-5 of every change, and the ratio to clean drawings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workspace", type=Path, default=Path(".cppcl"))
    parser.add_argument("--model", default="emoji", help="an experiment that was run (emoji)")
    parser.add_argument("--protocol", default="instance")
    parser.add_argument("--method", default="cprl")
    parser.add_argument("--splits", type=int, default=3, help="how many, from the first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", action="store_true", help="make each change alone too")
    options = parser.parse_args()
    workspace = Workspace(options.workspace)
    _, record = workspace.find_run(options.model, "evaluate")
    by_split = record["evaluations"][options.protocol][options.method][: options.splits]
    started, everything = time.perf_counter(), []
    for number, evaluation in enumerate(by_split):
        print(f"split {number}")
        lineage = Lineage.of_evaluation(workspace.store, Reference.parse(evaluation))
        model = Model(workspace, lineage.codes.reference)
        everything.append(measure(model, options.seed + number, options.parts))
    before = np.mean([(found["clean", "as it is"] == 0).mean() for found in everything])
    print(f"{'drawings':10} {'described':12} rank-1  rank-5  of clean  gain, standard error")
    for name, way in everything[0]:
        places = np.concatenate([found[name, way] for found in everything])
        plain = np.concatenate([found[name, "as it is"] for found in everything])
        gain = 100 * ((places == 0).astype(float) - (plain == 0))
        error = gain.std() / np.sqrt(len(gain))
        first, five = 100 * (places == 0).mean(), 100 * (places < 5).mean()
        print(
            f"{name:10} {way:12} {first:6.1f}  {five:6.1f}  {first / before:6.1f} %  "
            f"{gain.mean():+.1f} ± {error:.1f}"
        )
    print(f"target: {100 * TARGET:.0f} %; {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
