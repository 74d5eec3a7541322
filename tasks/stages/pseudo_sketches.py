"""Draw the contours of images, and store a sample table in which they are sketches."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cppcl.datasets.files import file_sha256, made_whole
from cppcl.datasets.pseudo import BASE, FOLDER, pseudo_path, with_pseudo_sketches
from cppcl.errors import InputError, PictureError
from cppcl.features.contours.pseudo_sketch import VERSION, PseudoSketches
from cppcl.pictures.decoding import is_of_one_colour, read_sample
from cppcl.validation import counted
from storage import Reference
from tasks.progress import Progress, tell
from tasks.samples import Pictures, open_pictures
from tasks.stages.contract import Mode, StageResult, stage_task
from tasks.stages.fetch import publish_table
from tasks.workspace import Workspace


def add_pseudo_sketches(
    *,
    workspace: Workspace,
    table: Reference,
    options: dict[str, Any],
    mode: Mode = "reuse",
) -> StageResult:
    """Publish a sample table with the contours of every image as a further sketch.

    Parameters
    ----------
    workspace : Workspace
        Where pictures and the table go.
    table : Reference
        A `fetch` artifact.
    options : dict
        Arguments of `cppcl.features.contours.pseudo_sketch.PseudoSketches`.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored table.
    """
    pictures = open_pictures(workspace.store, table)
    drawing = PseudoSketches(**options)
    parameters = {"version": VERSION, **drawing.parameters()}
    root = _drawn(pictures, drawing, parameters, workspace.data)
    contours = {
        row: file_sha256(path)
        for row in range(len(pictures.table.rows("image")))
        if (path := root / pseudo_path(row)).is_file()
    }
    n = len(pictures.table.rows("image"))
    without = n - len(contours)
    findings = [f"{without} of {counted(n, 'image')} have no contours."] if without else []
    return publish_table(
        workspace.store,
        with_pseudo_sketches(pictures.table, contours),
        root=root,
        version=str(VERSION),
        parameters={"dataset": "pseudo-sketches", **parameters},
        licence=pictures.licence,
        findings=[*pictures.findings, *findings],
        mode=mode,
    )


def _drawn(
    pictures: Pictures, drawing: PseudoSketches, parameters: dict[str, Any], directory: Path
) -> Path:
    """Folder with the contours of all images, and a link to the pictures themselves."""
    root, table = pictures.root.absolute(), pictures.table
    asked = json.dumps([str(root), table.digest(), parameters], sort_keys=True)
    digest = hashlib.sha256(asked.encode()).hexdigest()[:16]
    target = directory.absolute() / f"pseudo-sketches-{digest}"
    if target.is_dir():
        return target
    from PIL import Image

    paths = table.column("paths", "image")
    if any(".npy#" in path for path in paths):
        raise InputError("pseudo_sketches: the samples are features, not pictures; leave it out")
    with made_whole(target) as partial:
        (partial / BASE).symlink_to(root, target_is_directory=True)
        (partial / FOLDER).mkdir()
        for row, path in enumerate(paths):
            try:
                drawn = drawing.draw(read_sample(root, path))
            except PictureError:
                continue  # said by what extracts features of it
            if not is_of_one_colour(drawn):
                Image.fromarray(drawn[..., 0]).save(partial / pseudo_path(row))
            if row % 50 == 49:
                tell(Progress("fetch", "contours", row + 1, len(paths)))
    return target


draw_pseudo_sketches = stage_task(add_pseudo_sketches)
