"""Colours of pictures that say which they are, converted to sRGB."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image

UNSEEN = 2
"""Difference of a channel, of 255, up to which a profile is sRGB: its pixels stay as they are."""

_SPACES = {"RGB ": "RGB", "GRAY": "L", "CMYK": "CMYK"}
_GRID = 9
_USUAL_GAMMA = 1 / 2.2
# xy of white, red, green and blue of sRGB, as of PNG's cHRM.
_SRGB = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)


def in_srgb(image: Image.Image, info: dict[Any, Any]) -> Image.Image:
    """Convert a picture whose file has a colour profile, or says its gamma.

    A profile of another kind than the picture, or a damaged one, is passed over, as browsers do.

    Parameters
    ----------
    image : Image
        RGB, L or CMYK.
    info : dict
        What Pillow read beside its pixels: ``icc_profile``, or ``gamma`` and ``chromaticity``
        of PNG, which ``srgb`` overrides.

    Returns
    -------
    Image
        RGB where it was converted, the picture itself elsewhere.
    """
    if profile := info.get("icc_profile"):
        transform = _transform(profile, image.mode)
        return image if transform is None else transform.apply(image)
    gamma = info.get("gamma")
    if not gamma or "srgb" in info or image.mode == "CMYK":
        return image
    return _of_gamma(image, float(gamma), tuple(info.get("chromaticity") or _SRGB))


@lru_cache(maxsize=16)
def _transform(profile: bytes, mode: str) -> Any:
    """Transform of littlecms from a profile to sRGB; None where it is none, or changes nothing."""
    from PIL import Image, ImageCms

    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if _SPACES.get(source.profile.xcolor_space) != mode:
            return None
        transform = ImageCms.buildTransform(
            source,
            ImageCms.createProfile("sRGB"),
            mode,
            "RGB",
            renderingIntent=ImageCms.Intent.PERCEPTUAL,
        )
        if mode == "CMYK":
            return transform
        levels = np.linspace(0, 255, _GRID).astype(np.uint8)
        colours = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(1, -1, 3)
        grid = Image.fromarray(colours).convert(mode)
        plain = np.asarray(grid.convert("RGB"), np.int16)
        changed = np.asarray(transform.apply(grid), np.int16) - plain
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None
    return transform if np.abs(changed).max() > UNSEEN else None


def _of_gamma(image: Image.Image, gamma: float, chromaticity: tuple[float, ...]) -> Image.Image:
    """Picture whose linear light is its values to the power of 1 / gamma."""
    from PIL import Image

    usual = abs(gamma - _USUAL_GAMMA) < 0.01
    if usual or not 0.01 < gamma < 100:
        return image
    light = (np.arange(256) / 255) ** (1 / gamma)
    if image.mode == "L" or np.allclose(chromaticity, _SRGB, atol=1e-3):
        table = np.rint(255 * _encoded(light)).astype(np.uint8).tolist()
        return image.point(table * len(image.getbands())).convert("RGB")
    try:
        to_srgb = np.linalg.inv(_to_xyz(_SRGB)) @ _to_xyz(chromaticity)
    except np.linalg.LinAlgError:
        return image
    linear = light.astype(np.float32)[np.asarray(image)] @ to_srgb.T.astype(np.float32)
    return Image.fromarray(np.rint(255 * _encoded(linear)).astype(np.uint8))


def _to_xyz(chromaticity: tuple[float, ...]) -> NDArray[np.float64]:
    """Matrix from linear RGB of these primaries and white to XYZ."""
    pairs = np.array(chromaticity, np.float64).reshape(4, 2)
    white, *primaries = np.column_stack([pairs, 1 - pairs.sum(axis=1)])
    columns = np.stack(primaries, axis=1)
    return columns * np.linalg.solve(columns, white / white[1])


def _encoded(light: NDArray[Any]) -> NDArray[Any]:
    """Transfer function of sRGB, of light clipped to [0, 1]."""
    light = np.clip(light, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
