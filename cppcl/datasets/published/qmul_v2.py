"""QMUL-Shoe-V2 and QMUL-Chair-V2: sketches of particular shoes and chairs."""

from __future__ import annotations

from typing import ClassVar, Literal

from cppcl.datasets.acquisition.layout import Part, by_pattern
from cppcl.datasets.acquisition.mirrors import Archive
from cppcl.datasets.published.published_set import PublishedSet, SampleRow


def _parts(kind: str, n_sketches: int, n_photos: int) -> tuple[Part, Part]:
    """Folders A hold sketches and B photos; one of the two sets may be beside the other."""
    archives = (
        Archive(
            "datav2.tar.gz",
            remark=f"holds ShoeV2 and ChairV2; {kind}V2.zip of the authors holds one; the "
            "addresses are dead or ask for a request",
        ),
    )
    inside = rf"(?:QMUL[-_])?{kind}[-_]?V2/(?:[^/]+/)*"
    parts: list[tuple[str, Literal["sketch", "image"], str, int]] = [
        ("sketches", "sketch", "A", n_sketches),
        ("photos", "image", "B", n_photos),
    ]
    sketches, photos = (
        Part(
            name=name,
            modality=modality,
            place=by_pattern(
                rf"{inside}(?P<part>train|test){letter}/(?P<name>[^/]+\.(?:png|jpe?g))",
                to=f"{kind}V2/{{part}}{letter}/{{name}}",
            ),
            expected=expected,
            archives=archives,
        )
        for name, modality, letter, expected in parts
    )
    return sketches, photos


class QmulV2(PublishedSet):
    """Base of the two sets: a photo and several sketches of it are an instance."""

    label: ClassVar[str]
    page: ClassVar[str] = "http://sketchx.ai/downloads"
    terms: ClassVar[str] = "No licence was found with it; used in research."
    citation: ClassVar[str] = (
        "Q. Yu, F. Liu, Y.-Z. Song, T. Xiang, T. Hospedales, C. C. Loy, Sketch Me That Shoe, CVPR "
        "2016; second version: Q. Yu, J. Song, Y.-Z. Song, T. Xiang, T. Hospedales, Fine-Grained "
        "Instance-Level Sketch-Based Image Retrieval, IJCV 129, 2021"
    )

    def describe(self, part: Part, key: str) -> SampleRow:
        """A sketch bears the name of its photo and a number: ``2429245009_1``."""
        _, folder, name = key.split("/")
        photo = name.rpartition("_")[0] if part.modality == "sketch" else name
        where = folder.lower().removesuffix("a").removesuffix("b")
        return SampleRow(f"{where}/{name}", self.label, photo)


class QmulShoeV2(QmulV2):
    """QMUL-Shoe-V2: sketches of 2,000 photos of shoes; 200 photos are the test."""

    name: ClassVar[str] = "qmul-shoe-v2"
    title: ClassVar[str] = "QMUL-Shoe-V2"
    label: ClassVar[str] = "shoe"
    parts: ClassVar[tuple[Part, ...]] = _parts("Shoe", 6648, 2000)
    remarks: ClassVar[tuple[str, ...]] = (
        "Publications count 6,730 sketches; public programs read 6,648, 666 of them in the test.",
    )


class QmulChairV2(QmulV2):
    """QMUL-Chair-V2: sketches of 400 photos of chairs; 100 photos are the test."""

    name: ClassVar[str] = "qmul-chair-v2"
    title: ClassVar[str] = "QMUL-Chair-V2"
    label: ClassVar[str] = "chair"
    parts: ClassVar[tuple[Part, ...]] = _parts("Chair", 1275, 400)
    remarks: ClassVar[tuple[str, ...]] = (
        "Publications count 1,275 sketches, or 2,000: 1,275 to train and 725 in the test.",
    )
