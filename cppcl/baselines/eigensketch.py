"""Eigensketch transform: a photo becomes a sketch, by the sketches of similar photos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import LinearBaseline
from cppcl.baselines.links import ClassWeight, Links
from cppcl.baselines.moments import cross_moment, linked_samples
from cppcl.learning.preparation import Floating
from cppcl.validation import check_choice, check_number


@dataclass(kw_only=True, eq=False, repr=False)
class Eigensketch(LinearBaseline):
    r"""Images are turned into sketches, and compared by their coefficients of eigensketches.

    In the span of its principal axes (eigenphotos) an image is the mean plus a weighted sum of
    training images. The same sum of their sketches is its pseudo-sketch: of the sketch that is
    linked with each training image, or of the links' mean where there are several. Codes are the
    coefficients of (pseudo-)sketches on the sketches' principal axes (eigensketches).

    Parameters
    ----------
    n_directions : int
        Eigenphotos and eigensketches that are kept; the number of either is at most the rank of
        the training samples. The latter is the length of the codes.
    ridge : float
        Shrinks the weights: added to the variance along each eigenphoto, relative to the largest;
        0 is the published form.

    Raises
    ------
    InputError
        By `fit`, if the linked samples of a modality do not vary.

    Notes
    -----
    Tang, Wang, "Face sketch recognition", IEEE Trans. Circuits and Systems for Video Technology
    2004; there on whole faces as well as on shape and texture apart, of which this is the former.
    """

    n_directions: int = 80
    ridge: float = 0.0
    class_weight: ClassWeight = "samples"

    def __post_init__(self) -> None:
        check_number("n_directions", self.n_directions, least=1, whole=True)
        check_number("ridge", self.ridge, least=0)
        check_choice("class_weight", self.class_weight, ClassWeight)
        super().__post_init__()

    def _maps(self, sketches: Floating, images: Floating, links: Links) -> dict[str, NDArray[Any]]:
        of_sketches, of_images = linked_samples(sketches, images, links)
        eigensketches = of_sketches.axes[:, : self.n_directions]
        eigenphotos = of_images.axes[:, : self.n_directions]
        variances = of_images.variances[: self.n_directions]
        # Weights are y^T E diag(1 / n variance) (Y E)^T for a photo y and training photos Y;
        # times the sketches they become a cross-moment.
        transform = cross_moment(
            links, of_sketches.deviations @ eigensketches, of_images.deviations @ eigenphotos
        ) / (variances + self.ridge * variances[0])
        return {
            "sketch_offset": of_sketches.offset,
            "sketch_projection": eigensketches,
            "image_offset": of_images.offset,
            "image_projection": eigenphotos @ np.ascontiguousarray(transform.T),
        }
