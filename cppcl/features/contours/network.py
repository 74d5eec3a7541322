"""Contour maps by a network that the user brings, a TorchScript or an ONNX file."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features.base import Picture
from cppcl.features.networks.onnx_runtime import last_output

Detector = Callable[[NDArray[np.float32]], NDArray[Any]]


def contour_map(picture: Picture, path: Path) -> NDArray[np.float32]:
    """Probability of a contour at every pixel.

    Parameters
    ----------
    picture : (h, w, 3) uint8 array
        sRGB.
    path : Path
        A TorchScript file (``.pt``, written by ``torch.jit.save``) or an ONNX file (``.onnx``) of
        a network that takes a (1, 3, h, w) float32 tensor of RGB values in [0, 1] and returns
        h x w values in [0, 1]: shifting, scaling, padding and the sigmoid are part of the network.
        Of several outputs the last counts, which is the fused one of nested edge detectors.

    Returns
    -------
    (h, w) float32 array

    Raises
    ------
    DataUnavailableError
        There is no such file.
    InputError
        The file cannot be read, fails on the picture, or returns anything else.
    """
    path = path.expanduser()
    _require(path)
    state = path.stat()
    detect = _loaded(path, (state.st_mtime_ns, state.st_size))
    values = np.ascontiguousarray(picture.transpose(2, 0, 1)[None], dtype=np.float32)
    values /= 255
    try:
        output = detect(values)
    except Exception as error:  # whatever the network raises
        raise InputError(
            f"option contours={str(path)!r} fails on a tensor of shape {values.shape}: "
            f"{_in_short(error)}"
        ) from error
    while output.ndim > 2 and output.shape[0] == 1:
        output = output[0]
    if output.shape != picture.shape[:2] or not (output >= 0).all() or not (output <= 1).all():
        span = f" spanning {output.min():g} to {output.max():g}" if output.size else ""
        raise InputError(
            f"option contours={str(path)!r} returned an array of shape {output.shape}{span} for a "
            f"picture of {picture.shape[:2]}; it must return one value in [0, 1] for every pixel"
        )
    return output.astype(np.float32)


def network_identity(path: Path) -> str:
    """Name a network by the content of its file: 'sha256:' and the digest."""
    path = path.expanduser()
    _require(path)
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _require(path: Path) -> None:
    if not path.is_file():
        raise DataUnavailableError(
            f"option contours={str(path)!r}: no such file; it must be a TorchScript (.pt) or an "
            "ONNX (.onnx) file, or use contours='canny', which needs none"
        )


@lru_cache(maxsize=2)
def _loaded(path: Path, state: tuple[int, int]) -> Detector:
    """Load a file; `state` changes when the file does."""
    try:
        return _torchscript(path) if path.suffix == ".pt" else last_output(str(path))
    except Exception as error:  # both readers raise almost anything on a damaged file
        raise InputError(
            f"option contours={str(path)!r} cannot be read as a network: {_in_short(error)}"
        ) from error


def _torchscript(path: Path) -> Detector:
    import torch

    with warnings.catch_warnings():
        # torch calls its own format deprecated, which those who have such a file cannot help.
        warnings.filterwarnings("ignore", "`torch.jit", FutureWarning)
        module: Any = torch.jit.load(path, map_location="cpu").eval()  # type: ignore[no-untyped-call]

    def detect(values: NDArray[np.float32]) -> NDArray[Any]:
        with torch.inference_mode():
            output = module(torch.from_numpy(values))
        while isinstance(output, list | tuple):
            output = output[-1]
        return np.asarray(output.float())

    return detect


def _in_short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
