"""PACS: sketches and photos of seven classes, made for domain generalisation."""

from __future__ import annotations

from typing import ClassVar

from cppcl.datasets.acquisition.layout import Part, by_pattern
from cppcl.datasets.acquisition.mirrors import Archive
from cppcl.datasets.published.published_set import PublishedSet

CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
_ANY = "|".join(CLASSES)
_COPY = Archive(
    "Homework3-PACS.zip",
    (
        "https://github.com/MachineLearning2020/Homework3-PACS/archive/"
        "d586a6cf3db84896fb6cc465c7bf51bdaf6d65d8.zip",
    ),
    n_bytes=180_000_000,
    remark="any copy of PACS/sketch/<class>/* and PACS/photo/<class>/* will do",
)


def _domain(folder: str) -> Part:
    """One of the domains; the art paintings and cartoons are not used."""
    return Part(
        name=f"{folder}es" if folder == "sketch" else f"{folder}s",
        modality="sketch" if folder == "sketch" else "image",
        place=by_pattern(
            rf"{folder}/(?P<label>{_ANY})/(?P<name>[^/]+\.(?:png|jpe?g))",
            to=f"{folder}/{{label}}/{{name}}",
        ),
        expected=3929 if folder == "sketch" else 1670,
        archives=(_COPY,),
    )


class Pacs(PublishedSet):
    """PACS: 3,929 sketches and 1,670 photos of seven classes, 227 x 227 pixels."""

    name: ClassVar[str] = "pacs"
    title: ClassVar[str] = "PACS (sketch and photo)"
    page: ClassVar[str] = "https://domaingeneralization.github.io"
    terms: ClassVar[str] = "No licence was found with it; used in research."
    citation: ClassVar[str] = (
        "D. Li, Y. Yang, Y.-Z. Song, T. Hospedales, Deeper, Broader and Artier Domain "
        "Generalization, ICCV 2017"
    )
    parts: ClassVar[tuple[Part, ...]] = (_domain("sketch"), _domain("photo"))
