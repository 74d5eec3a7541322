"""CaffeNet and Caffe's AlexNet as far as fc7, layer by layer in numpy, in double precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Weights = Mapping[str, Sequence[Array]]

SHAPES = {
    "conv1": (96, 3, 11, 11),
    "conv2": (256, 48, 5, 5),
    "conv3": (384, 256, 3, 3),
    "conv4": (384, 192, 3, 3),
    "conv5": (256, 192, 3, 3),
    "fc6": (4096, 9216),
    "fc7": (4096, 4096),
}
"""Weights of the layers: of convolutions in two groups, of half the input channels."""


def random_weights(layers: Sequence[str], seed: int = 0) -> dict[str, list[NDArray[np.float32]]]:
    """Weights that keep the scale of what passes through, and biases of a tenth of it."""
    generator = np.random.default_rng(seed)
    # Drawn once, since fc6 has 38 million: rows of the matrices are still all different.
    drawn = generator.standard_normal(262_147, dtype=np.float32)
    weights = {}
    for layer in layers:
        shape = SHAPES[layer]
        scale = np.float32(np.sqrt(2 / np.prod(shape[1:])))
        biases = generator.standard_normal(shape[0], dtype=np.float32)
        if layer == "conv1":
            scale *= np.float32(0.3)  # of inputs of up to 150; large enough to be normalised
            biases *= 10
        weights[layer] = [np.resize(drawn, shape) * scale, biases / 10]
    return weights


def features(x: Array, weights: Weights, node: str, *, pool_first: bool) -> Array:
    """Output of a layer, before its rectifier, for a (3, 227, 227) input: blue, green, red."""
    x = x.astype(np.float64)
    for number, (stride, padding, groups) in enumerate(
        ((4, 0, 1), (1, 2, 2), (1, 1, 1), (1, 1, 2), (1, 1, 2)), start=1
    ):
        name = f"conv{number}"
        x = convolve(x, *weights[name], stride=stride, padding=padding, groups=groups)
        if node == name:
            return x
        x = np.maximum(x, 0)
        if number < 3:
            x = normalise(pool(x)) if pool_first else pool(normalise(x))
            if node == (f"norm{number}" if pool_first else f"pool{number}"):
                return x
    x = pool(x)
    if node == "pool5":
        return x
    x = weights["fc6"][0].astype(np.float64) @ x.ravel() + weights["fc6"][1]
    if node == "fc6":
        return x
    return weights["fc7"][0].astype(np.float64) @ np.maximum(x, 0) + weights["fc7"][1]


def convolve(
    x: Array, kernels: Array, biases: Array, *, stride: int, padding: int, groups: int
) -> Array:
    """Correlate each group of channels with its own kernels."""
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    outputs = []
    inputs = np.split(x, groups)
    for part, kernel in zip(inputs, np.split(kernels.astype(np.float64), groups), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(part, kernel.shape[2:], axis=(1, 2))
        windows = windows[:, ::stride, ::stride]
        outputs.append(np.tensordot(kernel, windows, axes=((1, 2, 3), (0, 3, 4))))
    return np.concatenate(outputs) + biases[:, None, None]


def pool(x: Array) -> Array:
    """Maxima of 3 x 3 positions, every other one."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return windows[:, ::2, ::2].max(axis=(3, 4))


def normalise(x: Array) -> Array:
    """Divide each channel by what the five around it have."""
    result = np.empty_like(x)
    for c in range(len(x)):
        around = x[max(c - 2, 0) : c + 3]
        result[c] = x[c] / (1 + 1e-4 / 5 * (around**2).sum(axis=0)) ** 0.75
    return result
