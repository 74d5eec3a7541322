"""A stored model, ready to search with: extractor, learner, gallery."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError, PictureError
from cppcl.features import Extractor
from cppcl.pictures.decoding import Picture, decode_picture, is_of_one_colour
from cppcl.retrieval.exact import Metric, nearest
from storage import Reference
from tasks.drawings import Drawings, drawings_of
from tasks.lineage import Lineage
from tasks.samples import Pictures, gallery_rows, open_pictures
from tasks.stages.train import open_method
from tasks.words import NO_WORDS, Words, code_with_words, named_rows
from tasks.workers.extractors import ExtractorSpec, extractor_of
from tasks.workspace import Workspace


@dataclass(frozen=True)
class Match:
    """A picture of the gallery that answers a query; its title is what a person calls it."""

    rank: int
    path: Path
    title: str
    label: str
    similarity: float


class Model:
    """What an `encode` artifact and its inputs hold.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    reference : Reference
        An `encode` artifact.
    """

    def __init__(self, workspace: Workspace, reference: Reference) -> None:
        self.workspace = workspace
        store = workspace.store
        self.lineage = Lineage.of_codes(store, reference)
        self.codes = self.lineage.codes
        self.method = open_method(store, self.lineage.training.reference)
        self._image_features = store.open(self.lineage.encoded["image"])
        self.pictures: Pictures = open_pictures(store, self._image_features.inputs["table"])

    def search(
        self, picture: Path, k: int, *, photograph: bool = False, words: Words = NO_WORDS
    ) -> list[Match]:
        """Pictures of the gallery nearest to a sketch, best first.

        Parameters
        ----------
        picture : path
            A sketch.
        k : int
            Number of pictures.
        photograph : bool
            True for a photograph of a sketch on paper: see `cppcl.pictures.photographs`.
        words : Words
            Added to the sketch where the encoder knows words; else only pictures whose names
            have them are searched.

        Raises
        ------
        PictureError
            If the file is no picture, one of one colour, or a photograph without strokes.
        InputError
            If ``k`` is not positive, the model is of features without pictures, the sketch has
            an all-zero code, no picture has the words in its name, or the gallery holds no
            picture that could be read.

        Notes
        -----
        Pictures with an all-zero code are similar to nothing and left out.
        """
        if k < 1:
            raise InputError(f"-k {k} must be at least 1")
        spec = self._sketch_extractor
        sketch = read_sketch(picture, spec.longest_side, photograph=photograph)
        extractor = picture_extractor(spec, self.workspace)
        features = extractor.transform(self._drawings.pictures(sketch))
        code = self.method.encode_sketches(features.mean(axis=0, keepdims=True))
        if not code.any():
            hint = self.method.zero_codes_hint
            raise InputError(
                f"{picture}: the model finds nothing it knows in it (its code is all zero), so no "
                f"picture is nearer than another; draw more, or train anew{hint and f': {hint}'}"
            )
        rows, codes, metric = self._gallery
        if words and extractor.takes_words:
            code = code_with_words(code[0], words, extractor, self.method, metric)[None]
        elif words:
            table = self.pictures.table
            at = table.rows("image")[rows]
            titles, labels = [table.title(row) for row in at], [table.labels[row] for row in at]
            named = named_rows(words, titles, labels)
            rows, codes = rows[named], codes[named]
        found, similarity = nearest(code, codes, k, metric=metric)
        ranked = zip(found[0], similarity[0], strict=True)
        return [
            self._match(rank, int(rows[row]), float(value))
            for rank, (row, value) in enumerate(ranked, start=1)
            if np.isfinite(value)
        ]

    @cached_property
    def _sketch_extractor(self) -> ExtractorSpec:
        return extractor_of(self.workspace.store.open(self.lineage.features["sketch"]))

    @cached_property
    def _drawings(self) -> Drawings:
        return drawings_of(self.workspace, self.lineage)

    @cached_property
    def _gallery(self) -> tuple[NDArray[np.int64], NDArray[Any], Metric]:
        """Rows of the pictures that are searched, their codes, and how they are compared."""
        rows = gallery_rows(self._image_features, self.pictures.table)
        if not len(rows):
            raise InputError(
                f"gallery {self.codes.reference.key[:12]} holds no picture that could be read; "
                "index another folder"
            )
        metric: Any = self.workspace.metric_of(self.lineage.training.reference)
        return rows, self.codes.rows("image_codes", rows), metric

    def _match(self, rank: int, row: int, similarity: float) -> Match:
        table = self.pictures.table
        at = table.rows("image")[row]
        path = self.pictures.root / table.paths[at]
        return Match(rank, path, table.title(at), table.labels[at], similarity)


def read_sketch(file: Path, longest_side: int, *, photograph: bool = False) -> Picture:
    """Decode a sketch, or a photograph of one, cleaned, on which strokes are black on white."""
    if not photograph:
        sketch = decode_picture(file, longest_side=longest_side)
        if is_of_one_colour(sketch):
            raise PictureError(f"{file} is of one colour, so there is nothing to search by")
        return sketch
    from cppcl.pictures.photographs import WORKING_SIDE, clean_photograph

    seen = decode_picture(file, longest_side=WORKING_SIDE)
    return clean_photograph(seen, longest_side=longest_side, name=str(file))


def picture_extractor(spec: ExtractorSpec, workspace: Workspace) -> Extractor:
    """Extractor of a model, refused where it takes rows of numbers and no pictures."""
    extractor = spec.make(str(workspace.store.root))
    if not extractor.takes_pictures:
        raise InputError(
            f"the model learned from features that {spec.name!r} takes as they are, and not from "
            "pictures; use a model of pictures"
        )
    return extractor
