"""What an experiment's pairs or labels look like to models that have not seen them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.audit.suspects import Suspect, suspects_of
from cppcl.audit.verdicts import Item
from cppcl.errors import InputError, PictureError
from cppcl.learning.agreement import agreement
from cppcl.modality import MODALITIES, Modality
from cppcl.pictures.decoding import read_sample
from cppcl.report.audit import SIDE, ShownSuspect, SuspectRow
from cppcl.validation import did_you_mean
from storage import Reference
from tasks.lineage import Lineage
from tasks.samples import open_pictures, part_widths, training_samples
from tasks.workspace import Workspace


@dataclass(frozen=True)
class AuditedSample:
    """One training picture."""

    id: str
    modality: Modality
    label: str
    path: str
    sha256: str


@dataclass(frozen=True)
class Audit:
    """Pairs or labels of the training samples of one split, the most suspect first.

    Attributes
    ----------
    experiment, protocol : str
        Whose.
    kind : {'pairs', 'labels'}
        What was judged.
    root : Path
        Folder that paths of samples are relative to.
    samples : dict of tuple of AuditedSample
        Training samples of each modality, which suspects refer to.
    suspects : tuple of Suspect
        All that was judged.
    wrong_share : float
        Estimated share of wrong ones.
    typical : dict of dict of int
        Row of the surest sample of each label, by modality.
    """

    experiment: str
    protocol: str
    kind: Literal["pairs", "labels"]
    root: Path
    samples: dict[Modality, tuple[AuditedSample, ...]]
    suspects: tuple[Suspect, ...]
    wrong_share: float
    typical: dict[Modality, dict[str, int]]

    @property
    def n_expected(self) -> int:
        """Estimated number of wrong ones."""
        return round(self.wrong_share * len(self.suspects))

    def samples_of(self, suspect: Suspect) -> tuple[AuditedSample | None, AuditedSample | None]:
        """Its sketch and its image."""
        rows = (suspect.sketch, suspect.image)
        sketch, image = (
            None if row is None else self.samples[modality][row]
            for modality, row in zip(MODALITIES, rows, strict=True)
        )
        return sketch, image

    def item_of(self, suspect: Suspect) -> Item:
        """What verdicts on it are about."""
        sketch, image = ("" if s is None else s.id for s in self.samples_of(suspect))
        return sketch, image, suspect.given

    def pictures_of(self, suspect: Suspect) -> list[tuple[AuditedSample, str]]:
        """What to look at, and what each is called.

        Both samples of a pair. Of a label its sample, and of the other modality the surest one of
        the given label and of the one suggested.
        """
        sketch, image = self.samples_of(suspect)
        if self.kind == "pairs":
            return [(s, s.id) for s in (sketch, image) if s is not None]
        own = sketch or image
        assert own is not None
        other: Modality = "image" if own.modality == "sketch" else "sketch"
        beside = [
            (self.samples[other][row], label)
            for label in (suspect.given, suspect.suggested)
            if (row := self.typical[other].get(label)) is not None
        ]
        return [(own, own.id), *beside]


def audit_experiment(
    workspace: Workspace,
    text: str,
    *,
    protocol: str | None = None,
    split: str | None = None,
    method: str | None = None,
    seed: int = 0,
) -> Audit:
    """Judge the training samples of a run by their agreement across modalities, out of fold.

    Parameters
    ----------
    workspace : Workspace
        Where the run is.
    text : str
        Name of an experiment, which means its latest run, or of a run.
    protocol : str, optional
        Whose split and target; the first by default.
    split : str, optional
        Key of one of its splits, or its beginning; the first by default.
    method : str, optional
        Whose features; the one that answers by default.
    seed : int
        Of the folds.

    Raises
    ------
    InputError
        There is no such run, protocol, split or method, or its samples cannot be judged.
    """
    store = workspace.store
    _, record = workspace.find_run(text, "evaluate")
    evaluations = record["evaluations"]
    protocol = _one_of("protocol", protocol, evaluations)
    method = _one_of("method", method, evaluations[protocol])
    lineages = [
        Lineage.of_evaluation(store, Reference.parse(reference))
        for reference in evaluations[protocol][method]
    ]
    lineage = _of_split(lineages, split)
    target = lineage.training.parameters["target"]
    pictures = open_pictures(store, lineage.table)
    sides = training_samples(
        store, table=lineage.table, split=lineage.split, features=lineage.features, target=target
    )
    features = {s.modality: s.features(store, lineage.features[s.modality]) for s in sides}
    targets = {s.modality: s.labels for s in sides}
    found = agreement(
        features["sketch"],
        features["image"],
        targets["sketch"],
        targets["image"],
        kind="pairs" if target == "groups" else "labels",
        spaces=(
            part_widths(store.open(lineage.features["sketch"])),
            part_widths(store.open(lineage.features["image"])),
        ),
        seed=seed,
    )
    table = pictures.table
    samples: dict[Modality, tuple[AuditedSample, ...]] = {}
    for side in sides:
        rows = table.rows(side.modality)[side.rows].tolist()
        samples[side.modality] = tuple(
            AuditedSample(
                table.ids[k], side.modality, table.labels[k], table.paths[k], table.sha256[k]
            )
            for k in rows
        )
    suspects = suspects_of(found, targets["sketch"].tolist(), targets["image"].tolist())
    return Audit(
        str(record["experiment"]),
        protocol,
        found.kind,
        pictures.root,
        samples,
        tuple(suspects),
        1 - found.right_share,
        {
            "sketch": _surest(targets["sketch"].tolist(), found.sketch),
            "image": _surest(targets["image"].tolist(), found.image),
        },
    )


def _surest(targets: Sequence[str], scores: NDArray[np.float64]) -> dict[str, int]:
    """Row of the highest score of each target."""
    found: dict[str, int] = {}
    for row in np.argsort(scores, kind="stable").tolist():  # NaN comes last
        if not np.isnan(scores[row]):
            found[targets[row]] = row
    return found


def _one_of(what: str, name: str | None, known: Mapping[str, object]) -> str:
    if name is None:
        return next(iter(known))
    if name not in known:
        raise InputError(
            f"--{what} {name}: the run has {', '.join(known)}{did_you_mean(name, known)}"
        )
    return name


def _of_split(lineages: list[Lineage], split: str | None) -> Lineage:
    if split is None:
        return lineages[0]
    key = split.removeprefix("split/")
    found = [lineage for lineage in lineages if key and lineage.split.key.startswith(key)]
    if len(found) != 1:
        known = ", ".join(lineage.split.key[:12] for lineage in lineages)
        raise InputError(f"--split {split!r} names no one split of the protocol; it has {known}")
    return found[0]


def suspect_rows(audit: Audit) -> list[SuspectRow]:
    """All suspects by the ids of their samples, the most suspect first."""
    return [
        SuspectRow(*audit.item_of(one), one.suggested, one.score, one.probability_wrong)
        for one in audit.suspects
    ]


def shown_suspects(audit: Audit, n: int) -> list[ShownSuspect]:
    """The n most suspect with their pictures; a label beside one that is surely right."""
    shown = []
    for one, row in zip(audit.suspects[:n], suspect_rows(audit)[:n], strict=True):
        pictures = []
        for sample, text in audit.pictures_of(one):
            try:
                picture = read_sample(audit.root, sample.path, longest_side=2 * SIDE)
            except (PictureError, OSError):
                continue
            if picture.ndim != 3:
                break
            pictures.append((picture, text))
        shown.append(ShownSuspect(row, pictures))
    return shown
