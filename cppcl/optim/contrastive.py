"""What pairs of unit codes cost by their similarities within a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def contrastive_loss(
    sketches: Tensor,
    images: Tensor,
    positives: Tensor,
    temperature: float,
    weights: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Symmetric InfoNCE of unit codes (b, d) with several positives, a mean over the pairs.

    Parameters
    ----------
    sketches, images : Tensor, (b, d)
        Unit codes of pairs.
    positives : Tensor, (b, b)
        Weights of the links of sketches with images; no row or column is all zero.
    temperature : float
        Of the softmax.
    weights : pair of (b,) Tensors, optional
        How much the sketch and the image of each pair count, above 0: fully where None. A pair
        weighs the product of both; among the positives of another sample, and among those that
        it is told apart from, a sample counts by its own.
    """
    import torch

    of_sketch, of_image = weights or (torch.ones_like(positives[:, 0]),) * 2
    pairs = of_sketch * of_image
    similarities = sketches @ images.T / temperature
    among_images = (similarities + of_image.log()).log_softmax(dim=1)
    among_sketches = (similarities + of_sketch.log()[:, None]).log_softmax(dim=0)
    of_sketches, of_images = positives * of_image, positives * of_sketch[:, None]
    of_sketches = pairs[:, None] * (of_sketches / of_sketches.sum(dim=1, keepdim=True))
    of_images = pairs * (of_images / of_images.sum(dim=0, keepdim=True))
    agreement = of_sketches * among_images + of_images * among_sketches
    return -agreement.sum() / (2 * len(sketches))
