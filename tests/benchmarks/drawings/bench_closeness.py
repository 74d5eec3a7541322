"""How often "nothing close" would be said of right answers, and of others.

Run from the project's folder, after ``cppcl run emoji --workspace DIR``::

    python tests/benchmarks/drawings/bench_closeness.py --workspace DIR [--protocol instance]
        [--method cprl] [--gallery FOLDER [--sketches FOLDER]]

In the model's own gallery the threshold is found with half of the test sketches and tried with the
others, 20 times. With ``--gallery``, 500 pictures of another folder are searched, with a threshold
that all test sketches give there, by these and by 200 of ``--sketches``; where both folders have
subfolders of the same names, these say what is right. Target: 5 % of right answers at most.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[3]))

from cppcl.pictures.decoding import decode_picture, picture_suffixes
from cppcl.retrieval.exact import nearest
from deployments.serve.closeness import answers, closeness_of
from storage import Reference
from tasks.drawings import drawings_of
from tasks.lineage import Lineage
from tasks.model import Model
from tasks.samples import gallery_rows, open_split, targets
from tasks.workers.extractors import extractor_of
from tasks.workspace import Workspace

N_TIMES, N_PICTURES, N_SKETCHES = 20, 500, 200


def files_of(folder: Path, n: int) -> tuple[list[Path], NDArray[np.str_]]:
    """Some pictures of a folder, and the subfolder of each."""
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in picture_suffixes())
    chosen = [found[k] for k in np.random.default_rng(0).permutation(len(found))[:n]]
    return chosen, np.array([path.relative_to(folder).parts[0] for path in chosen])


def said(name: str, right: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> None:
    """Print the shares of right and other answers that are called far."""
    shares = [
        f"{100 * far.mean():.1f} % of {len(far)}" if len(far) else "-" for far in (right, wrong)
    ]
    print(f"{name:40} right answers far: {shares[0]:16} others far: {shares[1]}")


def main() -> None:
    """Print shares of answers below the threshold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workspace", type=Path, default=Path(".cppcl"))
    parser.add_argument("--model", default="emoji", help="an experiment that was run (emoji)")
    parser.add_argument("--protocol", default="instance")
    parser.add_argument("--method", default="cprl")
    parser.add_argument("--gallery", type=Path, help="pictures of another kind")
    parser.add_argument("--sketches", type=Path, help="sketches to search them with")
    options = parser.parse_args()
    workspace = Workspace(options.workspace)
    _, record = workspace.find_run(options.model, "evaluate")
    evaluation = record["evaluations"][options.protocol][options.method][0]
    lineage = Lineage.of_evaluation(workspace.store, Reference.parse(evaluation))
    model = Model(workspace, lineage.codes.reference)
    target: Any = lineage.training.parameters["target"]
    metric: Any = workspace.metric_of(lineage.training.reference)
    table = model.pictures.table
    held_out = open_split(workspace.store, lineage.split).test_sketches
    rows = gallery_rows(workspace.store.open(lineage.features["image"]), table)
    codes, classes = (
        model.codes.rows("sketch_codes", held_out),
        targets(table, "sketch", target, held_out),
    )
    gallery, names = model.codes.rows("image_codes", rows), targets(table, "image", target, rows)
    rng = np.random.default_rng(0)
    far: list[list[NDArray[np.bool_]]] = [[], []]
    for _ in range(N_TIMES):
        bank, asked = np.array_split(rng.permutation(len(held_out)), 2)
        found = closeness_of(codes[bank], gallery, classes[bank], names, metric=metric)
        for kind, values in zip(
            far,
            answers(codes[asked], gallery, classes[asked], names, metric=metric),
            strict=True,
        ):
            kind.append(values < (-np.inf if found.threshold is None else found.threshold))
    print(closeness_of(codes, gallery, classes, names, metric=metric))
    said("its own gallery", *(np.concatenate(kind) for kind in far))
    if options.gallery is None:
        return
    specs = {m: extractor_of(workspace.store.open(lineage.features[m])) for m in lineage.features}
    files, there = files_of(options.gallery, N_PICTURES)
    side, root = specs["image"].longest_side, str(workspace.store.root)
    pictures = [decode_picture(file, longest_side=side) for file in files]
    gallery = model.method.encode_images(specs["image"].make(root).transform(pictures))
    other = np.char.add("of the gallery ", there)
    found = closeness_of(codes, gallery, classes, other, metric=metric)
    print(found)
    threshold = -np.inf if found.threshold is None else found.threshold
    _, best = nearest(codes, gallery, 1, metric=metric)
    said("another gallery, test sketches", np.zeros(0, bool), best[:, 0] < threshold)
    if options.sketches is None:
        return
    drawings, extractor = drawings_of(workspace, lineage), specs["sketch"].make(root)
    files, asked_for = files_of(options.sketches, N_SKETCHES)
    features = [
        extractor.transform(drawings.pictures(decode_picture(file, longest_side=side))).mean(
            axis=0
        )
        for file in files
    ]
    places, best = nearest(
        model.method.encode_sketches(np.stack(features)), gallery, 1, metric=metric
    )
    is_right = there[places[:, 0]] == asked_for
    below = best[:, 0] < threshold
    said("another gallery, those sketches", below[is_right], below[~is_right])


if __name__ == "__main__":
    main()
