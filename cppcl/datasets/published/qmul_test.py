"""The published test part of the Queen Mary SBIR data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: F401 - the options of `PublishedSet` name it
from typing import ClassVar, Literal

from cppcl.datasets.acquisition.layout import Part, by_pattern
from cppcl.datasets.acquisition.mirrors import Archive
from cppcl.datasets.published.published_set import PublishedSet, SampleRow
from cppcl.errors import InputError

CLASSES = (
    "airplane",
    "bicycle",
    "bus",
    "car (sedan)",
    "cat",
    "chair",
    "cow",
    "dog",
    "horse",
    "motorbike",
    "sheep",
    "standing bird",
    "table",
    "train",
)
"""The classes, as the sketches are labelled."""

CITATION = (
    "Y. Li, T. Hospedales, Y.-Z. Song, S. Gong, Fine-Grained Sketch-Based Image Retrieval by "
    "Matching Deformable Part Models, BMVC 2014"
)
_LABELS = "|".join(label.replace("(", r"\(").replace(")", r"\)") for label in CLASSES)
_COPY = Archive(
    "fine-graind-SBIR.zip",
    (
        "https://github.com/panly099/fine-graind-SBIR/archive/"
        "e147e46f23323816507ee833e5f95a6a361c4342.zip",
    ),
    n_bytes=120_000_000,
    remark="the authors' repository; Data/Test is what is needed",
)


def _part(name: str, modality: Literal["sketch", "image"], folder: str, expected: int) -> Part:
    return Part(
        name=name,
        modality=modality,
        place=by_pattern(
            rf"(?P<label>{_LABELS})/{folder}/(?P<name>[^/]+\.(?:png|jpe?g))",
            to=f"{{label}}/{folder}/{{name}}",
        ),
        expected=expected,
        archives=(_COPY,),
    )


@dataclass(frozen=True, kw_only=True)
class QmulTest(PublishedSet):
    """Test part of Queen Mary SBIR: 6 sketches and 60 photos of each of 14 classes.

    Parameters
    ----------
    photos : {'whole', 'detected'}
        Whole photos, or the objects that the authors' detector found in them, which the authors
        ask for where a method does not look for objects itself.
    """

    name: ClassVar[str] = "qmul-test"
    title: ClassVar[str] = "Queen Mary SBIR, published test part"
    page: ClassVar[str] = "https://github.com/panly099/fine-graind-SBIR"
    terms: ClassVar[str] = (
        "Sketches: TU-Berlin, CC BY 4.0. Photos: PASCAL VOC 2010, subject to the terms of Flickr."
    )
    citation: ClassVar[str] = CITATION
    parts: ClassVar[tuple[Part, ...]] = (
        _part("sketches", "sketch", "sketch", 84),
        _part("whole photos", "image", "img", 840),
        _part("detected objects", "image", "cropped", 840),
    )

    photos: Literal["whole", "detected"] = "whole"

    def __post_init__(self) -> None:
        if self.photos not in ("whole", "detected"):
            raise InputError(f"photos is {self.photos!r}; it must be 'whole' or 'detected'")

    @property
    def needed(self) -> tuple[Part, ...]:
        """The sketches, and the photos that are asked for."""
        sketches, whole, detected = self.parts
        return (sketches, whole if self.photos == "whole" else detected)

    def describe(self, part: Part, key: str) -> SampleRow:
        """Keys are ``<label>/<folder>/<name>``."""
        label, _, name = key.split("/")
        return SampleRow(f"{label}/{name}", label, "")
