"""One's own drawings as they come to be: strokes of SVG or Quick, Draw! files, beside images."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal

from cppcl.datasets.files import (
    file_sha256,
    is_system_name,
    made_whole,
    printable,
    scan_pictures,
    walk,
)
from cppcl.datasets.folder import Folder
from cppcl.datasets.table import SampleTable
from cppcl.datasets.unfinished import TENTHS, check_shares
from cppcl.errors import InputError
from cppcl.pictures.svg_strokes import strokes_of_svg
from cppcl.pictures.timed_sketch import TimedSketch, read_quickdraw
from cppcl.validation import check_number

DRAWINGS = "sketches"
IMAGES = "images"
LONGEST_NAME = 200
"""Bytes of a name of a class or drawing; file systems take 255."""


@dataclass(frozen=True, kw_only=True)
class FolderDrawn:
    """Drawings with strokes, each as several sketches of more and more of its ink.

    Sketches are ``<root>/<sketches>/<class>/<name>.svg``, whose outlines are drawn in the order of
    the file, or ``<root>/<sketches>/<any>.ndjson`` of Quick, Draw!, simplified or raw, whose words
    are classes. All are drawn alike: black lines of one width, on a square that the whole drawing
    fits. The id of a sketch ends with the percentage that is drawn.

    Parameters
    ----------
    root : Path
        Folder that holds sketches and images.
    sketches, images : str
        Folders of the two modalities below it.
    pairing : {'class', 'name'}
        ``name`` makes one instance of a drawing and the image with the same class and name.
    shares : tuple of int
        Percentages of the length of all strokes, from 1 to 100.
    n_drawings : int, optional
        First recognised drawings of each word of an ``.ndjson`` file that are taken; all by
        default.
    """

    name: ClassVar[str] = "folder-drawn"
    version: ClassVar[int] = 2
    has_pictures: ClassVar[bool] = True

    root: Path
    sketches: str = "sketches"
    images: str = "images"
    pairing: Literal["class", "name"] = "class"
    shares: tuple[int, ...] = TENTHS
    n_drawings: int | None = None

    def __post_init__(self) -> None:
        check_shares(self.shares)
        if self.n_drawings is not None:
            check_number("n_drawings", self.n_drawings, least=1, whole=True)

    @property
    def licence(self) -> str:
        """A reminder: nothing is known about the user's pictures."""
        return f"Pictures of {Path(self.root).name}: licence unknown, provided by the user."

    def check(self) -> None:
        """Refuse folders that are missing or hold nothing to read."""
        self._files()
        scan_pictures(Path(self.root), self.images)

    def fetch(self, directory: Path) -> Path:
        """Write every share of every drawing below `directory`, beside a link to the images.

        Raises
        ------
        InputError
            A drawing cannot be read: the message names it.
        """
        root = Path(self.root).absolute()
        scan_pictures(root, self.images)
        asked = [str(root), self.images, str(sorted(self.shares)), str(self.n_drawings)]
        asked += [f"{key} {file_sha256(path)}" for key, path in self._files().items()]
        digest = hashlib.sha256("\0".join(asked).encode()).hexdigest()[:16]
        target = Path(directory).absolute() / f"{self.name}-{self.version}-{digest}"
        if target.is_dir():
            return target
        with made_whole(target) as partial:
            (partial / IMAGES).symlink_to(root / self.images, target_is_directory=True)
            for path, label, name, sketch in self._drawings():
                folder = partial / DRAWINGS / _folder_name(label, path) / _folder_name(name, path)
                if folder.exists():
                    raise InputError(
                        f"{path}: there is another drawing {name!r} of the class {label!r}; "
                        "leave one of them out"
                    )
                folder.mkdir(parents=True)
                for share in self.shares:
                    text = sketch.first(share / 100).svg(box=sketch.box)
                    (folder / f"{share:03}.svg").write_text(text, encoding="utf-8")
        return target

    def table(self, root: Path) -> SampleTable:
        """Return the sketches by drawings, from the emptiest to the fullest, then the images."""
        whole = Folder(root=root, sketches=DRAWINGS, images=IMAGES).table(root)
        ids, groups = [], []
        for name, modality in zip(whole.ids, whole.modality, strict=True):
            # Ids end with the percentage alone, and a drawing's sketches are of one group.
            sample = name.removesuffix(".svg") if modality == "sketch" else name
            path = PurePosixPath(sample).relative_to(modality)
            thing = path.parent if modality == "sketch" else path.with_suffix("")
            ids.append(sample)
            groups.append(str(thing) if self.pairing == "name" else f"{modality}/{thing}")
        return SampleTable(
            ids=tuple(ids),
            sha256=whole.sha256,
            paths=whole.paths,
            modality=whole.modality,
            labels=whole.labels,
            groups=tuple(groups),
        )

    def findings(self, root: Path) -> list[str]:
        """Classes of one modality only, and images that are left out."""
        return Folder(root=root, sketches=DRAWINGS, images=IMAGES).findings(root)

    def _files(self) -> dict[str, Path]:
        """Files that hold drawings, by their place in the folder of sketches."""
        top = Path(self.root) / self.sketches
        found: dict[str, Path] = {}
        for entry, is_system in walk(top) if top.is_dir() else ():
            path = Path(entry.path)
            if is_system or path.suffix.lower() not in (".svg", ".ndjson"):
                continue
            shown = printable(entry.path)
            if shown != entry.path:
                raise InputError(f"{shown}: its name is not valid Unicode; give it another")
            key = unicodedata.normalize("NFC", path.relative_to(top).as_posix())
            if key in found:
                raise InputError(
                    f"{shown!r} is there twice, in two Unicode forms of its name; rename one"
                )
            found[key] = path
        if not found:
            raise InputError(
                f"{top} holds neither .svg nor .ndjson files; give root and the folder of "
                "sketches below it"
            )
        return dict(sorted(found.items()))

    def _drawings(self) -> Iterator[tuple[Path, str, str, TimedSketch]]:
        """File, class, name and strokes of every drawing."""
        taken: dict[str, int] = {}
        for key, path in self._files().items():
            if path.suffix.lower() == ".ndjson":
                for drawing in read_quickdraw(path):
                    n = taken.get(drawing.word, 0)
                    if drawing.recognized and n != self.n_drawings:
                        taken[drawing.word] = n + 1
                        yield path, drawing.word, drawing.key, drawing.sketch
                continue
            label, *rest = PurePosixPath(key).with_suffix("").parts
            if not rest:
                raise InputError(
                    f"{path} lies in no class folder; move it to {self.sketches}/<class>/"
                )
            try:
                sketch = strokes_of_svg(path.read_text(encoding="utf-8"))
            except (InputError, UnicodeDecodeError) as error:
                raise InputError(f"{path}: {error}") from error
            yield path, label, "-".join(rest), sketch


def _folder_name(name: str, path: Path) -> str:
    """A class, or the name of a drawing, as that of a folder; none leads to another folder."""
    shown = f"{path}: the word or key {name!r:.60} cannot be the name of a folder"
    if not name.strip() or "/" in name or not name.isprintable():
        raise InputError(f"{shown}; it must be of letters that are printed, without '/'")
    if is_system_name(name):
        raise InputError(f"{shown}: files of such names are hidden; give another")
    if len(name.encode()) > LONGEST_NAME:
        raise InputError(f"{shown}: it has more than {LONGEST_NAME} bytes; give a shorter one")
    return unicodedata.normalize("NFC", name)
