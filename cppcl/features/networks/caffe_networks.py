"""The networks that came with Caffe, as torch modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cppcl.errors import InputError
from cppcl.features.networks.input import Preprocessing
from cppcl.validation import suggestion

if TYPE_CHECKING:
    import torch

POOL_FIRST = {"caffenet": True, "caffe_alexnet": False}
"""True if a network pools before it normalises."""

MEAN_BGR = (104.00698793, 116.66876762, 122.67891434)
"""Mean of ImageNet's training pictures, blue, green and red in [0, 255], as Caffe publishes it."""


def build_caffe(name: str, node: str) -> tuple[torch.nn.Module, Preprocessing]:
    r"""Build a Caffe network as far as a node, without memory for its weights.

    Both follow Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional
    neural networks", NIPS 2012: convolutions 2, 4 and 5 are in two groups, of 96-256-384-384-256
    channels, and responses are normalised over the n = 5 neighbouring channels,

    .. math:: b_c = a_c \Big/ \Big(1 + \frac{\alpha}{n} \sum_{|d - c| \le 2} a_d^2\Big)^\beta,
              \qquad \alpha = 10^{-4},\ \beta = 0.75

    'caffenet' (BVLC reference CaffeNet) pools before it normalises, 'caffe_alexnet' (BVLC AlexNet)
    after. Layers have Caffe's names. The input is blue, green, red in [0, 255] less its mean,
    227 x 227; Caffe stretches pictures to 256 x 256 and takes the middle, and subtracts a mean
    picture, of which we take the mean colour.

    Parameters
    ----------
    name : {'caffenet', 'caffe_alexnet'}
        Which network.
    node : str
        Last layer, such as 'fc6'; what comes after it needs no weights.

    Raises
    ------
    InputError
        There is no such layer.
    """
    import torch

    with torch.device("meta"):
        layers = _layers(POOL_FIRST[name])
    if node not in layers:
        raise InputError(f"option network={name!r} has no node {node!r}{suggestion(node, layers)}")
    names = list(layers)
    kept = OrderedDict((key, layers[key]) for key in names[: names.index(node) + 1])
    preprocessing = Preprocessing(
        size=227,
        mean=tuple(value / 255 for value in reversed(MEAN_BGR)),
        std=(1 / 255,) * 3,
        interpolation="bilinear",
        resize=256,
        stretch=True,
        channels="bgr",
    )
    return torch.nn.Sequential(kept), preprocessing


def fit_to(module: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Choose the arrays that a module has, and drop the sides of 1 that Caffe puts in front."""
    fitted: dict[str, Any] = {}
    for key, parameter in module.state_dict().items():
        if key in state:
            value = state[key]
            while value.ndim > parameter.ndim and value.shape[0] == 1:
                value = value[0]
            fitted[key] = value
    return fitted


def _layers(pool_first: bool) -> OrderedDict[str, torch.nn.Module]:
    from torch import nn

    def pool() -> nn.Module:
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    class Normalisation(nn.LocalResponseNorm):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            # In float32 always: torch has it in no shorter numbers on a CPU.
            return super().forward(x.float()).to(x.dtype)

    def normalise() -> nn.Module:
        return Normalisation(5, alpha=1e-4, beta=0.75, k=1.0)

    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, convolution in enumerate(
        (
            nn.Conv2d(3, 96, 11, stride=4),
            nn.Conv2d(96, 256, 5, padding=2, groups=2),
            nn.Conv2d(256, 384, 3, padding=1),
            nn.Conv2d(384, 384, 3, padding=1, groups=2),
            nn.Conv2d(384, 256, 3, padding=1, groups=2),
        ),
        start=1,
    ):
        layers[f"conv{number}"], layers[f"relu{number}"] = convolution, nn.ReLU()
        if number < 3:
            for kind in ("pool", "norm") if pool_first else ("norm", "pool"):
                layers[f"{kind}{number}"] = pool() if kind == "pool" else normalise()
    layers["pool5"], layers["flatten"] = pool(), nn.Flatten()
    for number, (n_in, n_out) in enumerate(((9216, 4096), (4096, 4096), (4096, 1000)), start=6):
        layers[f"fc{number}"] = nn.Linear(n_in, n_out)
        if number < 8:
            layers[f"relu{number}"] = nn.ReLU()
    return layers
