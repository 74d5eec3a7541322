"""What pairs of unit codes cost by their similarities within a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def contrastive_loss(
    sketches: Tensor, images: Tensor, positives: Tensor, temperature: float
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
    """
    similarities = sketches @ images.T / temperature
    of_sketches = positives / positives.sum(dim=1, keepdim=True)
    of_images = positives / positives.sum(dim=0, keepdim=True)
    agreement = of_sketches * similarities.log_softmax(dim=1) + of_images * (
        similarities.log_softmax(dim=0)
    )
    return -agreement.sum() / (2 * len(sketches))
