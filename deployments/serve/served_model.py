"""A model in memory: what it takes to answer a sketch without reading anything."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.table import SampleTable
from cppcl.datasets.unfinished import drawn_shares
from cppcl.errors import InputError
from cppcl.modality import Modality
from cppcl.pictures.decoding import Picture
from cppcl.pictures.form import Form
from cppcl.retrieval.exact import nearest
from cppcl.retrieval.feedback import moved_query
from cppcl.retrieval.gallery import Gallery
from deployments.serve.closeness import Closeness, closeness_of
from deployments.serve.describing import Describer
from deployments.web.pictures import PictureFile, PictureReader
from storage import Reference
from tasks.collection_map import codes_of_training
from tasks.drawings import Drawings, drawings_of
from tasks.model import Model
from tasks.samples import gallery_rows, open_pictures, open_split, targets, usable_rows
from tasks.words import NO_WORDS, Words, code_with_words, named_rows
from tasks.workers.extractors import extractor_of
from tasks.workspace import Workspace

PictureRow = tuple[Modality, int]
"""A picture: its modality, and its row there."""

THUMBNAIL = 256
LARGE = 1024
N_EXAMPLES = 60
N_CALIBRATING = 500
"""Most sketches from which it is found what close means."""


@dataclass(frozen=True)
class Found:
    """A picture that answers a query: its row, and how similar it is."""

    row: int
    similarity: float


class Shown(NamedTuple):
    """What is said of a picture: its title, its class, and its path in the data set."""

    title: str
    label: str
    path: str


class Marks(NamedTuple):
    """Rows of pictures that a person likes, and does not like, among the answers."""

    liked: tuple[int, ...] = ()
    disliked: tuple[int, ...] = ()


NO_MARKS = Marks()


class ServedModel:
    """Pictures that are searched, and what searches them.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    name : str
        What people call it.
    reference : Reference
        An `encode` artifact.

    Raises
    ------
    InputError
        The model is of features without pictures, or no picture of the gallery could be read.
    StoreError
        Something is missing or damaged.

    Attributes
    ----------
    drawings : Drawings
        What features of drawings are computed from.
    closeness : Closeness
        Which similarity is close in this gallery.
    examples : list of int
        Rows of sketches, of those that it did not learn from if there are any.
    small, large : PictureReader
        Pictures of the gallery, and the sketches of the model's own data set.
    licence : str
        Of the pictures; empty where none is known.
    """

    def __init__(self, workspace: Workspace, name: str, reference: Reference) -> None:
        store = workspace.store
        self.name, self.reference, self.loaded_at = name, reference, time.time()
        model = Model(workspace, reference)
        lineage = model.lineage
        self._method: Any = model.method
        self._lock = Lock()
        sketch_features = store.open(lineage.features["sketch"])
        self._spec = extractor_of(sketch_features)
        sketches = open_pictures(store, lineage.table)
        self.table, self.licence = model.pictures.table, model.pictures.licence
        if any(".npy#" in path for path in (*sketches.table.paths, *self.table.paths)):
            raise InputError(
                f"{name}: learned from features and not from pictures, so there is nothing that "
                "can be drawn; use 'cppcl run', or serve a model of pictures"
            )
        self._extractor = self._spec.make(str(store.root))
        self._describer = Describer(self._extractor)
        metric: Any = workspace.metric_of(lineage.training.reference)
        rows = gallery_rows(store.open(lineage.encoded["image"]), self.table)
        if not len(rows):
            raise InputError(f"{name}: holds no picture that could be read; index another folder")
        self._rows = rows
        self._gallery = Gallery(model.codes.array("image_codes")[rows], metric=metric)
        self._place_of_row = {row: place for place, row in enumerate(rows.tolist())}
        in_table = self.table.rows("image")
        self.titles = [self.table.title(k) for k in in_table]
        self.labels = [self.table.labels[k] for k in in_table]
        self.paths = [self.table.paths[k] for k in in_table]

        home = codes_of_training(workspace, lineage)
        usable = usable_rows(sketch_features)
        held_out = open_split(store, lineage.split).test_sketches
        held_out = held_out[usable[held_out]]
        shuffled = np.random.default_rng(0).permutation(
            held_out if len(held_out) else np.flatnonzero(usable)
        )
        is_whole = drawn_shares(sketches.table.column("ids", "sketch"))[shuffled] == 1
        whole = shuffled[is_whole] if is_whole.any() else shuffled
        self.examples = whole[:N_EXAMPLES].tolist() if home else []
        self._example_codes: dict[int, NDArray[np.floating]] = {}
        if home and self.examples:
            codes = home.rows("sketch_codes", self.examples)
            self._example_codes = dict(zip(self.examples, codes, strict=True))
        self.closeness = Closeness(None)
        if home and len(held_out):
            asked = shuffled[:N_CALIBRATING]
            target: Any = lineage.training.parameters["target"]
            self.closeness = closeness_of(
                home.rows("sketch_codes", asked),
                self._gallery.codes,
                targets(sketches.table, "sketch", target, asked),
                targets(self.table, "image", target, rows),
                metric=metric,
            )
        self._sketch_table = sketches.table
        self._sketch_rows = sketches.table.rows("sketch")
        self.drawings: Drawings = drawings_of(workspace, lineage)
        shown: dict[Modality, tuple[SampleTable, Path]] = {
            "sketch": (sketches.table, sketches.root),
            "image": (self.table, model.pictures.root),
        }
        self.small: dict[str, PictureReader[PictureRow]] = {}
        self.large: dict[str, PictureReader[PictureRow]] = {}
        for modality, (table, root) in shown.items():
            files: dict[PictureRow, PictureFile] = {
                (modality, row): PictureFile(table.paths[k], table.sha256[k])
                for row, k in enumerate(table.rows(modality).tolist())
                if modality == "image" or home
            }
            self.small[modality] = PictureReader(root, files, THUMBNAIL)
            self.large[modality] = PictureReader(root, files, LARGE)

        # What is loaded or compiled when it is first used is so now, and works.
        self.by_picture(np.full((self.look.height, self.look.width, 3), 255, np.uint8), 1)
        self.like(int(rows[0]), 1)

    @property
    def n_pictures(self) -> int:
        """Pictures that can be found."""
        return len(self._rows)

    @property
    def takes_words(self) -> bool:
        """True if words are added to a query; else they say which pictures are searched."""
        return self._extractor.takes_words

    @property
    def look(self) -> Form:
        """Of the sketches that it learned from."""
        return self.drawings.form

    @property
    def longest_side(self) -> int:
        """Pixels to which queries are reduced."""
        return self._spec.longest_side

    def sketch(self, row: int) -> Shown:
        """What is said of a sketch of the model's own data set."""
        table, at = self._sketch_table, self._sketch_rows[row]
        return Shown(table.title(at), table.labels[at], table.paths[at])

    def by_picture(
        self, picture: Picture, k: int, marks: Marks = NO_MARKS, words: Words = NO_WORDS
    ) -> list[Found]:
        """Nearest pictures to a sketch, best first; none where its code is all zero."""
        pictures = self.drawings.pictures(picture)
        # Neither extractors nor learners promise to be used by several threads at once.
        with self._lock:
            features = self._describer.rows(pictures).mean(axis=0, keepdims=True)
            code = self._method.encode_sketches(features)[0]
        return self._nearest(code, k, marks, words=words)

    def by_example(
        self, row: int, k: int, marks: Marks = NO_MARKS, words: Words = NO_WORDS
    ) -> list[Found]:
        """Nearest pictures to one of `examples`, by the code that is stored.

        Raises
        ------
        InputError
            The row is that of no example.
        """
        if row not in self._example_codes:
            raise InputError(f"example={row} is none of the example sketches of {self.name}")
        return self._nearest(self._example_codes[row], k, marks, words=words)

    def like(
        self, row: int, k: int, marks: Marks = NO_MARKS, words: Words = NO_WORDS
    ) -> list[Found]:
        """Nearest pictures to one of the gallery, without itself.

        Raises
        ------
        InputError
            There is no picture in this row.
        """
        code = self._codes_of("image", [row])[0]
        return self._nearest(code, k, marks, without=(row,), words=words)

    def _codes_of(self, what: str, rows: Sequence[int]) -> NDArray[np.floating]:
        """Codes of pictures; `what` is the field that asks for them."""
        for row in rows:
            if row not in self._place_of_row:
                raise InputError(f"{what}={row} is no picture of {self.name}")
        codes: NDArray[np.floating] = self._gallery.codes[[self._place_of_row[r] for r in rows]]
        return codes

    def _nearest(
        self,
        code: NDArray[np.floating],
        k: int,
        marks: Marks,
        without: Sequence[int] = (),
        words: Words = NO_WORDS,
    ) -> list[Found]:
        if marks != NO_MARKS:
            liked, disliked = (
                self._codes_of(what, rows) for what, rows in marks._asdict().items()
            )
            code = moved_query(code, liked, disliked, metric=self._gallery.metric)
        if not code.any():
            return []
        left_out = {*marks.disliked, *without}
        n, metric = k + len(left_out), self._gallery.metric
        if words and not self.takes_words:
            titles, labels = (
                [each[row] for row in self._rows] for each in (self.titles, self.labels)
            )
            named = named_rows(words, titles, labels)
            (among,), (similarities,) = nearest(
                code[None], self._gallery.codes[named], n, metric=metric
            )
            places = named[among]
        else:
            if words:
                with self._lock:
                    code = code_with_words(code, words, self._extractor, self._method, metric)
            (places,), (similarities,) = self._gallery.nearest(code[None], n)
        found = [
            Found(int(self._rows[place]), float(similarity))
            for place, similarity in zip(places, similarities, strict=True)
            if np.isfinite(similarity)
        ]
        return [match for match in found if match.row not in left_out][:k]
