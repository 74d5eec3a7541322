"""A data set by someone else: pictures with a bar, whose place is their class."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cppcl.datasets.table import SampleTable
from cppcl.modality import MODALITIES

CLASSES = ("left", "right")


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Bars at the left or at the right: thin ones are sketches, thick ones images.

    Parameters
    ----------
    per_class : int
        Sketches, and images, of each class.
    """

    name: ClassVar[str] = "bars"
    version: ClassVar[int] = 1
    has_pictures: ClassVar[bool] = True
    licence: ClassVar[str] = "Bars: public domain."

    per_class: int = 8

    def fetch(self, directory: Path) -> Path:
        """Draw what is not there."""
        from PIL import Image

        root = Path(directory) / f"bars-{self.per_class}"
        for modality, label, number in self._samples():
            path = root / modality / label / f"{number}.png"
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            picture = np.full((32, 32, 3), 255, dtype=np.uint8)
            at = 2 + number if label == "left" else 20 - number
            picture[number:, at : at + (2 if modality == "sketch" else 8)] = 10 * number
            Image.fromarray(picture).save(path)
        return root

    def table(self, root: Path) -> SampleTable:
        """One row a picture."""
        samples = list(self._samples())
        root = Path(root)
        paths = [f"{modality}/{label}/{number}.png" for modality, label, number in samples]
        return SampleTable(
            ids=tuple(paths),
            sha256=tuple(
                hashlib.sha256((Path(root) / path).read_bytes()).hexdigest() for path in paths
            ),
            paths=tuple(paths),
            modality=tuple(modality for modality, _, _ in samples),
            labels=tuple(label for _, label, _ in samples),
            groups=tuple(paths),
        )

    def findings(self, root: Path) -> list[str]:
        """Nothing to know."""
        return []

    def _samples(self):  # type: ignore[no-untyped-def]
        for modality in MODALITIES:
            for label in CLASSES:
                for number in range(self.per_class):
                    yield modality, label, number
