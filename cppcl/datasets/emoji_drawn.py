"""The embedded data set with every drawing in ten states, from poor to whole."""

from __future__ import annotations

import json
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from cppcl.datasets.emoji import Emoji, titles_of
from cppcl.datasets.files import file_sha256, made_whole
from cppcl.datasets.table import SampleTable
from cppcl.datasets.unfinished import TENTHS, check_shares
from cppcl.errors import DataUnavailableError
from cppcl.pictures.poorer import jittered, thinned
from cppcl.pictures.unfinished import drawn

Way = Literal["unfinished", "thinned", "jittered"]


@dataclass(frozen=True, kw_only=True)
class EmojiDrawn:
    """`Emoji` with several sketches of a thing, of one group, each fuller than the one before.

    The id of a sketch ends with the percentage that is drawn, such as ``sketch/1f98a/040``; see
    `cppcl.datasets.unfinished.drawn_share`.

    Parameters
    ----------
    shares : tuple of int
        Percentages of the whole drawing, from 1 to 100.
    way : {'unfinished', 'thinned', 'jittered'}
        What a percentage is of: the length of all strokes in the order of the SVG, or in a random
        order, or how near strokes are to their places; see `cppcl.pictures.poorer`.

    Raises
    ------
    InputError
        For shares out of range, repeated, or none.
    """

    name: ClassVar[str] = "emoji-drawn"
    version: ClassVar[int] = 1
    has_pictures: ClassVar[bool] = True

    shares: tuple[int, ...] = TENTHS
    way: Way = "unfinished"

    def __post_init__(self) -> None:
        check_shares(self.shares)

    @property
    def licence(self) -> str:
        """Attribution of both art sets."""
        return Emoji().licence

    def check(self) -> None:
        """Nothing to refuse: no place is given."""

    def fetch(self, directory: Path) -> Path:
        """Write drawings and pictures below ``<directory>``, a folder for each set of shares.

        Raises
        ------
        DataUnavailableError
            A package of the art is missing or has another version.
        """
        whole = Emoji().fetch(directory)
        shares = "-".join(map(str, sorted(self.shares)))
        way = "" if self.way == "unfinished" else f"{self.way}-"
        target = Path(directory) / f"{self.name}-{self.version}-{way}{shares}"
        if target.is_dir():
            return target
        with made_whole(target) as partial:
            shutil.copytree(whole / "images", partial / "images")
            shutil.copy(whole / "labels.json", partial)
            for path in sorted((whole / "sketches").glob("*.svg")):
                sketches = partial / "sketches" / path.stem
                sketches.mkdir(parents=True)
                svg = path.read_text(encoding="utf-8")
                for share in self.shares:
                    text = self._poorer(svg, share / 100, seed=zlib.crc32(path.stem.encode()))
                    (sketches / f"{share:03}.svg").write_text(text, encoding="utf-8")
        return target

    def _poorer(self, svg: str, share: float, *, seed: int) -> str:
        if self.way == "unfinished":
            return drawn(svg, share)
        return (thinned if self.way == "thinned" else jittered)(svg, share, seed=seed)

    def table(self, root: Path) -> SampleTable:
        """Return the sketches by things, from the emptiest to the fullest, then the images."""
        root = Path(root)
        try:
            labels = json.loads((root / "labels.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError) as error:
            raise DataUnavailableError(
                f"{root} is no complete folder of drawings ({error}); delete it and fetch it again"
            ) from error
        things = sorted(labels)
        sketches = [
            (f"sketch/{thing}/{share:03}", f"sketches/{thing}/{share:03}.svg", "sketch", thing)
            for thing in things
            for share in sorted(self.shares)
        ]
        images = [(f"image/{thing}", f"images/{thing}.svg", "image", thing) for thing in things]
        ids, paths, modality, groups = zip(*sketches, *images, strict=True)
        return SampleTable(
            ids=ids,
            sha256=tuple(file_sha256(root / path) for path in paths),
            paths=paths,
            modality=modality,
            labels=tuple(labels[thing] for thing in groups),
            groups=groups,
            titles=titles_of(groups),
        )

    def findings(self, root: Path) -> list[str]:
        """Nothing to report: the set is complete by construction."""
        return []
