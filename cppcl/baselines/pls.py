"""Partial least squares: directions of largest covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import LinearBaseline
from cppcl.baselines.links import ClassWeight, Links
from cppcl.baselines.moments import cross_moment, linked_samples, positive_signs
from cppcl.errors import InputError
from cppcl.learning.preparation import Floating
from cppcl.validation import check_choice, check_number


@dataclass(kw_only=True, eq=False, repr=False)
class PLS(LinearBaseline):
    """Partial least squares: orthonormal bases in which linked samples have largest covariance.

    The bases are the singular vectors of the cross-covariance of linked sketches and images.

    Parameters
    ----------
    n_directions : int
        PLS bases, the length of the codes; at most the number of directions that covary.

    Raises
    ------
    InputError
        By `fit`, if the linked samples of a modality do not vary, or nothing covaries.

    Notes
    -----
    Sharma, Jacobs, "Bypassing synthesis: PLS for face recognition with pose, low-resolution and
    sketch", CVPR 2011 (70 bases); in the form without deflation, `sklearn.cross_decomposition.
    PLSSVD`, which also takes classes.
    """

    n_directions: int = 70
    class_weight: ClassWeight = "samples"

    def __post_init__(self) -> None:
        check_number("n_directions", self.n_directions, least=1, whole=True)
        check_choice("class_weight", self.class_weight, ClassWeight)
        super().__post_init__()

    def _maps(self, sketches: Floating, images: Floating, links: Links) -> dict[str, NDArray[Any]]:
        of_sketches, of_images = linked_samples(sketches, images, links)
        # The cross-covariance vanishes outside the principal axes, which are fewer than columns
        # where samples are.
        left, covariances, right = np.linalg.svd(
            cross_moment(links, *(m.deviations @ m.axes for m in (of_sketches, of_images))),
            full_matrices=False,
        )
        largest = float(np.sqrt(of_sketches.variances[0] * of_images.variances[0]))
        d = min(self.n_directions, int((covariances > 1e-9 * largest).sum()))
        if d == 0:
            raise InputError("no direction of the linked sketches and images covaries")
        sketch_projection = of_sketches.axes @ left[:, :d]
        signs = positive_signs(sketch_projection)
        return {
            "sketch_offset": of_sketches.offset,
            "sketch_projection": sketch_projection * signs,
            "image_offset": of_images.offset,
            "image_projection": of_images.axes @ right[:d].T * signs,
            "covariances": covariances[:d],
        }
