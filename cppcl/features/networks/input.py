"""From pictures to the input of a network: framing, scaling, and batches for the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from os import cpu_count
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.stateless import check_picture
from cppcl.pictures.decoding import pad_to_square

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image, Resampling

Framing = Literal["pad", "crop"]


@dataclass(frozen=True)
class Preprocessing:
    """What a network expects of its input.

    Parameters
    ----------
    size : int
        Side of the square input, pixels.
    mean, std : tuple of float
        Of red, green and blue, for values in [0, 1].
    interpolation : str
        Name of the resampling filter: 'bilinear' or 'bicubic'.
    resize : int or None
        Side, in pixels, that a picture is brought to before its middle is cut out; `size` if
        None. Used by the framing 'crop' alone.
    stretch : bool
        Whether 'crop' brings both sides to `resize`, or only the shorter one.
    channels : {'rgb', 'bgr'}
        Order of the channels in the input.
    """

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str
    resize: int | None = None
    stretch: bool = False
    channels: Literal["rgb", "bgr"] = "rgb"


def prepare(
    picture: Picture, preprocessing: Preprocessing, framing: Framing = "pad"
) -> NDArray[np.float32]:
    """Frame, resize and normalise a picture.

    Parameters
    ----------
    picture : (height, width, 3) uint8 array
        sRGB.
    preprocessing : Preprocessing
        What the network expects.
    framing : {'pad', 'crop'}
        'pad': padded to a square on white, then resized. 'crop': the shorter side is brought to
        `preprocessing.resize` and the middle is cut out, as when the published weights were
        tested.

    Returns
    -------
    (3, size, size) float32 array
        (x / 255 - mean) / std, channel by channel.
    """
    from PIL import Image

    resampling = Image.Resampling[preprocessing.interpolation.upper()]
    size = preprocessing.size
    if framing == "pad":
        image = Image.fromarray(np.ascontiguousarray(pad_to_square(picture)))
        image = image.resize((size, size), resampling)
    else:
        image = _middle(Image.fromarray(np.ascontiguousarray(picture)), preprocessing, resampling)
    pixels = np.asarray(image)
    values = np.empty((3, size, size), dtype=np.float32)
    order = (0, 1, 2) if preprocessing.channels == "rgb" else (2, 1, 0)
    tables = _normalised(preprocessing.mean, preprocessing.std)
    for channel, values_of_channel in zip(order, values, strict=True):
        np.take(tables[channel], pixels[..., channel], out=values_of_channel, mode="clip")
    return values


@lru_cache
def _normalised(mean: tuple[float, ...], std: tuple[float, ...]) -> NDArray[np.float32]:
    """What each of 256 values becomes in each channel, (3, 256): faster than to compute it."""
    values = np.arange(256, dtype=np.float32) / np.float32(255)
    shift, scale = (np.array(given, dtype=np.float32)[:, None] for given in (mean, std))
    return (values - shift) / scale


def _middle(image: Image, preprocessing: Preprocessing, resampling: Resampling) -> Image:
    """Resize, and cut out the middle, rounding as torchvision does."""
    size, resize = preprocessing.size, preprocessing.resize or preprocessing.size
    width, height = image.size
    shorter = min(width, height)
    if preprocessing.stretch:
        width = height = resize
    else:
        width, height = (int(resize * side / shorter) for side in (width, height))
    left, top = round((width - size) / 2), round((height - size) / 2)
    return image.resize((width, height), resampling).crop((left, top, left + size, top + size))


def batches(
    pictures: Sequence[Picture],
    preprocessing: Preprocessing,
    framing: Framing,
    *,
    size: int,
    pinned: bool,
) -> Iterator[tuple[slice, torch.Tensor]]:
    """Inputs of a network, and the rows that each is of.

    Every batch is filled up with zeros, so that the network always sees the same shapes.

    Parameters
    ----------
    pictures : sequence of (H, W, 3) uint8 arrays
        Checked one by one.
    preprocessing, framing
        As in `prepare`.
    size : int
        Pictures in a batch.
    pinned : bool
        True if batches lie in page-locked memory, from which a GPU copies while the CPU goes on;
        pictures are then prepared by several threads.

    Yields
    ------
    rows : slice
        Which pictures.
    batch : (size, 3, side, side) float32 tensor
        Valid until the batch after the next is asked for: two buffers take turns, so that one can
        be filled while the other is still being copied.
    """
    import torch

    shape = (size, 3, preprocessing.size, preprocessing.size)
    buffers = [torch.zeros(shape, pin_memory=pinned) for _ in range(2 if pinned else 1)]
    with ExitStack() as stack:
        each = map
        if pinned:
            threads = ThreadPoolExecutor(min(size, cpu_count() or 1))
            each = stack.enter_context(threads).map  # type: ignore[assignment]
        for number, start in enumerate(range(0, len(pictures), size)):
            batch = buffers[number % len(buffers)]
            chosen = pictures[start : start + size]
            for row, picture in enumerate(chosen):
                check_picture(picture, start + row)
            # Several threads help, since Pillow lets go of Python's lock while it resizes.
            for row, values in enumerate(
                each(lambda p: prepare(p, preprocessing, framing), chosen)
            ):
                batch[row] = torch.from_numpy(values)
            batch[len(chosen) :].zero_()
            yield slice(start, start + len(chosen)), batch
