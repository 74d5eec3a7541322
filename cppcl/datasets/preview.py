"""A contact sheet: some sketches and pictures of every class of a sample table."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError, PictureError
from cppcl.modality import MODALITIES, Modality
from cppcl.pictures.decoding import decode_picture

if TYPE_CHECKING:
    from PIL import Image

_PLURAL: dict[Modality, str] = {"sketch": "sketches", "image": "images"}
_SIDE, _GAP, _LABEL, _NAME = 96, 6, 18, 170


def contact_sheet(
    table: SampleTable, root: Path, *, per_class: int = 4, n_classes: int = 40
) -> bytes:
    """PNG with a line a class: its name, sketches, then images; always the first by id.

    Parameters
    ----------
    table : SampleTable
        The samples.
    root : Path
        Folder that its paths are relative to.
    per_class : int
        Most sketches, and most images, of a class.
    n_classes : int
        Most classes; the first by name are shown.

    Returns
    -------
    bytes
        A PNG; a file that is no picture is a grey square.
    """
    from PIL import Image, ImageDraw

    if per_class < 1 or n_classes < 1:
        raise InputError(f"per_class={per_class} and n_classes={n_classes} must be at least 1")
    labels = sorted(set(table.labels))
    shown = labels[:n_classes]
    chosen = {m: _first(table, m, shown, per_class) for m in MODALITIES}
    step = _SIDE + _GAP
    width = _NAME + 2 * per_class * step + 2 * _GAP
    sheet = Image.new("RGB", (width, _LABEL + len(shown) * step + _LABEL), "white")
    pen = ImageDraw.Draw(sheet)
    for side, modality in enumerate(MODALITIES):
        pen.text((_NAME + side * (per_class * step + _GAP), 3), _PLURAL[modality], fill="black")
    for line, label in enumerate(shown):
        top = _LABEL + line * step
        pen.text((_GAP, top + _SIDE // 2 - 6), _plain(label), fill="black")
        for side, modality in enumerate(MODALITIES):
            left = _NAME + side * (per_class * step + _GAP)
            for column, path in enumerate(chosen[modality][label]):
                sheet.paste(_thumbnail(root / path), (left + column * step, top))
    counts = ", ".join(f"{len(table.rows(m)):,} {_PLURAL[m]}" for m in MODALITIES)
    text = f"{len(shown)} of {len(labels)} classes; {counts}"
    pen.text((_GAP, sheet.height - _LABEL + 3), text, fill="black")
    buffer = io.BytesIO()
    sheet.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def _first(
    table: SampleTable, modality: Modality, labels: Sequence[str], n: int
) -> dict[str, list[str]]:
    """Paths of the first samples of each class by id."""
    paths: dict[str, list[str]] = {label: [] for label in labels}
    rows = zip(
        table.column("ids", modality),
        table.column("labels", modality),
        table.column("paths", modality),
        strict=True,
    )
    for _, label, path in sorted(rows):
        if label in paths and len(paths[label]) < n:
            paths[label].append(path)
    return paths


def _thumbnail(path: Path) -> Image.Image:
    from PIL import Image, ImageOps

    try:
        picture = Image.fromarray(decode_picture(path, longest_side=2 * _SIDE))
    except PictureError:
        return Image.new("RGB", (_SIDE, _SIDE), "lightgrey")
    return ImageOps.pad(picture, (_SIDE, _SIDE), color="white")


def _plain(label: str) -> str:
    """Label in the letters that the built-in font has, shortened to its column."""
    text = label.encode("latin-1", "replace").decode("latin-1")
    return text if len(text) <= 26 else f"{text[:25]}."
