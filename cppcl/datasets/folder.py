"""One's own pictures: a folder of sketches and a folder of images."""

from __future__ import annotations

import csv
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal

from cppcl.datasets.files import Scan, file_sha256, scan_pictures, undrawn_text
from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError
from cppcl.modality import MODALITIES, Modality
from cppcl.regular_files import check_regular
from cppcl.validation import check_columns, counted


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Pictures in ``<root>/<sketches>`` and ``<root>/<images>``.

    Parameters
    ----------
    root : Path
        Folder that holds both.
    sketches, images : str
        Folders of the two modalities below it.
    pairs : Path, optional
        CSV file with the columns ``sketch``, ``image`` and optionally ``label``, relative to
        `root` as the file itself; names in it are relative to the folders of the modalities.
        Pictures tied by a line, directly or through others, form one group. Pictures that it
        does not name are left out.
    pairing : {'class', 'name'}
        Without `pairs`: ``class`` takes the first folder as the label and no instances;
        ``name`` makes a group of the pictures with the same path without extension, and takes
        the first folder, or in flat folders the group, as the label.
    """

    name: ClassVar[str] = "folder"
    version: ClassVar[int] = 1
    has_pictures: ClassVar[bool] = True

    root: Path
    sketches: str = "sketches"
    images: str = "images"
    pairs: Path | None = None
    pairing: Literal["class", "name"] = "class"

    def __post_init__(self) -> None:
        if self.pairing not in ("class", "name"):
            raise InputError(f"pairing is {self.pairing!r}; it must be 'class' or 'name'")

    @property
    def licence(self) -> str:
        """A reminder: nothing is known about the user's pictures."""
        return f"Pictures of {Path(self.root).name}: licence unknown, provided by the user."

    def check(self) -> None:
        """Refuse what `table` refuses but for the pictures themselves."""
        self._rows(self.fetch(Path()))

    def fetch(self, directory: Path) -> Path:
        """Return the folder where it is; nothing is copied."""
        root = Path(self.root)
        if not root.is_dir():
            raise InputError(f"root {str(root)!r} is not a folder; give the folder of the data")
        return root

    def table(self, root: Path) -> SampleTable:
        """Return one row a picture, ordered by modality and path.

        Raises
        ------
        InputError
            A folder is missing or empty, a file cannot be read, a picture lies in no class
            folder, fewer than two classes, or no class with both modalities.
        """
        return self._table(Path(root), lambda path: file_sha256(Path(root) / path))

    def outline(self) -> SampleTable:
        """Return the table with paths in place of digests: no picture is read."""
        return self._table(self.fetch(Path()), str)

    def _table(self, root: Path, digest: Callable[[str], str]) -> SampleTable:
        rows, ties, scans = self._rows(root)
        paths = [scans[modality].files[key] for modality, key in rows]
        return SampleTable(
            ids=tuple(f"{modality}/{key}" for modality, key in rows),
            sha256=tuple(map(digest, paths)),
            paths=tuple(paths),
            modality=tuple(modality for modality, _ in rows),
            labels=tuple(ties[row][0] for row in rows),
            groups=tuple(ties[row][1] for row in rows),
        )

    def findings(self, root: Path) -> list[str]:
        """Ignored files, text, pictures left out, and classes or groups of one modality only."""
        root = Path(root)
        scans = {m: scan_pictures(root, self._folder(m)) for m in MODALITIES}
        ties = self._ties(root, scans)
        found = [line for m in MODALITIES for line in scans[m].findings()]
        found += [line for m in MODALITIES for line in undrawn_text(root, scans[m])]
        for modality in MODALITIES:
            unnamed = sum((modality, key) not in ties for key in scans[modality].files)
            if unnamed:
                found.append(
                    f"{counted(unnamed, 'picture')} in {self._folder(modality)} left out: in "
                    f"no line of {self.pairs}."
                )
        found += of_one_modality("class", {row: label for row, (label, _) in ties.items()})
        if self.pairs is not None or self.pairing == "name":
            found += of_one_modality("group", {row: group for row, (_, group) in ties.items()})
        return found

    def _rows(
        self, root: Path
    ) -> tuple[
        list[tuple[Modality, str]],
        dict[tuple[Modality, str], tuple[str, str]],
        dict[Modality, Scan],
    ]:
        """Pictures of the table in order, their labels and groups, and all that was found."""
        scans = {m: scan_pictures(root, self._folder(m)) for m in MODALITIES}
        ties = self._ties(root, scans)
        rows = [(m, key) for m in MODALITIES for key in scans[m].files if (m, key) in ties]
        self._check(rows, ties)
        return rows, ties, scans

    def _folder(self, modality: Modality) -> str:
        return self.sketches if modality == "sketch" else self.images

    def _ties(
        self, root: Path, scans: dict[Modality, Scan]
    ) -> dict[tuple[Modality, str], tuple[str, str]]:
        """Label and group of every picture that takes part."""
        if self.pairs is not None:
            folders = {m: self._folder(m) for m in MODALITIES}
            return _ties_of_csv(root / self.pairs, scans, folders)
        ties = {}
        for modality in MODALITIES:
            for key, path in scans[modality].files.items():
                parts = PurePosixPath(key).parts
                if self.pairing == "name":
                    group = str(PurePosixPath(key).with_suffix(""))
                    ties[modality, key] = (parts[0] if len(parts) > 1 else group, group)
                elif len(parts) > 1:
                    ties[modality, key] = (parts[0], f"{modality}/{key}")
                else:
                    raise InputError(
                        f"{path} lies in no class folder; move it to "
                        f"{self._folder(modality)}/<class>/, or set pairing='name' if sketches "
                        "and images with the same name belong together"
                    )
        return ties

    def _check(
        self,
        rows: list[tuple[Modality, str]],
        ties: dict[tuple[Modality, str], tuple[str, str]],
    ) -> None:
        labels = {m: {ties[row][0] for row in rows if row[0] == m} for m in MODALITIES}
        classes = labels["sketch"] | labels["image"]
        if len(classes) < 2:
            raise InputError(
                f"{self.root} holds {counted(len(classes), 'class')} ({_listed(classes)}), and "
                f"retrieval needs two; add a folder of another class to {self.sketches} and to "
                f"{self.images}"
            )
        if not labels["sketch"] & labels["image"]:
            raise InputError(
                f"{self.root}: no class has both sketches and images; sketches have "
                f"{_listed(labels['sketch'])}, images have {_listed(labels['image'])}; give the "
                "folders of a class the same name"
            )


def images_only(root: Path) -> SampleTable:
    """Table of a folder of pictures in any layout, all of modality ``image``: a new gallery.

    The label is the first folder, or empty for pictures directly in `root`; every picture is
    its own group.
    """
    scan = scan_pictures(Path(root), ".")
    parts = [PurePosixPath(key).parts for key in scan.files]
    ids = tuple(f"image/{key}" for key in scan.files)
    modality: Modality = "image"
    return SampleTable(
        ids=ids,
        sha256=tuple(file_sha256(Path(root) / path) for path in scan.files.values()),
        paths=tuple(scan.files.values()),
        modality=(modality,) * len(ids),
        labels=tuple(p[0] if len(p) > 1 else "" for p in parts),
        groups=ids,
    )


def of_one_modality(label: str, values: dict[tuple[Modality, str], str]) -> list[str]:
    """Sentences on the classes or groups that only one modality has."""
    counts: dict[Modality, Counter[str]] = {m: Counter() for m in MODALITIES}
    for (modality, _), value in values.items():
        counts[modality][value] += 1
    found = []
    for here, other in (MODALITIES, MODALITIES[::-1]):
        only = counts[here].keys() - counts[other].keys()
        if only:
            pictures = sum(counts[here][value] for value in only)
            found.append(
                f"{counted(len(only), label)} with {counted(pictures, here)} but no {other}: "
                f"{_listed(only)}."
            )
    return found


def _listed(names: set[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in sorted(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _ties_of_csv(
    path: Path, scans: dict[Modality, Scan], folders: dict[Modality, str]
) -> dict[tuple[Modality, str], tuple[str, str]]:
    check_regular(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = check_columns(reader.fieldnames, f"{path}, line 1")
            lines = [(reader.line_num, line) for line in reader]
    except FileNotFoundError as error:
        raise InputError(f"pairs: {path} does not exist; paths are relative to root") from error
    except UnicodeDecodeError as error:
        raise InputError(f"pairs: {path} is not UTF-8 text ({error})") from error
    except csv.Error as error:
        raise InputError(f"pairs: {path} is no CSV ({error})") from error
    if not {"sketch", "image"} <= set(columns):
        raise InputError(f"{path} has columns {columns}; it needs sketch, image[, label]")
    parents: dict[tuple[Modality, str], tuple[Modality, str]] = {}

    def representative(node: tuple[Modality, str]) -> tuple[Modality, str]:
        while parents.setdefault(node, node) != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    labels: dict[tuple[Modality, str], str] = {}
    for number, line in lines:
        nodes: list[tuple[Modality, str]] = []
        for modality in MODALITIES:
            key = unicodedata.normalize("NFC", line[modality] or "").replace("\\", "/")
            if key not in scans[modality].files:
                raise InputError(
                    f"{path}, line {number}: {modality} {key!r} is no picture in "
                    f"{folders[modality]}"
                )
            node = (modality, key)
            label = line.get("label")
            if label and labels.setdefault(node, label) != label:
                raise InputError(
                    f"{path}, line {number}: {modality} {key!r} has label {label!r} here and "
                    f"{labels[node]!r} before"
                )
            nodes.append(node)
        first, second = (representative(node) for node in nodes)
        # The smaller name leads, images before sketches, so that line order does not matter.
        parents[max(first, second)] = min(first, second)
    groups = {node: representative(node)[1] for node in parents}
    return {node: (labels.get(node, group), group) for node, group in groups.items()}
