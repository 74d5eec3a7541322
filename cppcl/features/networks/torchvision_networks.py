"""Networks of torchvision, without memory for their weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cppcl.features.networks.input import Preprocessing
from cppcl.features.networks.weights import default_weights

if TYPE_CHECKING:
    import torch


def build_torchvision(name: str) -> tuple[torch.nn.Module, Preprocessing]:
    """Build a classification model of torchvision.

    What it expects of its input is read from torchvision's entry for the weights that it publishes
    as the model's best: side, side before cropping, means, deviations and resampling filter.

    Raises
    ------
    InputError
        torchvision has no such model.
    """
    import torch
    from torchvision.models import get_model_builder

    transforms = default_weights(name).transforms()
    preprocessing = Preprocessing(
        size=int(transforms.crop_size[0]),
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
        interpolation=transforms.interpolation.value,
        resize=int(transforms.resize_size[0]),
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


def present_names(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename the arrays of the published DenseNets, which have names of an older form."""
    return {
        re.sub(r"(denselayer\d+\.(norm|conv))\.(?=\d\.)", r"\1", key): value
        for key, value in state.items()
    }
