"""Pseudo-sketches: contours of a photograph drawn as the lines of a sketch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.features.contours.detection import CONTOURS, check_contours, contour_mask
from cppcl.validation import check_number

VERSION = 1
"""Raised whenever the pictures change."""
LINE = 3
"""Width of the lines in pixels, of a picture whose longer side has 200."""


@dataclass(frozen=True, kw_only=True)
class PseudoSketches:
    """How contours of images become sketches.

    Parameters
    ----------
    contours : str
        'canny', 'colour_canny', or the path of a network that maps a picture to contours, see
        `cppcl.features.contours.detection`.
    threshold : float
        Value of the network's map, in (0, 1], from which on a pixel is a contour; else unused.
    """

    contours: str = "canny"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_contours(self.contours, CONTOURS[1:])
        check_number("threshold", self.threshold, above=0)
        if self.threshold > 1:
            raise InputError(f"threshold={self.threshold} must be at most 1")

    def parameters(self) -> dict[str, Any]:
        """What decides the pictures; a network is named by its content."""
        if self.contours in CONTOURS:
            return {"contours": self.contours}
        from cppcl.features.contours.network import network_identity

        return {
            "contours": network_identity(Path(self.contours)),
            "threshold": self.threshold,
        }

    def draw(self, picture: Picture) -> Picture:
        """Draw the contours of an image in black on white, the longer side 200 pixels.

        Parameters
        ----------
        picture : (H, W, 3) uint8 array
            A photograph.

        Returns
        -------
        (h, w, 3) uint8 array
            White where nothing stands out.
        """
        from scipy.ndimage import binary_dilation

        mask = contour_mask(picture, contours=self.contours, threshold=self.threshold)
        lines = binary_dilation(mask, np.ones((LINE, LINE), dtype=bool))
        return np.repeat(np.where(lines, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
