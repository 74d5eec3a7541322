"""CUFS: photos of 188 students of the CUHK and sketches of them by an artist."""

from __future__ import annotations

import re
from functools import partial
from typing import ClassVar

from cppcl.datasets.acquisition.layout import Part
from cppcl.datasets.acquisition.mirrors import Archive
from cppcl.datasets.published.published_set import PublishedSet, SampleRow


def _names(prefix: str, first: int, last: int, without: int | None = None) -> list[str]:
    return [f"{prefix}-{n:03d}-01" for n in range(first, last + 1) if n != without]


TRAINING = (*_names("f", 5, 38), *_names("m", 8, 62, without=20))
"""The 88 persons of the official training part, in the order of their names."""

TEST = (
    *_names("f", 39, 43),
    *_names("f1", 1, 15),
    *_names("m", 63, 101),
    *_names("m1", 1, 41),
)
"""The 100 persons of the official test part, in the order of their names."""

_PERSONS = {"training": TRAINING, "test": TEST}
_PART_OF = {person: name for name, persons in _PERSONS.items() for person in persons}

# Photos f-005-01.jpg; sketches f-039-01-sz1.jpg and, in the training part, F2-005-01-sz1.jpg.
_NAMED = re.compile(
    r"(?:^|/)(?:(?P<folder>[^/]*)/)?(?P<sex>[fm])(?P<group>[12]?)-(?P<number>\d{3})-01"
    r"(?P<sketch>-sz1)?(?P<suffix>\.(?:jpe?g|png|bmp))$",
    re.IGNORECASE,
)
# The public copy numbers the persons of either part in the order of their names, which its
# women, who come first (34 of 88, 20 of 100), bear out.
_NUMBERED = re.compile(
    r"(?:^|/)CUHK_student_(?P<part>train|test)/(?P<kind>photo|sketch)(?:e?s)?/"
    r"(?P<number>\d{2,3})(?P<suffix>\.(?:png|jpe?g))$",
    re.IGNORECASE,
)
_SITE = "http://mmlab.ie.cuhk.edu.hk/archive/sketchdatabase/CUHK"
_COPY = Archive(
    "Face-Sketch.zip",
    (
        "https://github.com/chaofengc/Face-Sketch/archive/"
        "00dd8a1f313f95cbdd3b4ffd8b2b9b801dff601d.zip",
    ),
    remark="a public copy, Data/CUHK_student_{train,test}/{photos,sketches}/<number>.png",
)


def _place(path: str, *, part: str, kind: str) -> str | None:
    """Place of a photo or sketch of a person of one part, by the person's official name."""
    if match := _NUMBERED.search(path):
        persons = TRAINING if match["part"].lower() == "train" else TEST
        if int(match["number"]) >= len(persons):
            return None
        person, found_kind = persons[int(match["number"])], match["kind"].lower()
    elif match := _NAMED.search(path):
        # The 2 of F2 and M2 is on sketches only.
        person = f"{match['sex'].lower()}{match['group'].replace('2', '')}-{match['number']}-01"
        in_sketches = (match["folder"] or "").casefold().startswith("sketch")
        found_kind = "sketch" if match["sketch"] or in_sketches else "photo"
    else:
        return None
    if found_kind != kind or _PART_OF.get(person) != part:
        return None
    folder = "sketches" if kind == "sketch" else "photos"
    return f"{folder}/{person}{match['suffix'].lower()}"


def _part(part: str, kind: str) -> Part:
    folder = "sketches" if kind == "sketch" else "photos"
    where, count = ("training_88", 88) if part == "training" else ("testing_100", 100)
    file = f"CUHK_{where.partition('_')[0]}_cropped_{folder}.zip"
    return Part(
        name=f"{part} {folder}",
        modality="sketch" if kind == "sketch" else "image",
        place=partial(_place, part=part, kind=kind),
        expected=count,
        archives=(Archive(file, (f"{_SITE}/{where}/Cropped_Images/{file}",)), _COPY),
        size=(200, 250),
    )


class Cufs(PublishedSet):
    """CUFS, student part: 188 photos of faces and sketches of them, 200 x 250 pixels, aligned."""

    name: ClassVar[str] = "cufs"
    title: ClassVar[str] = "CUHK Face Sketch database (CUFS), students, cropped"
    page: ClassVar[str] = "http://mmlab.ie.cuhk.edu.hk/archive/facesketch.html"
    terms: ClassVar[str] = "For research; the terms are on its page."
    citation: ClassVar[str] = (
        "X. Wang, X. Tang, Face Photo-Sketch Synthesis and Recognition, IEEE TPAMI 31(11), 2009"
    )
    parts: ClassVar[tuple[Part, ...]] = tuple(
        _part(part, kind) for kind in ("sketch", "photo") for part in ("training", "test")
    )

    def describe(self, part: Part, key: str) -> SampleRow:
        """A person is both label and group."""
        person = key.partition("/")[2]
        return SampleRow(person, person, person)
