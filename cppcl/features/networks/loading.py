"""Loading of pretrained image networks, cut at a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cppcl.errors import InputError
from cppcl.features.networks.caffe_networks import POOL_FIRST, build_caffe, fit_to
from cppcl.features.networks.encoders import (
    EXTRAS,
    Pooling,
    build_encoder,
    of_encoder,
    pooled_tokens,
)
from cppcl.features.networks.input import Preprocessing
from cppcl.features.networks.packaged import PACKAGED, build_packaged
from cppcl.features.networks.torchvision_networks import build_torchvision, present_names
from cppcl.features.networks.weights import default_weights, read_weights
from cppcl.validation import suggestion

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class KnownNetwork:
    """A network with a default node.

    Parameters
    ----------
    node : str or None
        Default node; None is the last convolution of a packaged network.
    dimension : int
        Length of the output of that node.
    licence : str
        Of its published weights.
    nodes : mapping of str to str
        The publication's names of nodes, and the module's.
    """

    node: str | None
    dimension: int
    licence: str
    nodes: Mapping[str, str] = field(default_factory=dict)


_RESEARCH = "trained on ImageNet, whose terms are for research"
_TORCHVISION = f"BSD-3-Clause (torchvision); {_RESEARCH}"
_CAFFE = f"unrestricted use (BVLC); {_RESEARCH}"

KNOWN: dict[str, KnownNetwork] = {
    **{name: KnownNetwork(None, 1280, "Apache-2.0") for name in PACKAGED},
    "alexnet": KnownNetwork(
        "classifier.1", 4096, _TORCHVISION, {"fc6": "classifier.1", "fc7": "classifier.4"}
    ),
    "caffenet": KnownNetwork("fc6", 4096, _CAFFE),
    "caffe_alexnet": KnownNetwork("fc6", 4096, _CAFFE),
}
"""Networks with a default node. All networks of torchvision, timm and open_clip are known too."""


@dataclass(frozen=True)
class NetworkNode:
    """A network, and a node in it.

    Parameters
    ----------
    network : str
        Name without the node.
    node : str or None
        Name of a module; None is the output of the network, or of the last convolution of a
        packaged one.
    pooling, side, tag
        Of an encoder of timm or open_clip; see `build_encoder` and `pooled_tokens`.
    """

    network: str
    node: str | None
    pooling: Pooling = "model"
    side: int | None = None
    tag: str | None = None

    @property
    def kind(self) -> str:
        """Where it comes from: 'packaged', 'caffe', 'timm', 'open_clip' or 'torchvision'."""
        if self.network in PACKAGED:
            return "packaged"
        if self.network in POOL_FIRST:
            return "caffe"
        package, slash, _ = self.network.partition("/")
        return package if slash and package in EXTRAS else "torchvision"

    @property
    def is_whole_packaged(self) -> bool:
        """True if it is a packaged network as far as its last convolution."""
        return self.kind == "packaged" and self.node is None

    @property
    def needs_weights(self) -> bool:
        """True if the user must give a weights file."""
        return self.kind == "caffe"

    @property
    def is_encoder(self) -> bool:
        """True if it is of timm or open_clip, whose caches may have its weights."""
        return self.kind in EXTRAS

    def licence(self, weights: Path | None) -> str:
        """Licence of the weights, in a few words."""
        known = KNOWN.get(self.network)
        if self.kind == "caffe" and known:
            return known.licence
        if weights is not None or self.needs_weights or self.is_encoder:
            return "that of the weights file"
        if known:
            return known.licence
        return str(default_weights(self.network).meta.get("license") or _TORCHVISION)


@dataclass(frozen=True)
class Network:
    """A network cut at a node.

    Parameters
    ----------
    run : callable
        From a (n, 3, size, size) float32 tensor to the output of the node, or to its averages
        over positions where it is not negative.
    module : torch.nn.Module or None
        The module, in evaluation mode; None where `run` holds the weights itself.
    preprocessing : Preprocessing
        How pictures become its input.
    channels_last : bool
        True if `run` is faster where the channels of a pixel lie side by side.
    """

    run: Callable[[torch.Tensor], torch.Tensor]
    module: torch.nn.Module | None
    preprocessing: Preprocessing
    channels_last: bool = True


class _NodeReached(Exception):  # noqa: N818 - it carries a result, it is no error
    def __init__(self, output: torch.Tensor) -> None:
        self.output = output


def find_node(network: str, node: str | None) -> NetworkNode:
    """Parse the options `network` and `node`; loads nothing heavy, except to explain an error.

    Parameters
    ----------
    network : str
        Name of a network; '<network>:<node>' gives both in one.
    node : str or None
        Name of one of its modules, or the name that the publication gives it, such as 'fc6'.

    Raises
    ------
    InputError
        One of them is no name, two nodes are given, or the network needs one.
    """
    for option, value in (("network", network), ("node", node)):
        if not isinstance(value, str) and (value is not None or option == "network"):
            raise InputError(f"option {option}={value!r} must be a name")
    name, colon, inner = network.partition(":")
    if not name or (colon and not inner) or node == "":
        raise InputError(
            f"option network={network!r}, node={node!r} must be a network and one of its nodes, "
            "such as network='alexnet', node='classifier.1', or network='alexnet:classifier.1'"
        )
    if inner and node is not None:
        raise InputError(
            f"option node={node!r} beside network={network!r}: the network names a node itself; "
            "leave one of them out"
        )
    found = NetworkNode(name, inner or node)
    known = KNOWN.get(name)
    if known:
        return NetworkNode(name, known.nodes.get(found.node or "", found.node or known.node))
    if found.node is None and found.kind == "torchvision":
        module, _ = build(found)
        raise InputError(
            f"option node: network={name!r} needs the name of a module whose output is wanted: "
            f"{', '.join(repr(child) for child, _ in module.named_children())}, or one inside them"
        )
    return found


def load_network(target: NetworkNode, weights: Path | None) -> Network:
    """Load a pretrained network, on the CPU.

    Parameters
    ----------
    target : NetworkNode
        The network and its node.
    weights : Path or None
        A file, or None for the published weights.

    Raises
    ------
    DataUnavailableError
        The weights are not on this machine and cannot be downloaded, or a package is missing.
    InputError
        There is no such model or node, or the file does not fit the model.
    """
    module, preprocessing = build(target)
    state = read_weights(target.network, weights)
    try:
        if target.kind == "torchvision":
            state = present_names(state)
        elif target.kind == "caffe":
            state = fit_to(module, state)
        elif target.kind != "packaged":
            state = of_encoder(target.network, module, state)
        # Nothing is initialised at random first: that would cost seconds and move torch's seed.
        module.load_state_dict(state, assign=True)
    except (RuntimeError, AttributeError, TypeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"option weights={str(weights)!r} is no state_dict of {target.network}: {reason}"
        ) from error
    module = module.float().eval().requires_grad_(False)
    return Network(run=_cut(module, target), module=module, preprocessing=preprocessing)


def output_dimension(target: NetworkNode) -> int:
    """Length of a network's pooled output, found without its weights and without computing."""
    known = KNOWN.get(target.network)
    if known and target.node == known.node:
        return known.dimension
    import torch

    module, preprocessing = build(target)
    batch = torch.empty(1, 3, preprocessing.size, preprocessing.size, device="meta")
    with torch.inference_mode():
        return int(pool(_cut(module.to("meta").eval(), target)(batch)).shape[1])


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


def build(target: NetworkNode) -> tuple[torch.nn.Module, Preprocessing]:
    """Build a network without its weights; returns it and its preprocessing."""
    if target.kind == "packaged":
        return build_packaged(target.network)
    if target.kind == "caffe":
        return build_caffe(target.network, cast(str, target.node))
    if target.kind == "torchvision":
        return build_torchvision(target.network)
    return build_encoder(target.network, side=target.side, tag=target.tag)


def _cut(module: torch.nn.Module, target: NetworkNode) -> Callable[[torch.Tensor], torch.Tensor]:
    import torch

    if target.node is None and target.kind == "timm":
        return pooled_tokens(module, target.pooling)
    if target.node is None:
        whole = module.extract_features if target.kind == "packaged" else module
        return cast("Callable[[torch.Tensor], torch.Tensor]", whole)
    network, node = target.network, target.node
    nodes = dict(module.named_modules())
    if node not in nodes:
        raise InputError(
            f"option node={node!r}: {network} has no node {node!r}"
            f"{suggestion(node, filter(None, nodes))}"
        )

    def leave(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
        raise _NodeReached(output)

    # The output travels in the exception, so that threads can share the module; leaving at once
    # saves the later layers and keeps their in-target operations away from the output.
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
        raise InputError(f"option node={node!r}: the node {node!r} of {network} {problem}")

    return run
