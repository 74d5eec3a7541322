"""Base of the data sets that zero-shot retrieval is compared on: folders of classes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, NamedTuple

from cppcl.datasets.acquisition.layout import Part
from cppcl.datasets.published.published_set import PublishedSet, SampleRow
from cppcl.datasets.splits.unseen_classes import UNSEEN_CLASSES


class UnseenCounts(NamedTuple):
    """Sketches and photos of the test classes, as publications count them."""

    sketches: int
    photos: int


class ZeroShotSet(PublishedSet):
    """Sketches and photos in folders named by their classes.

    Attributes
    ----------
    unseen : dict of str to UnseenCounts
        Test classes of publications, by their name in `UNSEEN_CLASSES`.
    """

    unseen: ClassVar[dict[str, UnseenCounts]]

    def describe(self, part: Part, key: str) -> SampleRow:
        """A class is written with spaces, whatever the folder has."""
        _, folder, name = key.split("/")
        label = class_name(folder)
        return SampleRow(f"{label}/{name}", label, "")

    def findings(self, root: Path) -> list[str]:
        """Besides the counts: those of the test classes, where they differ."""
        counts: dict[str, dict[str, int]] = {"sketch": {}, "image": {}}
        for modality, sample, _ in self._rows(Path(root)):
            of_label = counts[modality]
            of_label[sample.label] = of_label.get(sample.label, 0) + 1
        found = super().findings(root)
        for name, published in self.unseen.items():
            classes = UNSEEN_CLASSES[name]
            missing = [c for c in classes if not all(c in counts[m] for m in counts)]
            here = [sum(counts[m].get(c, 0) for c in classes) for m in counts]
            if here != list(published):
                found.append(
                    f"{name}: {here[0]:,} sketches and {here[1]:,} photos of its "
                    f"{len(classes)} unseen classes are here; publications count "
                    f"{published.sketches:,} and {published.photos:,}."
                )
            if missing:
                found.append(f"{name}: no pictures of {', '.join(missing)}.")
        return found


def class_name(folder: str) -> str:
    """Name of a class: that of its folder in lower case, with spaces."""
    return folder.replace("_", " ").lower()
