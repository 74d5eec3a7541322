"""Let an extractor learn from the training pictures of a split."""

from __future__ import annotations

import functools
import hashlib
import io
import json
from typing import Any

from cppcl.errors import InputError
from cppcl.features import learning_part, make_extractor
from cppcl.features.base import Extractor, Picture
from cppcl.modality import MODALITIES, Modality
from storage import Artifact, Recipe, Reference, Store, Writer
from tasks.cluster.jobs import run_jobs
from tasks.progress import log
from tasks.samples import open_pictures, open_split, test_rows, training_rows
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workers.extractors import (
    LEARNED,
    ExtractorSpec,
    LearnedArrays,
    TrainingPictures,
    learn_from,
)
from tasks.workspace import Workspace

VERSION = "4"
PICTURES = "pictures.sha256"
DRAWING = "drawing.png"
CAPTION = "drawing.txt"
REMARKS = "remarks.json"
HINT = "raise compute.memory_per_worker, or lower longest_side or what the extractor samples"


def learn_features(
    *,
    workspace: Workspace,
    table: Reference,
    split: Reference,
    modality: Modality,
    extractor: str,
    options: dict[str, Any],
    longest_side: int,
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish what an extractor learns from the training pictures of a modality.

    The key holds their content, whatever they are called and whichever split they train in; they
    are given in the order of their sha256. Pictures that cannot be read are passed over. Where
    the extractor draws what it learned, the drawing is published too, with its caption.
    Of a combination the part that learns does so, as it would alone.

    Raises
    ------
    InputError
        If the split has no training pictures, or nothing can be learned from them.
    """
    store = workspace.store
    extractor, options = learning_part(extractor, options)
    made = make_extractor(extractor, options)
    pictures = training_pictures(store, table, split, modality, longest_side)
    label = f"{modality} {extractor}, {label}" if label else f"{modality} {extractor}"
    if not pictures.paths:
        other = "image" if modality == "sketch" else "sketch"
        raise InputError(
            f"{label}: no {modality} of the split is for training, so nothing can be learned; set "
            f"learn_from: {other}, or learned to the key of what was learned elsewhere"
        )
    digests = "".join(f"{digest}\n" for digest in pictures.digests)
    parameters: dict[str, Any] = {
        "extractor": extractor,
        "options": made.parameters(),
        "longest_side": longest_side,
        "n_pictures": len(pictures.digests),
        "pictures": hashlib.sha256(digests.encode()).hexdigest(),
    }
    recipe = Recipe("learn", version_of(made), parameters)
    spec = ExtractorSpec(extractor, json.dumps(options, sort_keys=True), longest_side)

    def create(writer: Writer) -> None:
        try:
            learned = run_job(pictures, spec, made.device)
        except InputError as error:
            raise InputError(f"{label}: {error}") from error
        for name, values in learned.arrays.items():
            writer.put_array(LEARNED + name, values)
        writer.put_text(PICTURES, digests)
        # Where they lie does not belong to what was learned.
        writer.note(skipped=learned.failures)
        fitted = made.from_arrays(learned.arrays)
        writer.put_json(REMARKS, fitted.remarks())
        if drawing := fitted.drawing():
            writer.put_bytes(DRAWING, as_png(drawing.picture))
            writer.put_text(CAPTION, drawing.caption)
        n, skipped = len(pictures.paths), len(learned.failures)
        log(
            f"{label}: learned from {n - skipped} of {n} training pictures "
            f"(learn/{recipe.key[:12]})"
        )

    result = produce(store, recipe, create, mode=mode, label=label)
    for remark in remarks_on(store.open(result.reference)):
        log(f"{label}: {remark}")
    return result


learn = stage_task(learn_features)


def remarks_on(learned: Artifact) -> list[str]:
    """Remarks of the extractor on a `learn` artifact, as they were stored."""
    return list(learned.json(REMARKS)) if REMARKS in learned.names else []


def training_pictures(
    store: Store, table: Reference, split: Reference, modality: Modality, longest_side: int
) -> TrainingPictures:
    """Training pictures of one modality, by sha256: no other row of the table is looked at."""
    pictures = open_pictures(store, table)
    samples = pictures.table
    rows = samples.rows(modality)[training_rows(open_split(store, split), modality)]
    ordered = sorted((samples.sha256[row], samples.paths[row]) for row in rows)
    return TrainingPictures(
        root=str(pictures.root),
        paths=tuple(path for _, path in ordered),
        digests=tuple(digest for digest, _ in ordered),
        longest_side=longest_side,
    )


def run_job(pictures: TrainingPictures, spec: ExtractorSpec, device: str) -> LearnedArrays:
    """Learn on the cluster, as one job."""
    work = functools.partial(learn_from, spec=spec)
    ((_, learned),) = run_jobs(work, [pictures], device=device, name="learn", hint=HINT)
    result: LearnedArrays = learned
    return result


def version_of(extractor: Extractor) -> str:
    """Code version of what an extractor learns."""
    return f"{VERSION}.{extractor.version}"


def find_learned(store: Store, key: str, extractor: str) -> Reference:
    """Return the `learn` artifact that a key, or the beginning of one, names.

    Parameters
    ----------
    store : Store
        Where it is looked for.
    key : str
        The key.
    extractor : str
        Which extractor must have learned it; see `cppcl.features.learning_part`.

    Raises
    ------
    UnknownReferenceError
        If there is none, or more than one.
    InputError
        If another extractor learned it, or another version of this one.
    """
    reference = store.resolve(key, "learn")
    artifact = store.open(reference)
    if (other := artifact.parameters["extractor"]) != extractor:
        raise InputError(
            f"learned={key}: {reference} is what {other!r} learned, but the feature extractor is "
            f"{extractor!r}; 'cppcl store ls learn' lists what there is"
        )
    if artifact.version != version_of(make_extractor(extractor)):
        raise InputError(
            f"learned={key}: {reference} was learned by an older or newer {extractor!r}; leave "
            "learned out to learn anew"
        )
    return reference


def latest_learned(store: Store, extractor: str, options: dict[str, Any]) -> Reference | None:
    """Newest `learn` artifact that an extractor with these options can use, if any."""
    name, given = learning_part(extractor, options)
    made = make_extractor(name, given)
    shapes = {f"{LEARNED}{array}": shape for array, shape in made.shapes.items()}
    fitting = [
        artifact
        for artifact in store.artifacts("learn")
        if artifact.parameters["extractor"] == name
        and artifact.version == version_of(made)
        and {n: artifact.shape(n) for n in artifact.names if n.startswith(LEARNED)} == shapes
    ]
    newest = max(fitting, key=lambda artifact: str(artifact.run["started"]), default=None)
    return newest and newest.reference


def log_test_pictures(
    store: Store, learned: Reference, *, table: Reference, split: Reference, label: str
) -> None:
    """Log test pictures of a split that a `learn` artifact learned from."""
    samples, rows_of = open_pictures(store, table).table, open_split(store, split)
    teachers = set(store.open(learned).text(PICTURES).split())
    for modality in MODALITIES:
        rows = samples.rows(modality)[test_rows(rows_of, modality)]
        if seen := sum(samples.sha256[row] in teachers for row in rows):
            log(
                f"{label}: {seen} of {len(rows)} test {modality} pictures are among those that "
                f"learned={learned.key[:12]} was learned from, so scores may be too high"
            )


def as_png(picture: Picture) -> bytes:
    """Encode a picture as PNG."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG", optimize=True)
    return file.getvalue()
