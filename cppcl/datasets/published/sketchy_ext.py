"""Sketchy, with the photos that were added to it: sketches of particular photos, 125 classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: F401 - the options of `PublishedSet` name it
from typing import ClassVar

from cppcl.datasets.acquisition.layout import Part, by_pattern
from cppcl.datasets.acquisition.mirrors import Archive
from cppcl.datasets.published.published_set import SampleRow
from cppcl.datasets.published.zero_shot import UnseenCounts, ZeroShotSet, class_name

_DRIVE = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="
_PICTURES = Archive(
    "rendered_256x256.7z",
    remark=f"in Drive, {_DRIVE}0B7ISyeE8QtDdTjE1MG9Gcy1kSkE; a 7z archive: unpack it and add the "
    "folder 256x256",
)
_ADDED = Archive(
    "extended_photo.zip",
    (f"{_DRIVE}0B2U-hnwRkpRrdGZKTzkwbkEwVkk",),
    remark="its top folder is EXTEND_image_sketchy; a browser may have to log in to download it",
)
_BOTH = Archive(
    "dataset.zip",
    (
        "https://cs.jhu.edu/~qliu24/ZSSBIR/dataset.zip",
        f"{_DRIVE}1qTEe5DjGdh45UFfGa6Ofy_80yJRp7uI5",
    ),
    remark="holds Sketchy and TU-Berlin, prepared by a publication",
)
_PLAIN = r"tx_000000000000(?:_ready)?"


@dataclass(frozen=True, kw_only=True)
class SketchyExt(ZeroShotSet):
    """Sketchy with its extension: 75,471 sketches and 73,002 photos of 125 classes.

    A sketch is of one of the 12,500 photos of Sketchy: the two are an instance. The 60,502 photos
    of the extension have no sketches of their own.

    Parameters
    ----------
    extended : bool
        With the photos of the extension, as category-level protocols use them; without, as
        fine-grained ones do.
    """

    name: ClassVar[str] = "sketchy-ext"
    title: ClassVar[str] = "Sketchy, extended"
    page: ClassVar[str] = "https://sketchy.eye.gatech.edu"
    terms: ClassVar[str] = "For research; see its page. Photos: of ImageNet; used in research."
    citation: ClassVar[str] = (
        "P. Sangkloy, N. Burnell, C. Ham, J. Hays, The Sketchy Database: Learning to Retrieve "
        "Badly Drawn Bunnies, SIGGRAPH 2016; added photos: L. Liu, F. Shen, Y. Shen, X. Liu, "
        "L. Shao, Deep Sketch Hashing, CVPR 2017"
    )
    remarks: ClassVar[tuple[str, ...]] = (
        "Only the pictures without augmentation are read, tx_000000000000.",
    )
    parts: ClassVar[tuple[Part, ...]] = (
        Part(
            name="sketches",
            modality="sketch",
            place=by_pattern(
                rf"sketch(?:es)?/(?:{_PLAIN}/)?(?P<label>(?!tx_)[^/]+)/"
                r"(?P<name>n\d+_\d+-\d+\.(?:png|jpe?g))",
                to="sketches/{label}/{name}",
            ),
            expected=75_471,
            archives=(_PICTURES, _BOTH),
        ),
        Part(
            name="photos",
            modality="image",
            place=by_pattern(
                rf"photos?/(?:{_PLAIN}/)?(?P<label>(?!tx_)[^/]+)/"
                r"(?P<name>n\d+_\d+\.(?:png|jpe?g))",
                to="photos/{label}/{name}",
            ),
            expected=12_500,
            archives=(_PICTURES, _BOTH),
        ),
        Part(
            name="added photos",
            modality="image",
            place=by_pattern(
                r"(?:EXTEND_image_sketchy(?:_ready)?|extended_photo)/(?P<label>[^/]+)/"
                r"(?P<name>[^/]+\.(?:png|jpe?g))",
                to="extended_photo/{label}/{name}",
            ),
            expected=60_502,
            archives=(_ADDED, _BOTH),
        ),
    )
    unseen: ClassVar[dict[str, UnseenCounts]] = {
        "sketchy-ext-25": UnseenCounts(15_229, 17_101),
        "sketchy-ext-21": UnseenCounts(12_694, 12_553),
    }

    extended: bool = True

    @property
    def needed(self) -> tuple[Part, ...]:
        """All parts, or those that fine-grained retrieval needs."""
        return self.parts if self.extended else self.parts[:2]

    def describe(self, part: Part, key: str) -> SampleRow:
        """A sketch bears the name of its photo and a number: ``n02691156_58-1``."""
        place, folder, name = key.split("/")
        label = class_name(folder)
        if place == "extended_photo":  # some bear the name of a photo of Sketchy
            return SampleRow(f"{label}/added/{name}", label, "")
        photo = name.rpartition("-")[0] if part.modality == "sketch" else name
        return SampleRow(f"{label}/{name}", label, f"{label}/{photo}")
