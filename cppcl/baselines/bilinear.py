"""Bilinear model: content seen in the style of either modality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import LinearBaseline
from cppcl.baselines.links import ClassWeight, Links
from cppcl.errors import InputError
from cppcl.learning.preparation import Floating, principal_axes
from cppcl.modality import MODALITIES
from cppcl.validation import check_choice, check_number


@dataclass(kw_only=True, eq=False, repr=False)
class Bilinear(LinearBaseline):
    """Asymmetric bilinear model: a sample is its modality's matrix times its content.

    The content b of a pair, or of a class, is the same in both modalities: sketches are about
    ``A_s b``, images ``A_i b``, from their means. The matrices come from one singular value
    decomposition of the contents' mean sketches and images side by side, which leaves contents
    with unit variance. Codes are the contents that fit new samples by ridge least squares.

    Parameters
    ----------
    n_directions : int
        Length of content vectors and codes, at most the number of contents less one.
    ridge : float
        Weight of the squared norm of a new sample's content, relative to the largest eigenvalue
        of ``A^T A``: the variance of noise where contents are normal. 0 is the published form.

    Raises
    ------
    InputError
        By `fit`, if the contents are all alike.

    Notes
    -----
    Tenenbaum, Freeman, "Separating style and content with bilinear models", Neural Computation
    2000, section 3, with the modality as style; with 50 eigenvectors in Sharma, Jacobs, CVPR
    2011. Given links make every image a content, whose sketch is the mean of those linked.
    """

    n_directions: int = 50
    ridge: float = 0.01
    class_weight: ClassWeight = "samples"

    def __post_init__(self) -> None:
        check_number("n_directions", self.n_directions, least=1, whole=True)
        check_number("ridge", self.ridge, least=0)
        check_choice("class_weight", self.class_weight, ClassWeight)
        super().__post_init__()

    def _maps(self, sketches: Floating, images: Floating, links: Links) -> dict[str, NDArray[Any]]:
        weights, *means = links.content_means(sketches, images)
        weights = weights / weights.sum()
        offsets = [weights @ of_modality for of_modality in means]
        stacked = np.hstack([m - offset for m, offset in zip(means, offsets, strict=True)])
        weighted = np.sqrt(weights * len(weights))[:, None] * stacked
        dtype = np.result_type(sketches, images)
        axes, variances = principal_axes(weighted.astype(dtype), largest=self.n_directions)
        if variances.size == 0:
            raise InputError(
                "the linked sketches and images are all alike, so there is no content to learn; "
                "give more linked samples"
            )
        arrays: dict[str, NDArray[Any]] = {}
        for modality, offset, style in zip(
            MODALITIES,
            offsets,
            np.split(axes * np.sqrt(variances), [sketches.shape[1]]),
            strict=True,
        ):
            arrays[f"{modality}_offset"] = offset
            arrays[f"{modality}_projection"] = ridge_inverse(style, self.ridge)
        return arrays


def ridge_inverse(A: Floating, ridge: float) -> Floating:
    """``A (A^T A + ridge * lambda_1 I)^-1`` for A (m, d), the pseudo-inverse of ``A^T`` at 0."""
    left, values, right = np.linalg.svd(A, full_matrices=False)
    kept = values > max(A.shape) * np.finfo(A.dtype).eps * values.max(initial=0.0)
    left, values, right = left[:, kept], values[kept], right[kept]
    inverse: Floating = (
        left * (values / (values**2 + ridge * values.max(initial=0.0) ** 2))
    ) @ right
    return inverse
