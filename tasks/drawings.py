"""Whether drawings are brought to the form of a model's sketches: tried once, and stored."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cppcl.errors import PictureError
from cppcl.pictures.decoding import Picture, read_sample
from cppcl.pictures.form import Form, form_of, in_form
from cppcl.pictures.jitter import jittered
from cppcl.retrieval.exact import Metric, nearest
from storage import Recipe
from tasks.lineage import Lineage
from tasks.progress import Progress, log, tell
from tasks.samples import open_pictures, open_split, targets, usable_rows
from tasks.stages.train import open_method
from tasks.workers.extractors import extractor_of
from tasks.workspace import Workspace

VERSION = "4"
N_MEASURED = 40
"""Sketches whose form is measured."""
N_TRIED = 60
"""Sketches that are tried as they are and in that form."""
ONE_SIDED = 1.645
"""Standard errors that a difference exceeds by chance in one of 20 cases."""
N_PICTURES = 2000
"""Most pictures among which they search."""


@dataclass(frozen=True)
class Drawings:
    """How features of a drawing are computed.

    Attributes
    ----------
    form : Form
        Of the sketches that the model learned from.
    n_tried : int
        Jittered training sketches.
    as_they_are, with_form : float
        Mean reciprocal rank of their first right picture, by their own features, and by the mean
        of these and their features in that form.
    error : float
        Standard error of the mean difference of the two, over sketches.
    """

    form: Form
    n_tried: int
    as_they_are: float
    with_form: float
    error: float

    @property
    def helps(self) -> bool:
        """True if jittered training sketches found more with the form, and not by chance."""
        return self.with_form - self.as_they_are > ONE_SIDED * self.error

    def pictures(self, drawing: Picture) -> list[Picture]:
        """A drawing, and it in the form where that helps: the mean of their features counts."""
        return described(drawing, self.form) if self.helps else [drawing]


def described(drawing: Picture, form: Form) -> list[Picture]:
    """A drawing, and it in a form, unless it is already."""
    formed = in_form(drawing, form)
    return [drawing] if formed is drawing else [drawing, formed]


def drawings_of(workspace: Workspace, lineage: Lineage) -> Drawings:
    """Find in the store, or find out and store, how a model takes drawings best.

    A store that cannot be written to is left as it is.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    lineage : Lineage
        The model.
    """
    metric: Any = workspace.metric_of(lineage.training.reference)
    recipe = Recipe("drawings", VERSION, {"metric": metric}, {"model": lineage.training.reference})

    def find_out() -> dict[str, Any]:
        log(
            "trying, once for a model, whether drawings find more in the size and line width of "
            "its sketches"
        )
        return asdict(tried(workspace, lineage, metric))

    store = workspace.store
    if store.find(recipe.reference) is None and not os.access(store.root, os.W_OK):
        stored = find_out()
    else:
        found = store.get_or_create(recipe, lambda w: w.put_json("drawings.json", find_out()))
        stored = found.artifact.json("drawings.json")
    form = stored.pop("form")
    return Drawings(Form(**form | {"centre": tuple(form["centre"])}), **stored)


def tried(workspace: Workspace, lineage: Lineage, metric: Metric) -> Drawings:
    """Measure training sketches, and search with some of them, jittered.

    Only training rows take part. As the model knows these sketches, more of them are right than
    of new ones; both ways to search gain by that alike.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    lineage : Lineage
        The model.
    metric : {'cosine', 'l2', 'intersection'}
        What its codes are compared by.
    """
    store = workspace.store
    pictures = open_pictures(store, lineage.table)
    split = open_split(store, lineage.split)
    features = {m: store.open(reference) for m, reference in lineage.features.items()}
    usable = {m: usable_rows(artifact) for m, artifact in features.items()}
    sketches, images = (
        rows[usable[m][rows]]
        for m, rows in (("sketch", split.train_sketches), ("image", split.train_images))
    )
    rng = np.random.default_rng(0)
    # A method that does not learn has no training rows: any sketch does.
    sketches = rng.permutation(sketches if len(sketches) else np.flatnonzero(usable["sketch"]))
    images = rng.permutation(images if len(images) else np.flatnonzero(usable["image"]))
    images = np.sort(images[:N_PICTURES])
    spec = extractor_of(features["sketch"])
    table, target = pictures.table, lineage.training.parameters["target"]
    at = table.rows("sketch")
    seen = {
        row: picture
        for row in sketches[:N_TRIED].tolist()
        for picture in readable(pictures.root, [table.paths[at[row]]], spec.longest_side)
    }
    form = form_of([*seen.values()][:N_MEASURED])
    drawn = [jittered(picture, form, rng) for picture in seen.values()]
    scores = np.zeros((2, len(drawn)))
    if drawn and len(images):
        method = open_method(store, lineage.training.reference)
        extractor = spec.make(str(store.root))
        gallery = method.encode_images(features["image"].rows("features", images))
        asked = targets(table, "sketch", target, np.array([*seen]))
        there = targets(table, "image", target, images)
        features_of = []
        started = time.monotonic()
        for done, drawing in enumerate(drawn, 1):
            features_of.append(extractor.transform(described(drawing, form)))
            seconds = time.monotonic() - started
            tell(
                Progress("drawings", "changed training sketches", done, len(drawn), False, seconds)
            )
        plain = np.stack([rows[0] for rows in features_of])
        with_form = np.stack([rows.mean(axis=0) for rows in features_of])
        for k, rows in enumerate((plain, with_form)):
            codes = method.encode_sketches(rows)
            found, _ = nearest(codes, gallery, len(images), metric=metric)
            is_right = there[found] == asked[:, None]
            ranks = np.where(is_right.any(axis=1), 1 + is_right.argmax(axis=1), np.inf)
            scores[k] = 1 / ranks
    n = len(drawn)
    if n < 2:
        return Drawings(form, n, 0.0, 0.0, 0.0)
    error = float(np.std(scores[1] - scores[0], ddof=1) / np.sqrt(n))
    return Drawings(form, n, *scores.mean(axis=1).tolist(), error)


def readable(root: Path, paths: list[str], longest_side: int) -> Iterator[Picture]:
    """Decode pictures; those that are gone or damaged meanwhile are passed over."""
    for path in paths:
        try:
            yield read_sample(root, path, longest_side=longest_side)
        except (PictureError, OSError):
            continue
