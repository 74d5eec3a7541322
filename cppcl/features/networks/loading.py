"""Loading of pretrained image networks, cut at a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cppcl.errors import InputError
from cppcl.features.networks.caffe_networks import POOL_FIRST, build_caffe, fit_to
from cppcl.features.networks.encoders import EXTRAS, build_encoder, of_encoder
from cppcl.features.networks.input import Preprocessing
from cppcl.features.networks.torchvision_networks import (
    build_packaged,
    build_torchvision,
    present_names,
)
from cppcl.features.networks.weights import PACKAGED, default_weights, read_weights
from cppcl.features.options import nearest_names

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class KnownNetwork:
    """A network that has a node of its own choice.

    Parameters
    ----------
    node : str or None
        Node where none is asked for; None is the last convolution of the packaged network.
    dimension : int
        Length of what that node returns.
    licence : str
        Of its published weights.
    nodes : mapping of str to str
        Names that the publication gives to nodes, with those that the module has.
    """

    node: str | None
    dimension: int
    licence: str
    nodes: Mapping[str, str] = field(default_factory=dict)


_RESEARCH = "trained on ImageNet, whose terms are for research"
_TORCHVISION = f"BSD-3-Clause (torchvision); {_RESEARCH}"
_CAFFE = f"unrestricted use (BVLC); {_RESEARCH}"

KNOWN: dict[str, KnownNetwork] = {
    PACKAGED: KnownNetwork(None, 1280, "Apache-2.0"),
    "alexnet": KnownNetwork(
        "classifier.1", 4096, _TORCHVISION, {"fc6": "classifier.1", "fc7": "classifier.4"}
    ),
    "caffenet": KnownNetwork("fc6", 4096, _CAFFE),
    "caffe_alexnet": KnownNetwork("fc6", 4096, _CAFFE),
}
"""Networks that need no node. Besides there are all of torchvision, timm and open_clip."""


@dataclass(frozen=True)
class Place:
    """A network, and a node in it.

    Parameters
    ----------
    network : str
        Name without the node.
    node : str or None
        Name of a module; None is what the network itself returns, of the packaged one its last
        convolution.
    """

    network: str
    node: str | None

    @property
    def kind(self) -> str:
        """Where it comes from: 'packaged', 'caffe', 'timm', 'open_clip' or 'torchvision'."""
        if self.network == PACKAGED:
            return "packaged"
        if self.network in POOL_FIRST:
            return "caffe"
        package, slash, _ = self.network.partition("/")
        return package if slash and package in EXTRAS else "torchvision"

    @property
    def needs_weights(self) -> bool:
        """Whether the weights are always a file of the user's."""
        return self.kind not in ("packaged", "torchvision")

    def licence(self, weights: Path | None) -> str:
        """Licence of the weights, in a few words."""
        known = KNOWN.get(self.network)
        if self.kind == "caffe" and known:
            return known.licence
        if weights is not None or self.needs_weights:
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


def find_place(network: str, node: str | None) -> Place:
    """Read the options `network` and `node`; nothing heavy is loaded, unless to name an error.

    Parameters
    ----------
    network : str
        Name of a network; '<network>:<node>' gives both in one.
    node : str or None
        Name of one of its modules, or the name that the publication gives it, such as 'fc6'.

    Raises
    ------
    InputError
        They are no names, there are two nodes, or the network needs one.
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
    found = Place(name, inner or node)
    known = KNOWN.get(name)
    if known:
        return Place(name, known.nodes.get(found.node or "", found.node or known.node))
    if found.node is None and found.kind == "torchvision":
        module, _ = build(found)
        raise InputError(
            f"option node: network={name!r} needs the name of a module whose output is wanted: "
            f"{', '.join(repr(child) for child, _ in module.named_children())}, or one inside them"
        )
    return found


def load_network(place: Place, weights: Path | None) -> Network:
    """Load a pretrained network, on the CPU.

    Parameters
    ----------
    place : Place
        Which network, and where it is cut.
    weights : Path or None
        A file, or None for the published weights.

    Raises
    ------
    DataUnavailableError
        The weights are not on this machine and cannot be downloaded, or a package is missing.
    InputError
        There is no such model or node, or the file does not fit the model.
    """
    module, preprocessing = build(place)
    state = read_weights(place.network, weights)
    try:
        if place.kind == "torchvision":
            state = present_names(state)
        elif place.kind == "caffe":
            state = fit_to(module, state)
        elif place.kind != "packaged":
            state = of_encoder(place.network, module, state)
        # Nothing is initialised at random first: that would cost seconds and move torch's seed.
        module.load_state_dict(state, assign=True)
    except (RuntimeError, AttributeError, TypeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"option weights={str(weights)!r} is no state_dict of {place.network}: {reason}"
        ) from error
    module = module.float().eval().requires_grad_(False)
    return Network(run=_cut(module, place), module=module, preprocessing=preprocessing)


def output_dimension(place: Place) -> int:
    """Length of a network's pooled output, found without its weights and without computing."""
    import torch

    known = KNOWN.get(place.network)
    if known and place.node == known.node:
        return known.dimension
    module, preprocessing = build(place)
    batch = torch.empty(1, 3, preprocessing.size, preprocessing.size, device="meta")
    with torch.inference_mode():
        return int(pool(_cut(module.to("meta").eval(), place)(batch)).shape[1])


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


def build(place: Place) -> tuple[torch.nn.Module, Preprocessing]:
    """Build a network without published weights, and say what it expects of its input."""
    if place.kind == "packaged":
        return build_packaged()
    if place.kind == "caffe":
        return build_caffe(place.network, cast(str, place.node))
    if place.kind == "torchvision":
        return build_torchvision(place.network)
    return build_encoder(place.network)


def _cut(module: torch.nn.Module, place: Place) -> Callable[[torch.Tensor], torch.Tensor]:
    import torch

    if place.node is None:
        whole = module.extract_features if place.kind == "packaged" else module
        return cast("Callable[[torch.Tensor], torch.Tensor]", whole)
    network, node = place.network, place.node
    nodes = dict(module.named_modules())
    if node not in nodes:
        raise InputError(
            f"option node={node!r}: {network} has no node {node!r}: "
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
        raise InputError(f"option node={node!r}: the node {node!r} of {network} {problem}")

    return run
