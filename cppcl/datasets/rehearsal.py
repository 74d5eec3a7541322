"""Pictures to rehearse on: drawings and pictures of emoji, each warped at random.

They lie as those of the TU-Berlin Extension do, so that everything that will be done with it can
be done with them first.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cppcl.errors import InputError
from cppcl.pictures.decoding import decode_picture

SIDE = 128
"""Pixels of a side."""
JITTER = 0.12
"""How far a corner of the picture moves at most, as a share of the side."""
JPEG_QUALITY = 85


def spread(total: int, n_classes: int) -> list[int]:
    """Samples of each class: `total` in all, the first classes one more than the last."""
    least, more = divmod(total, n_classes)
    return [least + (number < more) for number in range(n_classes)]


def make_rehearsal_pictures(
    root: Path,
    emoji: Path,
    *,
    classes: Sequence[str],
    n_sketches: int,
    n_images: int,
    seed: int = 0,
    on_class: Callable[[int], None] | None = None,
) -> int:
    """Write ``sketches/<class>/<n>.png`` and ``images/<class>/<n>.jpg``; files that exist stay.

    A class is one emoji: its sketches are warps of the drawing, its images warps of the picture.
    Each file depends on the seed, its class's number and its own number alone.

    Parameters
    ----------
    root : Path
        Folder to write to.
    emoji : Path
        What `cppcl.datasets.emoji.Emoji.fetch` returned.
    classes : sequence of str
        Names of the classes.
    n_sketches, n_images : int
        Files in all.
    seed : int
        Of the warps.
    on_class : callable, optional
        Told how many classes are written.

    Returns
    -------
    int
        Files that were written, and not there before.

    Raises
    ------
    InputError
        There are more classes than emoji.
    """
    concepts = sorted(path.stem for path in (emoji / "sketches").glob("*.svg"))
    if len(classes) > len(concepts):
        raise InputError(f"{len(classes)} classes are more than the {len(concepts)} emoji")
    # Evenly from all, so that neighbours, which look alike, are apart.
    chosen = [concepts[k * len(concepts) // len(classes)] for k in range(len(classes))]
    n_written = 0
    for kind, (folder, suffix, total) in enumerate(
        (("sketches", "png", n_sketches), ("images", "jpg", n_images))
    ):
        counts = spread(total, len(classes))
        for number, (name, concept, n_samples) in enumerate(
            zip(classes, chosen, counts, strict=True)
        ):
            place = root / folder / name
            place.mkdir(parents=True, exist_ok=True)
            missing = [
                (sample, path)
                for sample in range(n_samples)
                if not (path := place / f"{sample:05}.{suffix}").exists()
            ]
            if missing:
                drawn = decode_picture(emoji / folder / f"{concept}.svg", longest_side=SIDE)
                for sample, path in missing:
                    rng = np.random.default_rng([seed, kind, number, sample])
                    _write(path, _encoded(warped(drawn, rng), suffix))
            n_written += len(missing)
            if on_class:
                on_class(kind * len(classes) + number + 1)
    return n_written


def warped(picture: NDArray[np.uint8], rng: np.random.Generator) -> Image.Image:
    """Picture turned a little and seen askew, on white.

    Parameters
    ----------
    picture : (height, width, 3) uint8
        What is warped.
    rng : Generator
        Of the angle and of where the corners go.
    """
    height, width = picture.shape[:2]
    # Corners of the part that is shown, in Pillow's order.
    corners = np.array([[0, 0], [0, 1], [1, 1], [1, 0]]) - 0.5
    angle = rng.uniform(-0.25, 0.25)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = corners @ turn + rng.uniform(-JITTER, JITTER, (4, 2)) + 0.5
    quadrilateral = (corners * [width, height]).ravel().tolist()
    return Image.fromarray(picture).transform(
        (width, height),
        Image.Transform.QUAD,
        quadrilateral,
        resample=Image.Resampling.BILINEAR,
        fillcolor=(255, 255, 255),
    )


def _encoded(picture: Image.Image, suffix: str) -> bytes:
    data = io.BytesIO()
    if suffix == "png":
        picture.convert("L").save(data, "PNG", compress_level=1)
    else:
        picture.save(data, "JPEG", quality=JPEG_QUALITY)
    return data.getvalue()


def _write(path: Path, data: bytes) -> None:
    """Write a file in one step: one that exists is whole."""
    temporary = path.with_suffix(f".tmp{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
