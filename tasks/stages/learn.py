"""Let an extractor learn from the training pictures of a split."""

from __future__ import annotations

import functools
import hashlib
import io
import json
from typing import Any

from cppcl.datasets.pseudo import real_rows
from cppcl.errors import InputError
from cppcl.features import learning_part, make_extractor
from cppcl.features.base import Extractor, Picture, SilentClass
from cppcl.modality import MODALITIES, Modality
from storage import Artifact, Recipe, Reference, Store, Writer
from tasks.cluster.jobs import hearing, run_jobs
from tasks.cluster.session import available_cluster
from tasks.progress import Progress, log, tell
from tasks.samples import (
    Target,
    given_targets,
    open_pictures,
    open_split,
    test_rows,
    training_rows,
)
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workers.extractors import (
    LEARNED,
    TOPIC,
    ExtractorSpec,
    LearnedArrays,
    Lessons,
    TrainingPictures,
    learn_on_worker,
)
from tasks.workers.memory import check_learning_memory
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
    modality: Modality | None,
    extractor: str,
    options: dict[str, Any],
    longest_side: int,
    target: Target = "labels",
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish what an extractor learns from the training pictures of a split.

    The key holds their content, whatever they are called and whichever split they train in; they
    are given in the order of their sha256. Pictures that cannot be read are passed over. Where
    the extractor draws what it learned, the drawing is published too, with its caption.
    Of a combination the part that learns does so, as it would alone. One that learns from both
    modalities is trained once for both; its key also says which pictures belong together.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    table, split : Reference
        Samples, and which of them train.
    modality : {'sketch', 'image'} or None
        Whose pictures teach; None for an extractor that learns from both modalities.
    extractor, options, longest_side : str, dict, int
        What learns, and the longest side of its pictures in pixels.
    target : {'groups', 'labels'}
        What pictures have in common that belong together, where both modalities teach.
    label, mode
        As of every stage.

    Raises
    ------
    InputError
        If the split has no training pictures, or nothing can be learned from them.
    """
    store = workspace.store
    extractor, options = learning_part(extractor, options)
    made = make_extractor(extractor, options)
    whose = f"{modality} {extractor}" if modality else extractor
    label = f"{whose}, {label}" if label else whose
    if modality is None:
        lessons = labelled_lessons(store, table, split, target, longest_side)
    else:
        lessons = Lessons(
            {modality: training_pictures(store, table, split, modality, longest_side)}
        )
    for of_modality, pictures in lessons.pictures.items():
        if not pictures.paths:
            other = "image" if of_modality == "sketch" else "sketch"
            mend = f"learn_from: {other}, or learned" if modality else "learned"
            raise InputError(
                f"{label}: no {of_modality} of the split is for training, so nothing can be "
                f"learned; set {mend} to the key of what was learned elsewhere"
            )
    content, digests = content_of(lessons)
    parameters: dict[str, Any] = {
        "extractor": extractor,
        "options": made.parameters(),
        "longest_side": longest_side,
        "n_pictures": lessons.n_pictures,
        "pictures": hashlib.sha256(content.encode()).hexdigest(),
    }
    recipe = Recipe("learn", version_of(made), parameters)
    spec = ExtractorSpec(extractor, json.dumps(options, sort_keys=True), longest_side)

    def create(writer: Writer) -> None:
        needed = made.memory_of_learning(lessons.n_pictures)
        if needed and (workers := available_cluster()):
            check_learning_memory(extractor, needed, workers.memory_of_a_worker())
        try:
            learned = run_job(lessons, spec, made.device, str(writer.path), label)
        except InputError as error:
            raise InputError(f"{label}: {error}") from error
        fitted = made.from_arrays(learned.arrays)
        for name, values in learned.arrays.items():
            writer.put_array(LEARNED + name, values)
        writer.put_text(PICTURES, digests)
        # Where they lie does not belong to what was learned.
        writer.note(skipped=learned.failures)
        for remark in learned.remarks:
            log(remark)
        writer.put_json(REMARKS, fitted.remarks())
        if drawing := fitted.drawing():
            writer.put_bytes(DRAWING, as_png(drawing.picture))
            writer.put_text(CAPTION, drawing.caption)
        n, skipped = lessons.n_pictures, len(learned.failures)
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


def labelled_lessons(
    store: Store, table: Reference, split: Reference, target: Target, longest_side: int
) -> Lessons:
    """Training pictures of both modalities, with a number for each class, as it is given.

    Classes are numbered as they come by the sha256 of pictures, whatever they are called. Those
    of pseudo-sketches are silent.
    """
    pictures = {m: training_pictures(store, table, split, m, longest_side) for m in MODALITIES}
    samples, rows_of = open_pictures(store, table).table, open_split(store, split)
    real = real_rows(samples)
    numbers: dict[str, int] = {}
    targets: dict[Modality, tuple[int, ...]] = {}
    for modality in MODALITIES:
        rows = training_rows(rows_of, modality)
        names = given_targets(store, split, samples, modality, target, rows).tolist()
        at = samples.rows(modality)[rows]
        ordered = sorted(
            (samples.sha256[row], samples.paths[row], name, bool(real[row]))
            for row, name in zip(at, names, strict=True)
        )
        numbered = ((numbers.setdefault(name, len(numbers)), asks) for *_, name, asks in ordered)
        targets[modality] = tuple(n if asks else SilentClass(n) for n, asks in numbered)
    return Lessons(pictures, targets)


def content_of(lessons: Lessons) -> tuple[str, str]:
    """What the key holds of training pictures, and the sha256 of each, a line a picture."""
    digests = "".join(
        f"{digest}\n" for found in lessons.pictures.values() for digest in found.digests
    )
    if not lessons.targets:
        return digests, digests
    content = "".join(
        f"{modality} {digest} {number}{' silent' if isinstance(number, SilentClass) else ''}\n"
        for modality, numbers in lessons.targets.items()
        for digest, number in zip(lessons.pictures[modality].digests, numbers, strict=True)
    )
    return content, digests


def run_job(
    lessons: Lessons, spec: ExtractorSpec, device: str, partial: str, label: str
) -> LearnedArrays:
    """Learn on the cluster, as one job that goes on where it was if its worker dies."""
    work = functools.partial(learn_on_worker, spec=spec, partial=partial, label=label)

    def hear(event: dict[str, Any]) -> None:
        tell(Progress(**event))

    with hearing(TOPIC, hear):
        ((_, learned),) = run_jobs(work, [lessons], device=device, name="learn", hint=HINT)
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
