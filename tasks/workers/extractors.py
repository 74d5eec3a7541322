"""Extractors on workers: made once a process, fitted, and applied to pictures as they are read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from functools import partial as partial_of
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.files import file_sha256
from cppcl.errors import CppclError, DataUnavailableError, InputError
from cppcl.features import make_extractor
from cppcl.features.base import Extractor, Labelled, Picture
from cppcl.modality import MODALITIES, Modality
from cppcl.pictures.decoding import read_sample
from storage import Artifact, Reference, Store
from tasks.cluster.jobs import send_event
from tasks.progress import Progress, listening
from tasks.workers.foreign import WrongResultError, call_named
from tasks.workers.rendered import RenderedDrawings
from tasks.workers.rounds import Checkpoints, fit_in_rounds

LEARNED = "learned."
"""Prefix of the arrays of a `learn` artifact."""


DRAWINGS = RenderedDrawings()
"""SVG pictures that this process has rendered, by content and longest side."""

Result = NDArray[Any] | InputError
"""A sample or a row of features, or why there is none."""


@dataclass(frozen=True)
class ExtractorSpec:
    """What a worker needs to make an extractor.

    Attributes
    ----------
    name : str
        Its name in the registry.
    options : str
        Constructor arguments as JSON text, so that a worker can keep what it made.
    longest_side : int
        Pictures are reduced to this longest side, in pixels.
    learned : Reference or None
        A `learn` artifact, of an extractor that learns.
    modality : {'sketch', 'image'}
        Whose pictures are described.
    """

    name: str
    options: str
    longest_side: int
    learned: Reference | None = None
    modality: Modality = "sketch"

    def make(self, store: str) -> Extractor:
        """Extractor of this process, made once.

        Parameters
        ----------
        store : str
            Folder of the store, for what it learned.

        Raises
        ------
        InputError
            What was learned belongs to other options.
        """
        made = _extractor(self.name, self.options, self.learned, store)
        return made.branch(self.modality)


def extractor_of(features: Artifact) -> ExtractorSpec:
    """Extractor that made an `extract` artifact."""
    parameters = features.parameters
    return ExtractorSpec(
        parameters["extractor"],
        json.dumps(features.run["notes"]["options"], sort_keys=True),
        parameters["longest_side"],
        features.inputs.get("learned"),
        parameters["modality"],
    )


@lru_cache(maxsize=4)
def _extractor(name: str, options: str, learned: Reference | None, store: str) -> Extractor:
    extractor = make_extractor(name, json.loads(options))
    if learned is None:
        return extractor
    artifact = Store(store).open(learned)
    names = [n.removeprefix(LEARNED) for n in artifact.names if n.startswith(LEARNED)]
    return extractor.from_arrays({n: artifact.array(LEARNED + n) for n in names})


@dataclass
class TrainingPictures:
    """Pictures to learn from; each pass over them decodes them anew, one at a time.

    Attributes
    ----------
    root : str
        Folder that the paths are relative to.
    paths, digests : tuple of str
        Files, and what their sha256 was when the data set was fetched.
    longest_side : int
        Pictures are reduced to this longest side, in pixels.
    failures : dict of str to str
        Files that cannot be read and were passed over, with the reason.
    """

    root: str
    paths: tuple[str, ...]
    digests: tuple[str, ...]
    longest_side: int
    failures: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Picture]:
        for _, picture in self.numbered():
            yield picture

    def numbered(self) -> Iterator[tuple[int, Picture]]:
        """Pictures that can be read, each with its place among all."""
        for number, (path, digest) in enumerate(zip(self.paths, self.digests, strict=True)):
            sample = read_unchanged(self.root, path, digest, self.longest_side)
            if isinstance(sample, InputError):
                self.failures[path] = str(sample)
            else:
                yield number, sample


@dataclass
class LabelledPictures:
    """Training pictures of one modality, with the number of the class of each.

    Attributes
    ----------
    pictures : TrainingPictures
        What is read.
    targets : tuple of int
        One for each.
    """

    pictures: TrainingPictures
    targets: tuple[int, ...]

    def __iter__(self) -> Iterator[Labelled]:
        for number, picture in self.pictures.numbered():
            yield picture, self.targets[number]


@dataclass
class Lessons:
    """What an extractor learns from.

    Attributes
    ----------
    pictures : dict of TrainingPictures
        By modality: of one, or of both.
    targets : dict of tuple of int
        Class of each picture by modality, where an extractor learns from both.
    """

    pictures: dict[Modality, TrainingPictures]
    targets: dict[Modality, tuple[int, ...]] = field(default_factory=dict)

    @property
    def n_pictures(self) -> int:
        """Pictures in all."""
        return sum(len(found.paths) for found in self.pictures.values())

    @property
    def failures(self) -> dict[str, str]:
        """Files that cannot be read and were passed over, with the reason."""
        return {
            path: why for found in self.pictures.values() for path, why in found.failures.items()
        }

    def labelled(self, modality: Modality) -> LabelledPictures:
        """Pictures of one modality with their classes."""
        return LabelledPictures(self.pictures[modality], self.targets[modality])


@dataclass(frozen=True)
class LearnedArrays:
    """What an extractor learned, the pictures that it could not learn from, and remarks."""

    arrays: dict[str, NDArray[Any]]
    failures: dict[str, str]
    remarks: list[str] = field(default_factory=list)


TOPIC = "cppcl-learning"
"""Of the events by which a worker tells progress; each is the fields of a `Progress`."""


def learn_on_worker(lessons: Lessons, spec: ExtractorSpec, partial: str, label: str) -> Any:
    """Let an extractor learn, on a worker; progress is sent as events."""
    remarks = list[str]()

    def send(progress: Progress) -> None:
        send_event(TOPIC, asdict(progress))

    with listening(send, remarks.append):
        learned = call_named(f"{label}: learning", learn_from, lessons, spec, partial, label)
    return replace(learned, remarks=remarks)


def learn_from(
    lessons: Lessons, spec: ExtractorSpec, partial: str = "", label: str = ""
) -> LearnedArrays:
    """Fit an extractor; the one that this process extracts with stays as it is.

    Parameters
    ----------
    lessons : Lessons
        Training pictures.
    spec : ExtractorSpec
        What learns.
    partial : str
        Folder of the unfinished artifact, where one that learns in rounds keeps its state.
    label : str
        What progress is told of.
    """
    extractor = make_extractor(spec.name, json.loads(spec.options))
    if not extractor.cross_modal:
        (pictures,) = lessons.pictures.values()
        extractor.fit(pictures)
    else:
        place = Checkpoints(Path(partial))
        fit_in_rounds(
            partial_of(extractor.fit_both, *map(lessons.labelled, MODALITIES)),
            place,
            stage="learn",
            label=label,
        )
    return LearnedArrays(extractor.to_arrays(), lessons.failures)


def read_unchanged(
    root: str, path: str, digest: str, longest_side: int
) -> NDArray[Any] | InputError:
    """Read one sample, or return why it cannot be used.

    Raises
    ------
    DataUnavailableError
        If the file is gone, or another one, since the data set was fetched.
    """
    sample: NDArray[Any] | InputError
    drawn, key = path.lower().endswith(".svg"), (digest, longest_side)
    kept = DRAWINGS.get(key) if drawn and (Path(root) / path).is_file() else None
    try:
        sample = read_sample(Path(root), path, longest_side=longest_side) if kept is None else kept
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            # Says nothing about the picture, so it must not be stored as its failure.
            raise DataUnavailableError(
                f"{path} was in {root} when the data set was fetched, and is not there any "
                "more; put it back and run again: finished blocks are kept"
            ) from error
        sample = error
    # Features of what it is now must not be stored, and found again, as of what it was.
    check_unchanged(Path(root), path, digest)
    if drawn and kept is None and not isinstance(sample, InputError):
        DRAWINGS.keep(key, sample)
    return sample


def check_unchanged(root: Path, path: str, digest: str) -> None:
    """Raise `DataUnavailableError` if a file is not what it was when the data set was fetched."""
    # Rows of a matrix, which are no files, lie in a folder that is named after their content.
    if (root / path).is_file() and file_sha256(root / path) != digest:
        raise DataUnavailableError(
            f"{path} in {root} has changed since the data set was fetched; run again when the "
            "pictures stay as they are"
        )


def transform_each(
    extractor: Extractor, samples: list[NDArray[np.generic]]
) -> list[NDArray[np.float32] | InputError]:
    """Features of every sample, or the error of each that the extractor refuses.

    A batch that is refused, or for which the GPU has no memory, is halved until the samples at
    fault stand alone.

    Raises
    ------
    CppclError
        If the GPU has no memory for one sample.
    WrongResultError
        If what the extractor returns is not a row of float32 for each sample.
    """
    if not samples:
        return []
    try:
        rows = extractor.transform(samples)  # type: ignore[arg-type]
        check_rows(rows, len(samples), extractor.dimension)
        return list(rows)
    except InputError as error:
        if len(samples) == 1:
            return [error]
    except RuntimeError as error:
        if not is_out_of_gpu_memory(error):
            raise
        if len(samples) == 1:
            raise CppclError(
                f"the GPU has no memory for one picture ({error}); free it, lower longest_side or "
                "choose a smaller network"
            ) from error
    half = len(samples) // 2
    return transform_each(extractor, samples[:half]) + transform_each(extractor, samples[half:])


def check_rows(rows: object, n: int, dimension: int) -> None:
    """Raise `WrongResultError` for what is not (n, dimension) float32.

    Assigned to a row of the features, a single number would fill it, and text become numbers.
    """
    if not isinstance(rows, np.ndarray):
        raise WrongResultError(
            f"transform returned {type(rows).__name__}, not {n} x {dimension} float32"
        )
    if rows.shape != (n, dimension) or rows.dtype != np.float32:
        shape = " x ".join(map(str, rows.shape)) or "0-dimensional"
        raise WrongResultError(
            f"transform returned {shape} {rows.dtype}, not {n} x {dimension} float32: a row for "
            "each picture, as long as the extractor's dimension"
        )


def is_out_of_gpu_memory(error: RuntimeError) -> bool:
    """True if PyTorch ran out of memory on a GPU."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.OutOfMemoryError)
