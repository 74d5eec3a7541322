"""Measure the seconds that one query takes: describe, encode, rank."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cppcl.retrieval.gallery import Gallery
from storage import Recipe, Reference, Writer
from tasks.lineage import Lineage
from tasks.reporting.report import picture_reader
from tasks.samples import open_pictures, open_split, test_rows, usable_rows
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.stages.train import open_method
from tasks.workers.extractors import extractor_of
from tasks.workspace import Workspace

VERSION = "4"
N_QUERIES = 5
N_NEAREST = 10


def time_of_a_query(
    *,
    workspace: Workspace,
    evaluation: Reference,
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the median processor seconds of a query of a method, over a few test sketches.

    What is measured once is kept: the artifact says when and where (``cppcl store show``).

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    evaluation : Reference
        An `evaluate` artifact, whose codes are those of a trained method.
    label, mode
        As of every stage.
    """
    store = workspace.store
    parameters = {"queries": N_QUERIES, "nearest": N_NEAREST}
    recipe = Recipe("time", VERSION, parameters, {"evaluation": evaluation})

    def create(writer: Writer) -> None:
        scored = store.open(evaluation)
        lineage = Lineage.of_evaluation(store, evaluation)
        features = store.open(lineage.encoded["sketch"])
        method = open_method(store, lineage.training.reference)
        rows = scored.array("query_rows")[: N_QUERIES + 1]
        gallery_rows = test_rows(open_split(store, scored.inputs["split"]), "image")
        usable = usable_rows(store.open(lineage.encoded["image"]))
        metric: Any = scored.parameters["metric"]
        gallery = Gallery(
            lineage.codes.rows("image_codes", gallery_rows[usable[gallery_rows]]), metric=metric
        )
        extractor = extractor_of(features).make(str(store.root))
        pictures = open_pictures(store, scored.inputs["table"])
        read = picture_reader(
            pictures, "sketch", scored.parameters["target"], features.parameters["longest_side"]
        )
        seconds: dict[str, list[float]] = {"describe": [], "encode": [], "rank": []}
        for row in rows:
            sketch, _ = read(int(row))
            vector = timed(seconds["describe"], lambda s=sketch: extractor.transform([s]))
            code = timed(seconds["encode"], lambda v=vector: method.encode_sketches(v))
            timed(seconds["rank"], lambda c=code: gallery.nearest(c, N_NEAREST))
        # The first loads and compiles.
        kept = {part: found[1:] or found for part, found in seconds.items()}
        times = {part: float(np.median(found)) for part, found in kept.items()}
        together = np.sum(list(kept.values()), axis=0)
        ends = {"least": float(together.min()), "most": float(together.max())}
        writer.put_json("times.json", {**times, **ends, "gallery": len(gallery)})

    return produce(store, recipe, create, mode=mode, label=label or "a query")


retrieval_time = stage_task(time_of_a_query)


def timed(seconds: list[float], work: Callable[[], Any]) -> Any:
    """Run a function and note its processor seconds, which other programs do not affect."""
    started = time.process_time()
    result = work()
    seconds.append(time.process_time() - started)
    return result
