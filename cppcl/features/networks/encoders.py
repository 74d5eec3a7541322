"""Image encoders of the packages timm and open_clip, by their names there."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features.networks.input import Preprocessing
from cppcl.features.networks.packaged import package_missing
from cppcl.features.networks.weights import FORMATS
from cppcl.validation import suggestion

if TYPE_CHECKING:
    import torch

EXTRAS = {"timm": "encoders", "open_clip": "encoders"}
"""Package of each kind of encoder, and the extra of cppcl that installs it."""
Pooling = Literal["model", "token", "average"]
"""What becomes of the tokens of a picture."""


def build_encoder(
    network: str, *, side: int | None = None, tag: str | None = None
) -> tuple[torch.nn.Module, Preprocessing]:
    """Build an image encoder with random weights, leaving torch's seed as it is.

    Parameters
    ----------
    network : str
        'timm/<model>', which gives the pooled features before the classifier, or
        'open_clip/<model>', the image tower with its projection into the space shared with text.
    side : int or None
        Of the input, pixels, where it is not the model's own; of timm alone.
    tag : str or None
        Published weights of an open_clip model, which settle means, deviations and activations.

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
    package = encoder_package(network)
    known = set(package.list_models())
    if kind == "timm":  # with the names of published weights, which settle means and sizes
        known.update(package.list_models(pretrained=True))
    if name not in known:
        raise InputError(
            f"option network={network!r}: {kind} has no model {name!r}{suggestion(name, known)}"
        )
    with torch.random.fork_rng(devices=[]), quiet():
        if kind == "timm":
            sized = {} if side is None else {"img_size": side}
            try:
                module = package.create_model(name, pretrained=False, num_classes=0, **sized)
            except (TypeError, AssertionError) as error:
                raise InputError(
                    f"option side={side}: {name} takes no input of this size ({error}); leave "
                    "side out"
                ) from error
            return module, _timm_preprocessing(network, package, module, side)
        module = build_clip(package, name, tag).visual
        return module, _open_clip_preprocessing(network, module)


def build_clip(package: Any, name: str, tag: str | None) -> Any:
    """Both towers of a model of open_clip with random weights."""
    published: dict[str, Any] = {}
    if tag is not None:
        tags = package.list_pretrained_tags_by_model(name)
        if tag not in tags:
            raise InputError(
                f"option tag={tag!r}: open_clip has no such weights of {name}"
                f"{suggestion(tag, tags)}"
            )
        of_tag = package.get_pretrained_cfg(name, tag)
        published = {
            "force_preprocess_cfg": {k: v for k, v in of_tag.items() if k in OF_PICTURES},
            "force_quick_gelu": bool(of_tag.get("quick_gelu")),
        }
    return package.create_model(name, load_weights=False, pretrained_text=False, **published)


OF_PICTURES = ("mean", "std", "interpolation", "resize_mode")
"""What open_clip's entry for published weights says about pictures."""


def encoder_package(network: str) -> Any:
    """Import the package of an encoder.

    Raises
    ------
    DataUnavailableError
        It is not installed.
    """
    kind = network.partition("/")[0]
    try:
        return import_module(kind)
    except ImportError as error:
        raise package_missing(error, network, EXTRAS[kind]) from error


def cached_weights(network: str, tag: str | None = None) -> Path:
    """Weights file of an encoder in the cache of its package; nothing is downloaded.

    Parameters
    ----------
    network, tag
        As of `build_encoder`.

    Raises
    ------
    DataUnavailableError
        It is not there.
    InputError
        No weights of the model are published.
    """
    import torch
    from huggingface_hub import constants, try_to_load_from_cache

    kind, _, name = network.partition("/")
    package = encoder_package(network)
    if kind == "timm":
        config = package.get_pretrained_cfg(name)
        entry = config.to_dict() if config is not None else {}
        repository, file = entry.get("hf_hub_id"), entry.get("hf_hub_filename")
        files = [file] if file else ["model.safetensors", "pytorch_model.bin"]
        folder = Path(torch.hub.get_dir()) / "checkpoints"
        load = f"timm.create_model({name!r}, pretrained=True)"
    else:
        entry = package.get_pretrained_cfg(name, tag) if tag else {}
        repository, _, file = str(entry.get("hf_hub") or "").rpartition("/")
        files = [file] if file else ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"]
        folder = Path("~/.cache/clip").expanduser()
        load = f"open_clip.create_model({name!r}, {tag!r})"
    address = str(entry.get("url") or "")
    if not repository and not address:
        raise InputError(
            f"option weights: network={network!r}"
            + (f", tag={tag!r}" if tag else "")
            + f" names no published weights; give the path of a file, {FORMATS}"
        )
    identity, _, revision = str(repository or "").partition("@")
    for file in files if identity else ():
        found = try_to_load_from_cache(identity, file, revision=revision or None)
        if isinstance(found, str):
            return Path(found)
    places = [f"{files[0]} of {identity} in {constants.HF_HUB_CACHE}"] if identity else []
    if address:
        path = folder / Path(address).name
        if path.is_file():
            return path
        places.append(f"{path.name} in {folder}")
    raise DataUnavailableError(
        f"the weights of {network!r} are not on this machine: there is no "
        f"{' and no '.join(places)}; give the path of such a file as option weights. "
        f'On a machine with a network, python -c "import {kind}; {load}" puts it into '
        "the same folder of its own, from which it can be copied"
    )


@contextmanager
def quiet() -> Iterator[None]:
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
    own = {name: tensor.shape for name, tensor in module.state_dict().items()}
    if not own.keys() <= state.keys() or any(state[n].shape != own[n] for n in own):
        # Files of other authors have other names, and position embeddings of other sizes.
        rename: Callable[..., Any] | None = getattr(
            sys.modules.get(type(module).__module__), "checkpoint_filter_fn", None
        )
        state = dict(state) if rename is None else rename(dict(state), module)
    heads = getattr(module, "pretrained_cfg", {}).get("classifier") or ()
    heads = (heads,) if isinstance(heads, str) else tuple(heads)
    return {
        key: value
        for key, value in state.items()
        if key in own or not str(key).startswith(tuple(f"{head}." for head in heads))
    }


def pooled_tokens(module: Any, pooling: Pooling) -> Callable[[torch.Tensor], torch.Tensor]:
    """What a timm model makes of its last features.

    Parameters
    ----------
    module : timm model
        Without its classifier.
    pooling : {'model', 'token', 'average'}
        'model': as the model pools before its classifier. 'token': the class token. 'average':
        the mean of the tokens of places, or of the places of a map.

    Returns
    -------
    callable
        From (n, 3, side, side) to (n, m).

    Raises
    ------
    InputError
        The model has no class token.
    """
    if pooling == "model":
        return module  # type: ignore[no-any-return]
    prefix = int(getattr(module, "num_prefix_tokens", 0))
    if pooling == "token" and getattr(module, "cls_token", None) is None:
        raise InputError(
            f"option pooling='token': {type(module).__name__} has no class token; use "
            "pooling='average', or 'model'"
        )

    def run(batch: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = module.forward_features(batch)
        if pooling == "token":
            return features[:, 0]
        if features.ndim == 3:
            return features[:, prefix:].mean(1)
        channels_last = getattr(module, "output_fmt", "NCHW") == "NHWC"
        return features.mean((1, 2) if channels_last else (2, 3))

    return run


def _timm_preprocessing(
    network: str, package: Any, module: Any, side: int | None
) -> Preprocessing:
    data = package.data.resolve_model_data_config(module)
    size = side or _side(network, data["input_size"][1:], data["input_size"][0])
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
