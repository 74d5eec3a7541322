"""Image encoders of the packages timm and open_clip, by their names there."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cppcl.errors import InputError
from cppcl.features.networks.input import Preprocessing
from cppcl.features.networks.packaged import package_missing
from cppcl.validation import suggestion

if TYPE_CHECKING:
    import torch

EXTRAS = {"timm": "timm", "open_clip": "open_clip"}
"""Package of each kind of encoder, and the extra of cppcl that installs it."""


def build_encoder(network: str) -> tuple[torch.nn.Module, Preprocessing]:
    """Build an image encoder with random weights, leaving torch's seed as it is.

    Parameters
    ----------
    network : str
        'timm/<model>', which gives the pooled features before the classifier, or
        'open_clip/<model>', the image tower with its projection into the space shared with text.

    Returns
    -------
    module : torch.nn.Module
        On the CPU, in float32.
    preprocessing : Preprocessing
        As the package describes it for the model.

    Raises
    ------
    DataUnavailableError
        The package is not installed.
    InputError
        The package has no such model, or its input is no square of three channels.
    """
    import torch

    kind, _, name = network.partition("/")
    try:
        package = import_module(kind)
    except ImportError as error:
        raise package_missing(error, network, EXTRAS[kind]) from error
    known = set(package.list_models())
    if kind == "timm":  # with the names of published weights, which settle means and sizes
        known.update(package.list_models(pretrained=True))
    if name not in known:
        raise InputError(
            f"option network={network!r}: {kind} has no model {name!r}{suggestion(name, known)}"
        )
    with torch.random.fork_rng(devices=[]), _quiet():
        if kind == "timm":
            module = package.create_model(name, pretrained=False, num_classes=0)
            return module, _timm_preprocessing(network, package, module)
        module = package.create_model(name, load_weights=False, pretrained_text=False).visual
        return module, _open_clip_preprocessing(network, module)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep warnings out of the log: that there are no weights yet, above all."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def of_encoder(network: str, module: torch.nn.Module, state: Mapping[str, Any]) -> dict[str, Any]:
    """Choose the image encoder's arrays of a checkpoint: no classifier, no text."""
    if network.startswith("open_clip/"):
        tower = "visual."
        if any(str(key).startswith(tower) for key in state):
            return {
                key.removeprefix(tower): value
                for key, value in state.items()
                if key.startswith(tower)
            }
        return dict(state)
    heads = getattr(module, "pretrained_cfg", {}).get("classifier") or ()
    heads = (heads,) if isinstance(heads, str) else tuple(heads)
    own = module.state_dict()
    return {
        key: value
        for key, value in state.items()
        if key in own or not str(key).startswith(tuple(f"{head}." for head in heads))
    }


def _timm_preprocessing(network: str, package: Any, module: Any) -> Preprocessing:
    data = package.data.resolve_model_data_config(module)
    size = _side(network, data["input_size"][1:], data["input_size"][0])
    return Preprocessing(
        size=size,
        mean=tuple(data["mean"]),
        std=tuple(data["std"]),
        interpolation=_filter(data["interpolation"]),
        resize=int(size / data["crop_pct"]),
        stretch=data["crop_mode"] == "squash",
    )


def _open_clip_preprocessing(network: str, module: Any) -> Preprocessing:
    data = module.preprocess_cfg
    size = _side(network, data["size"], 3 if data["mode"] == "RGB" else 1)
    return Preprocessing(
        size=size,
        mean=tuple(data["mean"]),
        std=tuple(data["std"]),
        interpolation=_filter(data["interpolation"]),
        resize=size,
        stretch=data["resize_mode"] == "squash",
    )


def _side(network: str, sides: Any, channels: int) -> int:
    height, width = (sides, sides) if isinstance(sides, int) else sides
    if height != width or channels != 3:
        raise InputError(
            f"option network={network!r} takes inputs of {channels} x {height} x {width}; choose "
            "one that takes three channels of a square"
        )
    return int(height)


def _filter(name: str) -> str:
    """Name of a resampling filter that Pillow has; 'random' means any, for training."""
    return name if name in ("nearest", "bilinear", "bicubic", "lanczos") else "bicubic"
