"""Measure the seconds that scores of a picture take, those of several extractors in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from cppcl.modality import Modality
from storage import Recipe, Reference, Writer
from tasks.reporting.report import picture_reader
from tasks.reporting.retrieval_time import timed
from tasks.samples import open_pictures, usable_rows
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workers.extractors import extractor_of
from tasks.workspace import Workspace

VERSION = "1"
N_PICTURES = 20
N_TURNS = 3
TIMES = "times.json"
Part = Literal["median", "least", "most"]


def time_of_scores(
    *,
    workspace: Workspace,
    table: Reference,
    modality: Modality,
    extracted: Sequence[Reference],
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the processor seconds of a picture of several extractors.

    They are measured in one process, on the same pictures, in turns, so that they can be compared
    with one another: what is noted when artifacts are made depends on what else ran then.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    table : Reference
        Sample table of the pictures.
    modality : {'sketch', 'image'}
        Which of them.
    extracted : sequence of Reference
        `extract` artifacts of the extractors.
    label, mode
        As of every stage.
    """
    store = workspace.store
    parameters = {"of": "scores", "pictures": N_PICTURES, "turns": N_TURNS, "modality": modality}
    inputs = {"table": table} | {str(n): one for n, one in enumerate(extracted)}
    recipe = Recipe("time", VERSION, parameters, inputs)

    def create(writer: Writer) -> None:
        opened = {str(reference): store.open(reference) for reference in extracted}
        extractors = {
            name: extractor_of(found).make(str(store.root)) for name, found in opened.items()
        }
        first = next(iter(opened.values()))
        read = picture_reader(
            open_pictures(store, table), modality, "labels", first.parameters["longest_side"]
        )
        rows = np.flatnonzero(usable_rows(first))[:N_PICTURES]
        seconds: dict[str, list[list[float]]] = {name: [] for name in extractors}
        for row in rows:
            picture, _ = read(int(row))
            of_picture: dict[str, list[float]] = {name: [] for name in extractors}
            # The first turn loads and compiles.
            for _ in range(1 + N_TURNS):
                for name, extractor in extractors.items():
                    timed(of_picture[name], lambda e=extractor, p=picture: e.transform([p]))
            for name, found in of_picture.items():
                seconds[name].append(found[1:])
        writer.put_json(
            TIMES, {name: summary(np.median(found, axis=1)) for name, found in seconds.items()}
        )

    return produce(store, recipe, create, mode=mode, label=label or "scores of a picture")


def summary(seconds: np.ndarray) -> dict[Part, float]:
    """Median, least and most of the seconds of pictures."""
    return {
        "median": float(np.median(seconds)),
        "least": float(seconds.min()),
        "most": float(seconds.max()),
    }


score_time = stage_task(time_of_scores)
