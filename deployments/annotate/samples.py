"""The pictures of an experiment that people are asked about, and the pairs proposed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.annotation.questions import (
    FEATURES,
    RowPair,
    classes_to_ask_within,
    nearest_pairs,
)
from cppcl.errors import InputError
from cppcl.modality import MODALITIES, Modality
from storage import Artifact, Reference
from tasks.cluster.session import cluster_session
from tasks.progress import log
from tasks.samples import open_pictures, open_split, training_rows, usable_rows
from tasks.stages.extract import extract_features
from tasks.workspace import Workspace


@dataclass(frozen=True)
class Sample:
    """One picture."""

    id: str
    modality: Modality
    label: str
    path: str
    sha256: str


@dataclass(frozen=True)
class AnnotatedPictures:
    """Training pictures of one modality.

    Attributes
    ----------
    samples : tuple of Sample
        In the order of the split.
    classes : (n,) int64
        Class of each, within which pairs are formed.
    usable : (n,) bool
        Which have features, and so can be shown.
    proposals : tuple of pair
        Rows of samples, in the order in which they are asked.
    """

    samples: tuple[Sample, ...]
    classes: NDArray[np.int64]
    usable: NDArray[np.bool_]
    proposals: tuple[RowPair, ...]


@dataclass(frozen=True)
class AnnotationSet:
    """What is annotated.

    Attributes
    ----------
    experiment : str
        Its name.
    modality_of : dict
        Modality of every sample of the experiment, of training and of test, by its id.
    root : Path
        Folder that paths of samples are relative to.
    modalities : dict of AnnotatedPictures
        Modalities with at least one proposed pair.
    """

    experiment: str
    modality_of: dict[str, Modality]
    root: Path
    modalities: dict[Modality, AnnotatedPictures]


def gather(workspace: Workspace, text: str, split: str | None = None) -> AnnotationSet:
    """Read what a run of an experiment stored, and propose pairs.

    Parameters
    ----------
    workspace : Workspace
        Where the run is.
    text : str
        Name of an experiment, or of one of its runs.
    split : str, optional
        Key of a `split` artifact of that run; its first by default.

    Raises
    ------
    InputError
        There is no such run or split, its samples are no pictures, or no pairs can be formed.
    """
    store = workspace.store
    _, record = workspace.find_run(text, "split")
    references = [Reference.parse(reference) for reference in record["all_artifacts"]]
    rows_of = open_split(store, split_reference(record, references, split))
    pictures = open_pictures(store, table := Reference("fetch", record["artifacts"]["fetch"]))
    samples = pictures.table
    if any(".npy#" in path for path in samples.paths):
        raise InputError(
            f"experiment {record['experiment']!r} has features and no pictures, so that there is "
            "nothing to be shown"
        )
    compute = record["configuration"]["compute"]
    with cluster_session(compute["cluster"], compute["workers"], compute["memory_per_worker"]):
        # It starts when something is to be extracted.
        artifacts = {m: features_of(workspace, record, references, table, m) for m in MODALITIES}
    modalities: dict[Modality, AnnotatedPictures] = {}
    for modality, artifact in artifacts.items():
        rows = training_rows(rows_of, modality)
        usable = usable_rows(artifact)[rows]
        in_table = samples.rows(modality)[rows]
        found = tuple(
            Sample(
                samples.ids[k], modality, samples.labels[k], samples.paths[k], samples.sha256[k]
            )
            for k in in_table.tolist()
        )
        classes = classes_to_ask_within([sample.label for sample in found])
        features = artifact.rows("features", rows)
        features[~usable] = 0
        proposals = tuple((int(a), int(b)) for a, b in nearest_pairs(features, classes))
        if proposals:
            modalities[modality] = AnnotatedPictures(found, classes, usable, proposals)
    if not modalities:
        raise InputError(
            f"experiment {record['experiment']!r}: no two training pictures of one class, and so "
            "no pairs to ask about; give another split (--split) or more pictures"
        )
    return AnnotationSet(
        str(record["experiment"]),
        dict(zip(samples.ids, samples.modality, strict=True)),
        pictures.root,
        modalities,
    )


def split_reference(
    record: dict[str, Any], references: list[Reference], split: str | None
) -> Reference:
    """Reference of the split that a key, or its beginning, names among those of a run."""
    if split is None:
        return Reference("split", record["artifacts"]["split"])
    found = [reference for reference in references if reference.stage == "split"]
    matches = [r for r in found if split and r.key.startswith(split.removeprefix("split/"))]
    if len(matches) != 1:
        known = ", ".join(reference.key[:12] for reference in found)
        raise InputError(f"--split {split!r} names no one split of the run; its splits: {known}")
    return matches[0]


def features_of(
    workspace: Workspace,
    record: dict[str, Any],
    references: list[Reference],
    table: Reference,
    modality: Modality,
) -> Artifact:
    """Features by which to find nearest pictures: the best of the run, else the last made now."""
    store = workspace.store
    stored = [store.find(reference) for reference in references if reference.stage == "extract"]
    for name in FEATURES:
        for artifact in stored:
            if (
                artifact is not None
                and artifact.inputs["table"] == table
                and artifact.parameters["modality"] == modality
                and artifact.parameters["extractor"] == name
            ):
                log(f"nearest {modality} pictures by {name}, as stored by the run")
                return artifact
    log(f"nearest {modality} pictures by {FEATURES[-1]}; the run stored no {FEATURES[0]}")
    configuration = record["configuration"]
    result = extract_features(
        workspace=workspace,
        table=table,
        modality=modality,
        extractor=FEATURES[-1],
        options={},
        longest_side=configuration["longest_side"],
        block_rows=configuration["block_rows"],
        max_bad_share=1.0,
    )
    return store.open(result.reference)
