"""Loading of pretrained image networks, cut at a node."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cppcl.errors import InputError
from cppcl.features.options import nearest_names
from cppcl.features.weights import PACKAGED, default_weights, package_missing, read_weights

if TYPE_CHECKING:
    import torch


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
    module, preprocessing = build(network)
    state = read_weights(network, weights)
    try:
        # The published DenseNets keep an older form of their names.
        state = {
            re.sub(r"(denselayer\d+\.(norm|conv))\.(?=\d\.)", r"\1", key): value
            for key, value in state.items()
        }
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

    module, preprocessing = build(network)
    batch = torch.empty(1, 3, preprocessing.size, preprocessing.size, device="meta")
    with torch.inference_mode():
        return int(pool(_cut(module.eval(), network)(batch)).shape[1])


def pool(output: torch.Tensor) -> torch.Tensor:
    """Average a node's output over its positions.

    Parameters
    ----------
    output : tensor
        (n, m, height, width), (n, tokens, m) or (n, m).

    Returns
    -------
    (n, m) tensor
    """
    if output.ndim == 4:
        return output.mean((2, 3))
    return output.mean(1) if output.ndim == 3 else output


def build(network: str) -> tuple[torch.nn.Module, Preprocessing]:
    """Build a network without memory for its weights, and what it expects of its input."""
    import torch

    if network == PACKAGED:
        try:
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError as error:
            raise package_missing(error) from error
        with torch.device("meta"):
            module: torch.nn.Module = EfficientNet.from_name("efficientnet-lite0")
        mean, std = (127 / 255,) * 3, (128 / 255,) * 3
        return module, Preprocessing(size=224, mean=mean, std=std, interpolation="bicubic")

    from torchvision.models import get_model_builder

    name = network.partition(":")[0]
    transforms = default_weights(name).transforms()
    preprocessing = Preprocessing(
        size=int(transforms.crop_size[0]),
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
        interpolation=transforms.interpolation.value,
    )
    # What torchvision's builders set themselves only when they load the weights.
    options: dict[str, Any] = {}
    if name in ("googlenet", "inception_v3"):
        options = {"transform_input": True, "init_weights": False}
    elif name.startswith("vit_"):
        options = {"image_size": preprocessing.size}
    builder = get_model_builder(name)
    if name.startswith("regnet_"):  # these compute with tensors while they are built
        with torch.random.fork_rng(devices=[]):
            return builder(weights=None).to("meta"), preprocessing
    with torch.device("meta"):
        return builder(weights=None, **options), preprocessing


def _cut(module: torch.nn.Module, network: str) -> Callable[[torch.Tensor], torch.Tensor]:
    import torch

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
            if isinstance(reached.output, torch.Tensor) and 2 <= reached.output.ndim <= 4:
                return reached.output
            problem = "does not return (n, m), (n, tokens, m) or (n, m, height, width)"
        else:
            problem = "takes no part in what the model computes"
        raise InputError(f"option network={network!r}: the node {node!r} of {name} {problem}")

    return run
