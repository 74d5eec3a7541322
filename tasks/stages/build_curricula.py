"""Turn scores into partial curricula over the training samples of a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.annotation.answered_pairs import AnsweredPairs, agreement, pairs_from_answers
from cppcl.curriculum.annotation.answers import PairAnswer, read_answers
from cppcl.curriculum.annotation.simulated import simulated_answers
from cppcl.curriculum.build import Built, build_curriculum
from cppcl.curriculum.union import curriculum_arrays
from cppcl.datasets.files import file_sha256
from cppcl.datasets.unfinished import fuller_is_easier
from cppcl.errors import InputError
from cppcl.features import EXTRACTORS
from cppcl.modality import MODALITIES, Modality
from storage import Recipe, Reference, Store, Writer
from tasks.progress import log
from tasks.samples import (
    Target,
    given_targets,
    open_pictures,
    open_split,
    targets,
    training_rows,
    usable_rows,
)
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workspace import Workspace

VERSION = "2"


def curricula_of_split(
    *,
    workspace: Workspace,
    table: Reference,
    split: Reference,
    sketch_scores: Reference,
    image_scores: Reference,
    target: Target,
    options: dict[str, Any],
    annotator: Mapping[str, Reference] | None = None,
    answers: Mapping[Modality, Path] | None = None,
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the pairs (harder, easier) of both modalities.

    Pairs hold row numbers into that modality's training rows, in the order of the split. What
    was counted on the way is in ``counts.json``.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    table, split, sketch_scores, image_scores : Reference
        Samples, which of them train, and the scores of both modalities.
    target : {'groups', 'labels'}
        What the classes of the scope are.
    options : dict
        ``answer_share``, and those of `cppcl.curriculum.build.build_curriculum`; one that begins
        with a modality, such as ``sketch_source`` or ``image_rho``, holds for it alone.
    annotator : dict of Reference, optional
        `extract` artifacts of the sketches by the roles in
        `cppcl.curriculum.annotation.simulated.ANNOTATOR`: what a simulated annotator
        answers by where the option ``sketch_source`` is 'simulated'.
    answers : dict of Path, optional
        Files of people's answers, which take part in the key by their content.
    what, mode
        As of every stage.

    Raises
    ------
    InputError
        If a score has more than one value a picture, or a file of answers cannot be read.
    """
    store = workspace.store
    options, answers = dict(options), answers or {}
    digests = {f"{modality}_answers": file_sha256(path) for modality, path in answers.items()}
    recipe = Recipe(
        "curricula",
        VERSION,
        {"target": target, **options, **digests},
        {
            "table": table,
            "split": split,
            "sketch_scores": sketch_scores,
            "image_scores": image_scores,
            **{f"annotator_{role}": made for role, made in (annotator or {}).items()},
        },
    )
    share = options.pop("answer_share", 1.0)

    def create(writer: Writer) -> None:
        samples = open_pictures(store, table).table
        rows_of = open_split(store, split)
        references: dict[Modality, Reference] = {"sketch": sketch_scores, "image": image_scores}
        counts = {}
        for modality, reference in references.items():
            rows = training_rows(rows_of, modality)
            scores = scores_of(store, reference, modality)[rows]
            of_modality = samples.column("ids", modality)
            ids = [of_modality[row] for row in rows]
            classes = given_targets(store, split, samples, modality, target, rows)
            own = options_of(modality, options)
            given = None
            if own.get("source") == "simulated":
                own["source"] = "answers"
                given = simulated(store, annotator or {}, rows, classes, ids)
            elif own.get("source") == "drawn":
                own["source"] = "answers"
                instances = targets(samples, modality, "groups", rows).tolist()
                given = [PairAnswer(*pair, "a") for pair in fuller_is_easier(ids, instances)]
            elif modality in answers:
                given = read_answers(answers[modality])
            answered = None
            if given is not None:
                seed = options.get("seed", 0)
                answered = pairs_from_answers(given, ids, share=share, seed=seed)
            built = build_curriculum(scores, classes, answered, ids=ids, **own)
            arrays = curriculum_arrays(built.curriculum)
            empty = {"pairs": np.zeros((0, 2), dtype=np.int64)}
            for name, values in {**empty, **arrays}.items():
                writer.put_array(f"{modality}_{name}", values)
            counts[modality] = count(scores, built, answered)
            if modality == "sketch" and annotator:
                counts[modality]["annotator"] = "simulated"
            if options.get(f"{modality}_source") == "drawn":
                counts[modality]["annotator"] = "drawn"
            if answered is not None and answered.n_foreign and not len(answered.pairs):
                log(
                    f"{label}: none of the {answered.n_answers} answers in {answers[modality]} is "
                    f"about training {modality} samples; samples go by their ids, such as "
                    f"{ids[0] if ids else 'none'!r}"
                )
        writer.put_json("counts.json", counts)

    return produce(store, recipe, create, mode=mode, label=label or "pairs")


build_curricula = stage_task(curricula_of_split)


def simulated(
    store: Store,
    annotator: Mapping[str, Reference],
    rows: NDArray[np.int64],
    classes: NDArray[np.str_],
    ids: Sequence[str],
) -> list[PairAnswer]:
    """Answers of a simulated annotator on the sketches in these rows."""
    features = store.open(annotator["features"])
    shown = features.rows("features", rows)
    shown[~usable_rows(features)[rows]] = 0
    detail = scores_of(store, annotator["detail"], "sketch")[rows]
    return simulated_answers(detail, shown, classes, ids)


def options_of(modality: Modality, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that hold for one modality: those of both, and its own without the prefix."""
    both = {k: v for k, v in options.items() if k.partition("_")[0] not in MODALITIES}
    own = {
        name: value
        for key, value in options.items()
        if (name := key.removeprefix(f"{modality}_")) != key
    }
    return {**both, **own}


def scores_of(store: Store, reference: Reference, modality: Modality) -> NDArray[np.float64]:
    """Scores of every sample of a modality, NaN where its picture could not be used."""
    artifact = store.open(reference)
    if (dimension := artifact.shape("features")[1]) != 1:
        scores = (repr(n) for n, made in EXTRACTORS.items() if hasattr(made, "scored_windows"))
        raise InputError(
            f"curriculum.{modality}: {artifact.parameters['extractor']!r} gives "
            f"{dimension} values a picture, but a score is one value; use {', '.join(scores)}, "
            "or 'precomputed' on a matrix with one column"
        )
    values: NDArray[np.float64] = artifact.array("features")[:, 0].astype(np.float64)
    values[~usable_rows(artifact)] = np.nan
    return values


def count(
    scores: NDArray[np.float64], built: Built, answered: AnsweredPairs | None
) -> dict[str, Any]:
    """Sizes of a curriculum, and how far scores and answers agree, as plain JSON."""
    counts: dict[str, Any] = {
        "samples": len(scores),
        "scored": int((~np.isnan(scores)).sum()),
        "admissible": built.n_admissible,
        "hinges": built.curriculum.n_pairs,
    }
    if answered is not None:
        agreed = agreement(scores, answered.pairs)
        counts["answers"] = answered.counts()
        counts["agreement"] = {
            name: None if value != value else value for name, value in vars(agreed).items()
        }
    return counts
