"""Drawings and pictures of emoji, each warped at random, as many as a benchmark needs.

They lie as those of the TU-Berlin Extension do.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cppcl.pictures.decoding import decode_picture
from storage.files import write_atomically

SIDE = 128
"""Pixels of a side."""
JITTER = 0.12
"""How far a corner of the picture moves at most, as a share of the side."""
JPEG_QUALITY = 85


def spread(total: int, n_classes: int) -> list[int]:
    """Samples of each class: `total` in all, the first classes one more than the last."""
    least, more = divmod(total, n_classes)
    return [least + (number < more) for number in range(n_classes)]


def make_pictures(
    root: Path, emoji: Path, *, classes: Sequence[str], n_sketches: int, n_images: int
) -> None:
    """Write ``sketches/<class>/<n>.png`` and ``images/<class>/<n>.jpg``; files that exist stay.

    A class is one emoji: its sketches are warps of the drawing, its images warps of the picture.
    Each file depends on its class's number and its own number alone.

    Parameters
    ----------
    root : Path
        Folder to write to.
    emoji : Path
        What `cppcl.datasets.emoji.Emoji.fetch` returned.
    classes : sequence of str
        Names of the classes; at most as many as there are emoji.
    n_sketches, n_images : int
        Files in all.
    """
    concepts = sorted(path.stem for path in (emoji / "sketches").glob("*.svg"))
    # Evenly from all, so that neighbours, which look alike, are apart.
    chosen = [concepts[k * len(concepts) // len(classes)] for k in range(len(classes))]
    for kind, (folder, suffix, total) in enumerate(
        (("sketches", "png", n_sketches), ("images", "jpg", n_images))
    ):
        counts = spread(total, len(classes))
        for number, (name, concept) in enumerate(zip(classes, chosen, strict=True)):
            place = root / folder / name
            place.mkdir(parents=True, exist_ok=True)
            paths = [place / f"{sample:05}.{suffix}" for sample in range(counts[number])]
            missing = [(sample, p) for sample, p in enumerate(paths) if not p.exists()]
            if not missing:
                continue
            drawn = decode_picture(emoji / folder / f"{concept}.svg", longest_side=SIDE)
            for sample, path in missing:
                rng = np.random.default_rng([0, kind, number, sample])
                write_atomically(path, encoded(warped(drawn, rng), suffix))


def warped(picture: NDArray[np.uint8], rng: np.random.Generator) -> Image.Image:
    """Picture (height, width, 3) turned a little and seen askew, on white."""
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


def encoded(picture: Image.Image, suffix: str) -> bytes:
    """Bytes of a file."""
    data = io.BytesIO()
    if suffix == "png":
        picture.convert("L").save(data, "PNG", compress_level=1)
    else:
        picture.save(data, "JPEG", quality=JPEG_QUALITY)
    return data.getvalue()
