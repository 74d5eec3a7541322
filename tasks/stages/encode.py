"""Encode every picture of both modalities with a trained method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import CppclError
from storage import Recipe, Reference, Writer
from tasks.progress import logging_convergence
from tasks.samples import usable_rows
from tasks.stages.contract import Mode, StageResult, check_finite, produce, stage_task
from tasks.stages.train import open_method
from tasks.workspace import Workspace

VERSION = "1"
ROWS_AT_ONCE = 4096


def encode_features(
    *,
    workspace: Workspace,
    model: Reference,
    sketch_features: Reference | None,
    image_features: Reference | None,
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish codes, one row a sample; rows of pictures that could not be used are zero.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    model : Reference
        A `train` artifact.
    sketch_features, image_features : Reference or None
        `extract` artifacts; None leaves a modality out, as in a gallery of pictures only.
    label : str
        Which piece of the stage this is, for progress.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored artifact.
    """
    store = workspace.store
    features = {"sketch": sketch_features, "image": image_features}
    inputs = {"model": model} | {
        f"{modality}_features": reference
        for modality, reference in features.items()
        if reference is not None
    }
    recipe = Recipe("encode", VERSION, {}, inputs)

    def create(writer: Writer) -> None:
        method = open_method(store, model)
        for modality, reference in features.items():
            if reference is None:
                continue
            artifact = store.open(reference)
            rows = np.flatnonzero(usable_rows(artifact))
            encode = method.encode_sketches if modality == "sketch" else method.encode_images
            codes: NDArray[np.floating] | None = None
            for start in range(0, len(rows), ROWS_AT_ONCE):
                part = rows[start : start + ROWS_AT_ONCE]
                with logging_convergence(label or "codes"):
                    values = encode(artifact.rows("features", part))
                check_codes(values, len(part), f"{label or 'codes'}: {modality} codes")
                if codes is None:
                    codes = np.zeros((artifact.shape("ok")[0], values.shape[1]), values.dtype)
                codes[part] = values
            if codes is None:
                codes = np.zeros((artifact.shape("ok")[0], 0), np.float32)
            writer.put_array(f"{modality}_codes", codes, rows_per_block=ROWS_AT_ONCE)

    return produce(store, recipe, create, mode=mode, label=label or "codes")


def check_codes(codes: object, n: int, what: str) -> None:
    """Raise `CppclError` for what is not a matrix of n rows of finite floating-point numbers."""
    if not isinstance(codes, np.ndarray) or codes.ndim != 2 or codes.shape[0] != n:
        found = codes.shape if isinstance(codes, np.ndarray) else type(codes).__name__
        raise CppclError(f"{what} are {found}, not a matrix of {n} rows; the method is at fault")
    if not np.issubdtype(codes.dtype, np.floating):
        raise CppclError(f"{what} are {codes.dtype}, not floating point; the method is at fault")
    check_finite(codes, what)


encode = stage_task(encode_features)
