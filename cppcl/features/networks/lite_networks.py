"""Larger packaged networks as extractors of their own, so that they can be combined by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cppcl.features.networks.cnn import Cnn


@dataclass(frozen=True, kw_only=True)
class CnnLite1(Cnn):
    """`cnn` with EfficientNet-Lite1 where no other network is named: 240 pixels, 1280 values."""

    name: ClassVar[str] = "cnn_lite1"

    network: str = "efficientnet_lite1"


@dataclass(frozen=True, kw_only=True)
class CnnLite2(Cnn):
    """`cnn` with EfficientNet-Lite2 where no other network is named: 260 pixels, 1280 values."""

    name: ClassVar[str] = "cnn_lite2"

    network: str = "efficientnet_lite2"
