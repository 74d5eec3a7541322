"""Layers of the networks, as numbers; PyTorch is loaded only where one is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Convolution:
    """A convolution, batch normalisation and rectifier, and pooling by the maximum after them.

    Attributes
    ----------
    maps, kernel, stride, padding : int
        Of the convolution.
    pool : (int, int) or None
        Size and stride of the pooling.
    """

    maps: int
    kernel: int
    stride: int = 1
    padding: int = 0
    pool: tuple[int, int] | None = None


@dataclass(frozen=True)
class Architecture:
    """A network from a square of pixels to a vector.

    Attributes
    ----------
    side : int
        Of the square, pixels.
    convolutions : tuple of Convolution
        In order.
    full : tuple of int
        Widths of the full layers after them, each followed by a rectifier and dropout but for the
        last one where `linear` is true.
    linear : bool
        True if the last layer is its own output.
    dropout : float
        Share of the values of a full layer that a training step leaves out, of those that are
        rectified.
    """

    side: int
    convolutions: tuple[Convolution, ...]
    full: tuple[int, ...]
    linear: bool = False
    dropout: float = 0.0

    def output_sides(self) -> list[int]:
        """Side of the maps after every convolution and its pooling."""
        sides, side = [], self.side
        for layer in self.convolutions:
            side = (side + 2 * layer.padding - layer.kernel) // layer.stride + 1
            if layer.pool is not None:
                side = (side - layer.pool[0]) // layer.pool[1] + 1
            sides.append(side)
        return sides

    def build(self, channels: int = 1) -> nn.Sequential:
        """Network with first weights of He et al. (ICCV 2015), from (n, channels, side, side)."""
        from torch import nn

        layers: list[nn.Module] = []
        for layer in self.convolutions:
            layers += [
                nn.Conv2d(channels, layer.maps, layer.kernel, layer.stride, layer.padding),
                nn.BatchNorm2d(layer.maps),
                nn.ReLU(),
            ]
            if layer.pool is not None:
                layers.append(nn.MaxPool2d(*layer.pool))
            channels = layer.maps
        layers.append(nn.Flatten())
        width = channels * self.output_sides()[-1] ** 2
        for number, following in enumerate(self.full, start=1):
            layers.append(nn.Linear(width, following))
            if number < len(self.full) or not self.linear:
                layers += [nn.ReLU(), nn.Dropout(self.dropout)]
            width = following
        for module in layers:
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]
        return nn.Sequential(*layers)


POOL = (3, 2)

SKETCH_A_NET = {
    "paper": (
        225,
        (
            Convolution(64, 15, stride=3, pool=POOL),
            Convolution(128, 5, pool=POOL),
            Convolution(256, 3, padding=1),
            Convolution(256, 3, padding=1),
            Convolution(256, 3, padding=1, pool=POOL),
        ),
    ),
    "small": (
        96,
        (
            Convolution(24, 9, stride=2, pool=POOL),
            Convolution(48, 5, pool=POOL),
            Convolution(96, 3, padding=1),
            Convolution(96, 3, padding=1),
            Convolution(96, 3, padding=1, pool=POOL),
        ),
    ),
}
"""Side of the input and convolutions of Sketch-a-Net by size; the first full layer, layer 6 of the
publication, is a convolution as large as its maps."""
FULL = {"paper": 512, "small": 128}
"""Width of its layers 6 and 7."""


def sketch_a_net(
    size: str, *full: int, linear: bool = False, dropout: float = 0.0
) -> Architecture:
    """Sketch-a-Net's convolutions of a size, followed by full layers of these widths."""
    side, convolutions = SKETCH_A_NET[size]
    return Architecture(side, convolutions, full, linear, dropout)


SHAPE_3D = {
    size: Architecture(
        100,
        tuple(
            Convolution(maps, 5, pool=(pool, pool))
            for maps, pool in zip(widths, (4, 2, 2), strict=True)
        ),
        (64,),
        linear=True,
    )
    for size, widths in {"paper": (32, 64, 256), "small": (24, 48, 96)}.items()
}
"""Network of the publication on 3D shapes, by size."""
