"""Losses of comparisons, a mean over the pairs or triplets of a batch."""

from __future__ import annotations

import torch
from torch import Tensor


def in_full(values: Tensor) -> Tensor:
    """Values of half precision in single precision, others as they are."""
    return values.float() if values.dtype is torch.bfloat16 else values


def squared_distance(first: Tensor, second: Tensor) -> Tensor:
    """Squared distance of each row to the other's, (n,), of (n, d)."""
    return (first - second).pow(2).sum(dim=1)


def triplet_loss(anchors: Tensor, same: Tensor, other: Tensor, margin: float) -> Tensor:
    r""":math:`\max(0, m + |a - p|^2 - |a - n|^2)`, of codes (n, d)."""
    nearer = squared_distance(anchors, same) - squared_distance(anchors, other)
    return (margin + nearer).clamp(min=0).mean()


def contrastive_loss_of_pairs(same: Tensor, other: Tensor, margin: float) -> Tensor:
    r""":math:`y D^2 / 2 + (1 - y) \max(0, m - D)^2 / 2`, both kinds with equal weight.

    Parameters
    ----------
    same, other : Tensor, (n,)
        Squared distances of pairs of one class (y = 1), and of two.
    margin : float
        m.
    """
    # The root has no derivative at 0.
    distance = other.clamp(min=1e-12).sqrt()
    return (same.mean() + (margin - distance).clamp(min=0).pow(2).mean()) / 4


SAME_SCALE, OTHER_SCALE, DECAY = 0.2, 10.0, 2.77


def exponential_loss(first: Tensor, second: Tensor, differ: Tensor) -> Tensor:
    r""":math:`D^2 / C_p` of a class, else :math:`C_n \exp(-2.77 D / C_n)`, D the L1 distance.

    Parameters
    ----------
    first, second : Tensor, (n, d)
        Codes.
    differ : Tensor, (n,) bool
        True where the two are of different classes.
    """
    distance = (first - second).abs().sum(dim=1)
    same = distance.pow(2) / SAME_SCALE
    other = OTHER_SCALE * torch.exp(-DECAY / OTHER_SCALE * distance)
    return torch.where(differ, other, same).mean()
