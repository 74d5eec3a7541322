"""Partial least squares: directions of largest covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import LinearBaseline, check_at_least, check_one_of
from cppcl.baselines.links import ClassWeight, Links
from cppcl.baselines.moments import cross_moment, linked_samples, positive_signs
from cppcl.errors import InputError
from cppcl.preparation import Floating


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

    def __init__(
        self,
        *,
        n_directions: int = 70,
        class_weight: ClassWeight = "samples",
        center: bool = True,
        unit_norm: bool = True,
        n_components: int | None = None,
        whiten: bool = False,
        whitening_ridge: float = 1e-3,
    ) -> None:
        check_at_least("n_directions", n_directions, 1)
        check_one_of("class_weight", class_weight, ClassWeight)
        self.n_directions = n_directions
        self.class_weight = class_weight
        super().__init__(
            center=center,
            unit_norm=unit_norm,
            n_components=n_components,
            whiten=whiten,
            whitening_ridge=whitening_ridge,
        )

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
