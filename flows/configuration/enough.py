"""Refuse folders that hold too little for an experiment, before anything heavy starts."""

from __future__ import annotations

import shlex
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cppcl.datasets import DATASETS
from cppcl.datasets.files import scan_pictures
from cppcl.datasets.folder import Folder
from cppcl.datasets.splits.seeded import groups_of_labels, share_of
from cppcl.errors import InputError
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import counted
from flows.configuration.datasets import check_places
from flows.configuration.experiment import Experiment, Protocol, Tuning
from flows.configuration.splits import CategorySplit, InstanceSplit

SHOWN = 5
"""Classes that a message names."""
MOST = 2**62
"""More pictures than anyone has."""
Counts = dict[str, dict[Modality, int]]
"""Pictures of each class, or instances of it where pairs are tied, by modality."""


def check_data(experiment: Experiment) -> None:
    """Refuse places that are missing, and folders with too few classes, pictures or pairs.

    Reads names of files only.

    Raises
    ------
    InputError
        Naming the folder, what it holds, and what would do.
    """
    if DATASETS.get(experiment.dataset.registered_name) is not Folder:
        check_places(experiment.dataset)
        return
    folder = Folder(**experiment.dataset.arguments())
    try:
        table = folder.outline()
    except InputError as error:
        raise InputError(f"{error}{without_sketches(folder)}") from error
    for protocol in experiment.protocols.values():
        least = folds_of(protocol, experiment.tuning)
        if isinstance(protocol.split, CategorySplit):
            counts = {
                label: {m: len(of_label[m]) for m in MODALITIES}
                for label, of_label in groups_of_labels(table).items()
            }
            check_classes(folder, counts, Requirement(protocol.split, least))
        elif isinstance(protocol.split, InstanceSplit):
            ties = [set(table.column("groups", m)) for m in MODALITIES]
            check_pairs(folder, len(set.intersection(*ties)), protocol.split.n_train, least)


def without_sketches(folder: Folder) -> str:
    """End of a message about a folder that has pictures and no sketches: what can be done."""
    root = Path(folder.root)
    found = {}
    for name in (folder.sketches, folder.images):
        try:
            found[name] = bool(scan_pictures(root, name).files)
        except (InputError, OSError):
            found[name] = False
    if found[folder.sketches] or not found[folder.images]:
        return ""
    pictures = root / folder.images
    return (
        "; if you have no sketches, search the pictures with a model that was trained on others: "
        f"cppcl run emoji, then cppcl index emoji {shlex.quote(str(pictures))} --name NAME"
    )


def folds_of(protocol: Protocol, tuning: Tuning) -> int:
    """Folds that validation divides training pictures into; 1 where nothing is validated."""
    chooses = tuning.choose and len(protocol.candidates) > 1
    searched = chooses or any(options.tune for options in protocol.methods.values())
    return tuning.n_folds if searched else 1


@dataclass(frozen=True)
class Requirement:
    """What a split by class asks of a folder, and how many folds validation makes of it."""

    split: CategorySplit
    folds: int

    def classes(self, counts: Counts, minimum: int) -> list[str]:
        """Classes that take part, if so many pictures of each modality are asked for."""
        return [label for label, n in counts.items() if min(n.values()) >= minimum]

    def is_met(self, counts: Counts, minimum: int) -> bool:
        """True if two classes take part, and every fold can hold out a sketch and its like."""
        used = self.classes(counts, minimum)
        held_out = sum(
            min(share_of(self.split.train_share, n) for n in counts[label].values())
            for label in used
        )
        return len(used) >= 2 and held_out >= self.folds


def check_classes(folder: Folder, counts: Counts, wanted: Requirement) -> None:
    """Raise `InputError` if too few classes have enough pictures; see `Requirement.is_met`."""
    minimum = wanted.split.minimum_groups
    if wanted.is_met(counts, minimum):
        return
    enough = fewest(minimum, lambda n: wanted.is_met(two_classes(n), n))
    fullest = max(min(n.values()) for n in counts.values())
    fewer = range(min(minimum - 1, fullest), 1, -1)
    lower = next((n for n in fewer if wanted.is_met(counts, n)), None)
    some = f"{folder.sketches}/<class>", f"{folder.images}/<class>"
    mend = f"add pictures to {some[0]} and {some[1]}"
    if lower:
        mend += f", or lower the number: --set minimum_groups={lower}"
    raise InputError(
        f"{folder.root}: a run needs two classes or more with {enough} sketches and {enough} "
        f"images each, and {taking_part(wanted.classes(counts, enough))}: {listed(counts)}; {mend}"
    )


def fewest(least: int, are_enough: Callable[[int], bool]) -> int:
    """Fewest pictures, at least so many, that are enough, as all greater numbers are."""
    return least + bisect_left(range(MOST), True, key=lambda more: are_enough(least + more))


def two_classes(n: int) -> Counts:
    """Two classes of so many sketches and images."""
    return {name: dict.fromkeys(MODALITIES, n) for name in ("a", "b")}


def taking_part(labels: list[str]) -> str:
    """How many classes have enough, in words."""
    return f"only {labels[0]!r} has them" if labels else "none has them"


def listed(counts: Mapping[str, Mapping[Modality, int]]) -> str:
    """Sketches and images of the fullest classes."""
    fullest = sorted(counts, key=lambda label: (-min(counts[label].values()), label))
    shown = ", ".join(
        f"{label!r} has {counted(counts[label]['sketch'], 'sketch')} and "
        f"{counted(counts[label]['image'], 'image')}"
        for label in fullest[:SHOWN]
    )
    return shown + (f", {len(fullest) - SHOWN} others fewer" if len(fullest) > SHOWN else "")


def check_pairs(folder: Folder, n_pairs: int, n_train: Any, folds: int) -> None:
    """Raise `InputError` if too few sketches have a picture of their own to train and to test."""
    least = max(folds, 1)
    if isinstance(n_train, float):
        enough = fewest(2, lambda n: share_of(n_train, n) >= least)
    else:
        enough = n_train + 1
    if n_pairs < enough:
        mend = (
            f"add lines to {folder.pairs}"
            if folder.pairs
            else f"add a sketch to {folder.sketches} and its picture to {folder.images}, of the "
            "same file name"
        )
        raise InputError(
            f"{folder.root} has {counted(n_pairs, 'pair')} of a sketch and a picture, and a run "
            f"needs {enough}; {mend}"
        )
