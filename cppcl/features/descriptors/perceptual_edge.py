"""HOG of the contours that perceptual grouping keeps, in a light form of PerceptualEdge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import MIB, Picture
from cppcl.features.contours.detection import (
    LONGEST_SIDE,
    ContourOptions,
    canny_edges,
    centred,
    contour_mask,
    resize_longest_side,
)
from cppcl.features.contours.perceptual_groups import salient_edges
from cppcl.features.descriptors.hog import DIMENSION, hog_layers, hog_of_square
from cppcl.features.layers import Layer, Seen
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.pictures.decoding import to_gray

SIGMA = 1.4
CANVAS = 256


@dataclass(frozen=True, kw_only=True)
class PerceptualEdgeLite(ContourOptions, StatelessExtractor):
    """HOG (1296 values) of a photograph's most salient groups of edges: PerceptualEdge-lite.

    Not PerceptualEdge of Qi and others, "Making better use of edges via perceptual grouping",
    CVPR 2015, and never to be reported as it: that learns the weights of its groupings from human
    annotations that are not available. In this form, affinities of segments are fixed (see
    `cppcl.features.contours.perceptual_groups.salient_edges`). What it shares is the way: edges,
    segments, groups by proximity, continuity and similarity, the salient ones drawn as a sketch,
    and HOG.

    Edges are those of Canny's detector at sigma 1.4 on a picture whose longer side is 200 pixels.
    With contours='strokes', a sketch is described as it is drawn, without grouping.

    Parameters
    ----------
    contours : str
        'canny', the default, groups the edges of a photograph; the path of a network, a
        TorchScript file (.pt) or an ONNX file (.onnx), groups the contours that it finds;
        'strokes' describes a sketch as it is drawn.
    """

    name: ClassVar[str] = "perceptual_edge_lite"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    libraries: ClassVar[int] = 64 * MIB

    contours: str = "canny"

    @property
    def dimension(self) -> int:
        """1296."""
        return DIMENSION

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Descriptors of n pictures, (n, 1296) float32."""
        return rows_of(pictures, self.dimension, self._describe)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show all edges, those of salient groups, and the orientations of cells."""
        sketch = self.sketch_of(picture)
        layers: list[Layer] = []
        if self.contours != "strokes":
            layers.append(
                Seen(f"edges ({self.contours})", centred(self._edges(picture)[0], CANVAS))
            )
            layers.append(Seen("edges of salient groups", sketch))
        return [*layers, *hog_layers(sketch.astype(np.float32), marks=True)]

    def sketch_of(self, picture: Picture) -> NDArray[np.bool_]:
        """Contours that are described, (256, 256) bool."""
        if self.contours == "strokes":
            return self.on_canvas(picture)
        return centred(salient_edges(*self._edges(picture)), CANVAS)

    def _edges(self, picture: Picture) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Edges of a photograph, and the gradient's magnitude."""
        gray = to_gray(resize_longest_side(picture, LONGEST_SIDE)).astype(np.float64)
        edges, gradient = canny_edges(gray, SIGMA)
        if self.contours != "canny":
            edges = contour_mask(picture, contours=self.contours, threshold=self.threshold)
        return edges, gradient

    def _describe(self, picture: Picture) -> NDArray[np.floating]:
        return hog_of_square(self.sketch_of(picture).astype(np.float32))
