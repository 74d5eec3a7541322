"""Modules of the adapter: what centres frozen features, and the residual head on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from cppcl.features.training.lesson import Lesson
from cppcl.learning.preparation import principal_axes

FIRST_WEIGHTS = 0.02
"""Deviation of the first weights of the hidden layer.

A small one keeps training near the frozen features; a large one learns few samples of thousands
of values by heart.
"""


class FeatureLesson(Lesson):
    """Gives the features of a batch as they are."""

    def pictures(self, modality, rows):  # type: ignore[no-untyped-def]
        """Features of a batch, (n, d) float32, on the device."""
        return torch.from_numpy(self.views[modality].maps[rows]).to(self.device)


def unit_weights(weights: Sequence[float]) -> tuple[float, ...]:
    """Weights of blocks whose squares add up to 1."""
    length = sum(weight**2 for weight in weights) ** 0.5
    return tuple(weight / length for weight in weights)


class Centring(nn.Module):
    """Features less their mean, each block of unit length and weighted.

    Parameters
    ----------
    widths : sequence of int
        Values of each block.
    weights : sequence of float
        Weight of each block; those of all together are brought to unit length.
    """

    mean: Tensor

    def __init__(self, widths: Sequence[int], weights: Sequence[float]) -> None:
        super().__init__()
        self._widths = list(widths)
        self._weights = unit_weights(weights)
        self.register_buffer("mean", torch.zeros(sum(widths)))

    def forward(self, features: Tensor) -> Tensor:
        """Centred features, (n, d)."""
        return self.unit(features - self.mean)

    def unit(self, features: Tensor) -> Tensor:
        """Blocks of unit length, weighted."""
        parts = torch.split(features, self._widths, dim=1)
        return torch.cat(
            [
                weight * nn.functional.normalize(part, dim=1)
                for part, weight in zip(parts, self._weights, strict=True)
            ],
            dim=1,
        )


class ResidualHead(nn.Module):
    """What is added to features: a hidden layer, whose output begins at zero.

    Parameters
    ----------
    dimension, width : int
        Values of the features, and hidden units.
    dropout : float
        Share of the features that a step leaves out, and half as large a share of the units.
    n_components : int, optional
        Most principal axes that the head sees, and moves features along; all values if None.
    """

    axes: Tensor | None

    def __init__(
        self, dimension: int, width: int, dropout: float, n_components: int | None = None
    ) -> None:
        super().__init__()
        n = dimension if n_components is None else min(n_components, dimension)
        self.register_buffer("axes", None if n_components is None else torch.zeros(dimension, n))
        self.dropout = nn.Dropout(dropout)
        self.dropout_of_units = nn.Dropout(dropout / 2)
        self.hidden = nn.Linear(n, width)
        self.output = nn.Linear(width, n, bias=False)
        nn.init.normal_(self.hidden.weight, std=FIRST_WEIGHTS)
        nn.init.zeros_(self.hidden.bias)
        nn.init.zeros_(self.output.weight)

    def forward(self, features: Tensor) -> Tensor:
        """What is added, (n, d)."""
        seen = features if self.axes is None else features @ self.axes
        units = torch.relu(self.hidden(self.dropout(seen)))
        added: Tensor = self.output(self.dropout_of_units(units))
        return added if self.axes is None else added @ self.axes.T

    def look_at(self, features: Tensor) -> None:
        """Take the principal axes of training features, (n, d), where they are wanted."""
        if self.axes is not None:
            found, _ = principal_axes(features.numpy(), largest=self.axes.shape[1])
            # Where samples have fewer axes, the rest stays zero: nothing is seen there.
            self.axes[:, : found.shape[1]] = torch.from_numpy(found)


class SeparateHeads(nn.Module):
    """A residual head for each block of the features, which sees it at unit length.

    Parameters
    ----------
    widths, weights : sequences
        Of the blocks, as `Centring` has them.
    width, dropout, n_components
        Of each `ResidualHead`.
    """

    def __init__(
        self,
        widths: Sequence[int],
        weights: Sequence[float],
        width: int,
        dropout: float,
        n_components: int | None = None,
    ) -> None:
        super().__init__()
        self._widths, self._weights = list(widths), unit_weights(weights)
        self.heads = nn.ModuleList([ResidualHead(d, width, dropout, n_components) for d in widths])

    def forward(self, features: Tensor) -> Tensor:
        """What is added, (n, d), to each block by its weight."""
        parts = zip(self._weights, self.heads, self._units(features), strict=True)
        return torch.cat([weight * head(part) for weight, head, part in parts], dim=1)

    def look_at(self, features: Tensor) -> None:
        """Let each head take the principal axes of its block."""
        for head, part in zip(self.heads, self._units(features), strict=True):
            cast("ResidualHead", head).look_at(part)

    def _units(self, features: Tensor) -> list[Tensor]:
        """Blocks at unit length."""
        parts = torch.split(features, self._widths, dim=1)
        return [nn.functional.normalize(part, dim=1) for part in parts]
