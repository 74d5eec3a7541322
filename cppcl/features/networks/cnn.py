"""Activations of a pretrained image network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import MIB, Memory, Picture
from cppcl.features.learning import LearningExtractor, UniformSample
from cppcl.features.networks.encoders import cached_weights
from cppcl.features.networks.input import Framing, batches
from cppcl.features.networks.loading import (
    Network,
    NetworkNode,
    find_node,
    load_network,
    output_dimension,
    pool,
)
from cppcl.features.networks.onnx_runtime import through_onnx_runtime
from cppcl.features.networks.packaged import PACKAGED
from cppcl.features.networks.weights import FORMATS, weights_identity
from cppcl.features.principal import principal_components
from cppcl.features.stateless import check_picture
from cppcl.validation import check_choice, check_flag, check_number

if TYPE_CHECKING:
    import torch

LARGE_NETWORK = 768 * MIB
"""Weights of a network beyond the packaged ones, twice while they are loaded."""
N_KEPT = 3
"""Networks that a process keeps loaded."""
MICRO_BATCH = {"cpu": 1, "cuda": 32}
"""Pictures that pass through the network together; half of them, and so on, where the GPU has no
memory for that.

The last batch is filled up, so that every picture sees the same shapes and hence the same
kernels, however many come with it. One at a time is also the fastest on one CPU core.
"""


@dataclass(frozen=True, kw_only=True)
class Cnn(LearningExtractor):
    r"""Output of a node of a pretrained network, averaged over its positions.

    With :math:`a(x)` the output of the node for a picture x, of m channels at positions p, the
    feature is :math:`\phi_c(x) = \tfrac1P \sum_p \max(0, a_{cp}(x))`; nodes without positions
    give their output itself. With `flip` it is :math:`\tfrac12 (\phi(x) + \phi(\bar x))`, with
    :math:`\bar x` the mirror image. With `n_components` = k the extractor learns: `fit` finds the
    mean :math:`\mu` and the k principal directions :math:`W` of the features of training pictures
    (`cppcl.features.principal`), and a picture is described by :math:`W (\phi(x) - \mu)`.

    The paper describes images by fc6 of the Caffe reference network, 4096 values after the
    rectifier, and prints 4883 x 2400 as their size, which fits a reduction to as many values as
    LKS has. So the paper's feature is network='caffenet' with BVLC's weights file and
    n_components=2400, and learn_from='image' where only images are described so; the reduction is
    our reading of that number. network='alexnet' is torchvision's, of other widths (64-192-384-256
    channels, no groups, no response normalisation) and another training.

    By default a picture is padded to a square on white and resized to the network's input with
    antialiasing: it is never stretched and nothing is cut off, which is our choice for drawings.
    Channels are normalised as the weights ask for. On a CPU packaged networks run through ONNX
    Runtime, all others through PyTorch (`cppcl.features.networks.onnx_runtime`).

    Parameters
    ----------
    network : str
        'efficientnet_lite0', 'efficientnet_lite1' or 'efficientnet_lite2' (1280 values, the last
        convolution; weights from the package index; 224, 240 and 260 pixels);
        'alexnet' (torchvision's, fc6, 4096 values); any other classification model of
        torchvision, with a node; 'caffenet' or 'caffe_alexnet' (fc6, 4096 values), with a weights
        file; 'timm/<model>' or 'open_clip/<model>', with the extra 'encoders' (see `timm` and
        `open_clip`, which know more of them). 'alexnet:classifier.4' names a node too.
    node : str or None
        Module of the network whose output is wanted, such as 'avgpool' of 'resnet50' (2048
        values) or 'fc7' of 'caffenet'. By default that given above, and of timm and open_clip
        what the encoder returns.
    weights : str or None
        Path of a weights file to load instead of the published ones: what torch.save wrote of a
        state_dict, .safetensors, .npz, or .caffemodel. No code in it is run. Of timm and open_clip
        the default is the file in the package's cache. What takes part in `parameters` is the
        content of the file, not where it lies.
    relu : bool or None
        True if negative outputs of the node become zero; torchvision's and Caffe's fully
        connected nodes come before their rectifier. By default true, but false for what timm and
        open_clip encoders return.
    framing : {'pad', 'crop'}
        'pad': the whole picture, on a white square. 'crop': as the published weights were tested,
        the middle of a picture brought to their size (of Caffe's networks, stretched to a
        square).
    flip : bool
        True if features of the picture and of its mirror image are averaged; takes twice as long.
    precision : {'float32', 'bfloat16'}
        Numbers that the network computes with; features are float32 either way. bfloat16 has 8
        bits: features differ by 0.5 % of their norm (AlexNet, CaffeNet, ResNet-50), those of the
        packaged network by 5 % (cosine 0.999). It is meant for matrix instructions (AMX, a GPU);
        with AVX512-BF16 alone it was not faster, as
        ``python tests/benchmarks/bench_features.py --precision`` measures. Processors without
        bfloat16 instructions are refused.
    n_components : int or None
        Principal components that features are reduced to; None leaves them as they are and learns
        nothing. Needs more training pictures than components. What was learned serves the same
        network, node and weights alone.
    max_samples : int
        Training pictures that `fit` learns components from, drawn evenly; features of these are
        held in memory.
    seed : int
        Of that draw.
    """

    name: ClassVar[str] = "cnn"
    version: ClassVar[int] = 2
    device: ClassVar[Literal["cpu", "gpu"]] = "gpu"
    libraries: ClassVar[int] = 704 * MIB  # with PyTorch and a small network
    learns: ClassVar[bool] = False  # of an extractor with n_components it is true

    network: str = "efficientnet_lite0"
    node: str | None = None
    weights: str | None = None
    relu: bool | None = None
    framing: Framing = "pad"
    flip: bool = False
    precision: Literal["float32", "bfloat16"] = "float32"
    n_components: int | None = None
    max_samples: int = 20_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.weights is not None and not isinstance(self.weights, str | Path):
            raise InputError(f"option weights={self.weights!r} must be a path or null")
        target = self._target
        if target.needs_weights and self.weights is None:
            raise InputError(
                f"option weights: network={self.network!r} has no weights that cppcl could fetch; "
                f"give the path of their file, {FORMATS}"
            )
        if self.relu is not None:
            check_flag("option relu", self.relu)
        check_choice("option framing", self.framing, ("pad", "crop"))
        check_flag("option flip", self.flip)
        check_choice("option precision", self.precision, ("float32", "bfloat16"))
        if self.n_components is not None:
            check_number("option n_components", self.n_components, least=1, whole=True)
            check_number(
                "option max_samples",
                self.max_samples,
                least=self.n_components + 1,
                whole=True,
                why=", one more than n_components",
            )
            object.__setattr__(self, "learns", True)
        check_number("option max_samples", self.max_samples, least=1, whole=True)
        check_number("option seed", self.seed, least=0, whole=True)

    @property
    def dimension(self) -> int:
        """Number of components, or of channels of the node."""
        return self.n_components or _dimension(self._target)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Mean and components; nothing without `n_components`."""
        if self.n_components is None:
            return {}
        m = _dimension(self._target)
        return {"mean": (m,), "components": (self.n_components, m)}

    @property
    def licence(self) -> str:
        """Licence of the weights."""
        return self._target.licence(self._given_path)

    def parameters(self) -> dict[str, Any]:
        """Every option as it takes effect; the weights are named by their content."""
        target = self._target
        return super().parameters() | {
            "network": target.network,
            "node": target.node,
            "weights": weights_identity(target.network, self._weights_path),
            "relu": self._relu,
        }

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Learn principal components from training pictures, where `n_components` asks for them.

        Raises
        ------
        InputError
            There are too few pictures, or their features vary in too few directions.
        """
        if self.n_components is None:
            return self
        m = _dimension(self._target)
        if self.n_components > m:
            raise InputError(
                f"option n_components={self.n_components} exceeds the {m} values of "
                f"{self._target.network}; lower it"
            )
        sample = UniformSample(self.max_samples, np.random.default_rng(self.seed))
        sample.add(np.empty((0, m), dtype=np.float32))
        for chunk in _chunks(pictures, MICRO_BATCH["cuda"]):
            sample.add(self._features(chunk))
        mean, components = principal_components(sample.rows()[0], self.n_components)
        return self.from_arrays({"mean": mean, "components": components})

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Features of n pictures, (n, dimension) float32; on a GPU where there is one.

        Raises
        ------
        DataUnavailableError
            The weights are not on this machine and cannot be downloaded, or a package that the
            network needs is not installed.
        InputError
            There is no such network or node, the weights do not fit it, or the processor has no
            bfloat16.
        NotFittedError
            No components were learned yet.
        """
        if self.n_components is None:
            return self._features(pictures)
        mean, components = self.learned("mean"), self.learned("components")
        rows = np.empty((len(pictures), self.n_components), dtype=np.float32)
        for row, features in zip(rows, self._features(pictures), strict=True):
            # One at a time, so that a row's rounding does not depend on those beside it.
            np.matmul(components, features - mean, out=row)
        return rows

    def _features(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Features of the network itself, (n, m)."""
        import torch

        rows = np.empty((len(pictures), _dimension(self._target)), dtype=np.float32)
        if not len(pictures):
            return rows
        device = "cuda" if torch.cuda.is_available() else "cpu"
        check_precision(self.precision, device)
        path = self._weights_path
        network = _loaded(self._target, path, _state(path), device, self.precision)
        size = MICRO_BATCH[device]
        while True:
            try:
                self._fill(rows, pictures, network, device, size)
                return rows
            except torch.OutOfMemoryError:
                if size == 1:
                    raise
                # Smaller batches may take other kernels, which round differently.
                size //= 2
                torch.cuda.empty_cache()

    def _fill(
        self,
        rows: NDArray[np.float32],
        pictures: Sequence[Picture],
        network: Network,
        device: str,
        size: int,
    ) -> None:
        """Write features of all pictures into rows, so many pictures at a time."""
        import torch

        running: list[tuple[slice, torch.Tensor]] = []
        with torch.inference_mode(), _reproducible(device):
            for part, batch in batches(
                pictures,
                network.preprocessing,
                self.framing,
                size=size,
                pinned=device == "cuda",
            ):
                # A GPU works on this batch while the CPU waits for the one before, and prepares
                # the next.
                running.append((part, self._run(network, batch, device)))
                if len(running) > 1:
                    _collect(rows, *running.pop(0))
            _collect(rows, *running.pop())

    def _run(self, network: Network, batch: torch.Tensor, device: str) -> torch.Tensor:
        import torch

        inputs = batch.to(
            device=device,
            dtype=getattr(torch, self.precision),
            memory_format=(
                torch.channels_last if network.channels_last else torch.contiguous_format
            ),
            non_blocking=True,
        )
        features = self._pooled(network.run(inputs))
        if self.flip:
            features = (features + self._pooled(network.run(inputs.flip(3)))) / 2
        return features

    def memory(self, longest_side: int) -> Memory:
        """Libraries, and the weights of a larger network, some times while they are loaded."""
        usual, path = super().memory(longest_side), self._given_path
        weights = 0 if self.network in PACKAGED else LARGE_NETWORK
        if path is not None:
            weights = 3 * path.stat().st_size if path.is_file() else LARGE_NETWORK
        return Memory(usual.model + weights, usual.working)

    def _pooled(self, output: torch.Tensor) -> torch.Tensor:
        import torch

        output = output.float()
        return pool(torch.relu(output) if self._relu else output)

    @property
    def _target(self) -> NetworkNode:
        return find_node(self.network, self.node)

    @property
    def _relu(self) -> bool:
        if self.relu is not None:
            return self.relu
        target = self._target
        return target.node is not None or target.kind == "packaged"

    @property
    def _given_path(self) -> Path | None:
        return None if self.weights is None else Path(self.weights).expanduser()

    @property
    def _weights_path(self) -> Path | None:
        target = self._target
        if self.weights is None and target.is_encoder:
            return cached_weights(target.network, target.tag)
        return self._given_path


def check_precision(precision: str, device: str) -> None:
    """Raise `InputError` if a device has no instructions for a precision.

    Parameters
    ----------
    precision : {'float32', 'bfloat16'}
        What is asked for.
    device : {'cpu', 'cuda'}
        Where the network runs.
    """
    import torch

    if precision != "bfloat16":
        return
    if device == "cuda":
        able = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has = torch.cpu.get_capabilities()
        able = any(has.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16"))
    if not able:
        raise InputError(
            f"option precision='bfloat16': this {device} has no instructions for it, so it would "
            "only be slower; use precision='float32'"
        )


def _collect(rows: NDArray[np.float32], part: slice, features: torch.Tensor) -> None:
    rows[part] = features[: part.stop - part.start].cpu().numpy()


def _chunks(pictures: Iterable[Picture], size: int) -> Iterator[list[Picture]]:
    """Pictures by so many, which are checked by their number among all."""
    remaining = (check_picture(picture, k) for k, picture in enumerate(pictures))
    while chunk := list(islice(remaining, size)):
        yield chunk


def _state(path: Path | None) -> tuple[int, int]:
    """What changes when the file does, so that it is loaded anew then."""
    if path is None or not path.exists():
        return 0, 0
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=N_KEPT)
def _loaded(
    target: NetworkNode, path: Path | None, state: tuple[int, int], device: str, precision: str
) -> Network:
    import torch

    loaded = load_network(target, path)
    if device == "cpu" and precision == "float32" and target.is_whole_packaged:
        return through_onnx_runtime(loaded)
    assert loaded.module is not None
    loaded.module.to(  # type: ignore[call-overload]
        device=device, dtype=getattr(torch, precision), memory_format=torch.channels_last
    )
    return loaded


@lru_cache
def _dimension(target: NetworkNode) -> int:
    return output_dimension(target)


def _reproducible(device: str) -> AbstractContextManager[Any]:
    """Context in which a GPU convolves in full precision, the same way every time."""
    import torch

    if device == "cpu":
        return nullcontext()
    return torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    )
