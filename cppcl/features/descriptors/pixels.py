"""Grey values or colours of a cropped and resized picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import MIB, Picture
from cppcl.features.layers import Layer, Numbers, Seen
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.pictures.decoding import to_gray
from cppcl.validation import check_choice


@dataclass(frozen=True, kw_only=True)
class Pixels(StatelessExtractor):
    """Pixel values in [0, 1], row by row, for pictures that are aligned with one another.

    Parameters
    ----------
    crop : (left, top, right, bottom) or None
        Box in pixels of the decoded picture, right and bottom excluded; the whole picture if
        None. The chain reduces pictures to ``longest_side`` before. For the aligned 200 x 250
        faces of the CUHK Face Sketch database, (30, 50, 170, 225) leaves the hair and the
        background out.
    size : (width, height)
        What the box is resized to, with antialiasing. The box is stretched to it.
    normalisation : {'none', 'zero_mean_unit_variance'}
        'zero_mean_unit_variance' shifts and scales the values of each picture to mean 0 and
        variance 1; a picture of one value becomes zeros.
    color : {'gray', 'rgb'}
        One value a pixel, or three.
    """

    name: ClassVar[str] = "pixels"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    libraries: ClassVar[int] = 64 * MIB

    crop: tuple[int, int, int, int] | None = None
    size: tuple[int, int] = (32, 40)
    normalisation: Literal["none", "zero_mean_unit_variance"] = "none"
    color: Literal["gray", "rgb"] = "gray"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _integers("size", self.size, ("width", "height"), 1))
        if self.crop is not None:
            crop = _integers("crop", self.crop, ("left", "top", "right", "bottom"), 0)
            if crop[0] >= crop[2] or crop[1] >= crop[3]:
                raise InputError(
                    f"option crop={crop}: right must exceed left and bottom must exceed top"
                )
            object.__setattr__(self, "crop", crop)
        check_choice(
            "option normalisation", self.normalisation, ("none", "zero_mean_unit_variance")
        )
        check_choice("option color", self.color, ("gray", "rgb"))

    @property
    def dimension(self) -> int:
        """Width times height, times three for colours."""
        return self.size[0] * self.size[1] * (3 if self.color == "rgb" else 1)

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Values of n pictures, (n, dimension) float32.

        Raises
        ------
        InputError
            The crop reaches outside a picture.
        """
        return rows_of(pictures, self.dimension, self._describe)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the values as a picture, stretched from the least to the largest."""
        (vector,) = self.transform([picture])
        width, height = self.size
        values = vector - vector.min()
        values = values / (values.max() or 1)
        shape = (height, width, 3) if self.color == "rgb" else (height, width)
        return [
            Seen(f"values, {width} x {height}", values.reshape(shape)),
            Numbers("vector", vector.reshape(height, -1), "row", "column"),
        ]

    def _describe(self, picture: Picture) -> NDArray[np.float32]:
        height, width = picture.shape[:2]
        left, top, right, bottom = self.crop or (0, 0, width, height)
        if right > width or bottom > height:
            raise InputError(
                f"option crop={self.crop} reaches outside a picture of width {width} and height "
                f"{height}; the crop is in pixels of the decoded picture, which the chain has "
                "reduced to longest_side"
            )
        box = picture[top:bottom, left:right]
        channels = (
            [to_gray(box)]
            if self.color == "gray"
            else [box[..., channel].astype(np.float32) / np.float32(255) for channel in range(3)]
        )
        values = np.stack([resize(channel, self.size) for channel in channels], axis=-1).ravel()
        if self.normalisation == "zero_mean_unit_variance":
            values = values - values.mean()
            deviation = values.std()
            values = values / deviation if deviation > 1e-6 else np.zeros_like(values)
        return values


def resize(channel: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Resize one float channel to (width, height) with an antialiasing triangle filter."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(channel, dtype=np.float32))
    return np.asarray(image.resize(size, Image.Resampling.BILINEAR))


def _integers(option: str, value: Any, names: tuple[str, ...], minimum: int) -> tuple[int, ...]:
    """Return a list or tuple of integers as a tuple, one for each of `names`.

    Raises
    ------
    InputError
        `value` is anything else, or an entry is smaller than `minimum`.
    """
    if (
        not isinstance(value, list | tuple)
        or len(value) != len(names)
        or not all(isinstance(item, int) and not isinstance(item, bool) for item in value)
        or min(value) < minimum
    ):
        raise InputError(
            f"option {option}={value!r} must be {len(names)} integers ({', '.join(names)}), "
            f"each at least {minimum}"
        )
    return tuple(value)
