"""Activations of a pretrained image network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.features.networks import Network, Preprocessing, load_network, output_dimension, pool
from cppcl.features.options import check_flag
from cppcl.features.stateless import StatelessExtractor, check_picture
from cppcl.features.weights import PACKAGED, weights_identity
from cppcl.images import pad_to_square

MICRO_BATCH = {"cpu": 1, "cuda": 32}
"""Pictures that pass through the network together.

The last batch is filled up, so that every picture sees the same shapes and hence the same
kernels, however many come with it. One at a time is also the fastest on one CPU core.
"""


@dataclass(frozen=True, kw_only=True)
class Cnn(StatelessExtractor):
    """Output of a node of a pretrained network, averaged over its positions.

    A picture is padded to a square on white and resized to the network's input with
    antialiasing: it is never stretched and nothing is cut off. Channels are normalised as the
    published weights ask for.

    Parameters
    ----------
    network : str
        'efficientnet_lite0' (1280 values, the last convolution; weights from the package index),
        or a torchvision classification model and the name of a module in it, such as
        'alexnet:classifier.1' (fc6, 4096 values) or 'resnet50:avgpool' (2048 values).
    weights : str or None
        Path of a state_dict file to load instead of the published weights. What takes part in
        `parameters` is the content of the file, not where it lies.
    relu : bool
        Whether negative outputs of the node become zero; torchvision's fully connected nodes
        come before their rectifier.
    """

    name: ClassVar[str] = "cnn"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "gpu"

    network: str = PACKAGED
    weights: str | None = None
    relu: bool = True

    def __post_init__(self) -> None:
        model, _, node = self.network.partition(":") if isinstance(self.network, str) else [""] * 3
        if self.network != PACKAGED and not (model and node):
            raise InputError(
                f"option network={self.network!r} must be {PACKAGED!r} or a torchvision model and "
                "one of its nodes, such as 'alexnet:classifier.1'"
            )
        if self.weights is not None and not isinstance(self.weights, str | Path):
            raise InputError(f"option weights={self.weights!r} must be a path or null")
        check_flag("relu", self.relu)

    @property
    def dimension(self) -> int:
        """Number of channels of the node."""
        return 1280 if self.network == PACKAGED else _dimension(self.network)

    def parameters(self) -> dict[str, Any]:
        """Every option; the weights are named by their content."""
        return {
            "network": self.network,
            "weights": weights_identity(self.network, self._weights_path()),
            "relu": self.relu,
        }

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Features of n pictures, (n, dimension) float32; on a GPU where there is one.

        Raises
        ------
        DataUnavailableError
            The weights are not on this machine and cannot be downloaded.
        InputError
            There is no such network or node, or the weights do not fit it.
        """
        import torch

        rows = np.empty((len(pictures), self.dimension), dtype=np.float32)
        if not len(pictures):
            return rows
        device = "cuda" if torch.cuda.is_available() else "cpu"
        network = _loaded(self.network, *_file_and_state(self._weights_path()), device)
        size, step = network.preprocessing.size, MICRO_BATCH[device]
        with torch.inference_mode(), _reproducible(device):
            for start in range(0, len(pictures), step):
                batch = torch.zeros(step, 3, size, size)
                chosen = pictures[start : start + step]
                for row, picture in enumerate(chosen):
                    check_picture(picture, start + row)
                    batch[row] = torch.from_numpy(prepare(picture, network.preprocessing))
                output = network.run(batch.to(device=device, memory_format=torch.channels_last))
                output = pool(torch.relu(output) if self.relu else output)
                rows[start : start + len(chosen)] = output[: len(chosen)].cpu().numpy()
        return rows

    def _weights_path(self) -> Path | None:
        return None if self.weights is None else Path(self.weights).expanduser()


def prepare(picture: Picture, preprocessing: Preprocessing) -> NDArray[np.float32]:
    """Pad to a square on white, resize and normalise: (H, W, 3) uint8 to (3, size, size)."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pad_to_square(picture)))
    resampling = Image.Resampling[preprocessing.interpolation.upper()]
    image = image.resize((preprocessing.size, preprocessing.size), resampling)
    values = np.asarray(image, dtype=np.float32) / np.float32(255)
    mean = np.array(preprocessing.mean, dtype=np.float32)
    std = np.array(preprocessing.std, dtype=np.float32)
    return np.ascontiguousarray(((values - mean) / std).transpose(2, 0, 1))


def _file_and_state(path: Path | None) -> tuple[Path | None, tuple[int, int]]:
    """Path and what changes when the file does, so that it is loaded anew then."""
    if path is None or not path.exists():
        return path, (0, 0)
    status = path.stat()
    return path, (status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=2)
def _loaded(network: str, path: Path | None, state: tuple[int, int], device: str) -> Network:
    import torch

    loaded = load_network(network, path)
    loaded.module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return loaded


@lru_cache
def _dimension(network: str) -> int:
    return output_dimension(network)


def _reproducible(device: str) -> Any:
    """Context in which a GPU convolves in full precision, the same way every time."""
    from contextlib import nullcontext

    import torch

    if device == "cpu":
        return nullcontext()
    return torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    )
