"""Packaged networks through ONNX Runtime, which takes half of PyTorch's time on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cppcl.features.networks.onnx_message import OnnxGraph

if TYPE_CHECKING:
    import torch

    from cppcl.features.networks.loading import Network

TOLERANCE = 1e-5
"""Largest difference of features from PyTorch's, relative to the largest feature of a picture."""


def through_onnx_runtime(network: Network) -> Network:
    """Let ONNX Runtime compute the averages of a packaged network's last convolution, on the CPU.

    The graph is written and loaded in memory by each process, in a third of a second. The module
    is not held any longer.

    Parameters
    ----------
    network : Network
        A packaged network in float32, whole.

    Returns
    -------
    Network
        Features differ from those of the given one by no more than `TOLERANCE`.
    """
    import torch

    compute = last_output(lite_graph(network.module, network.preprocessing.size))

    def run(batch: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(compute(batch.contiguous().numpy()))

    return replace(network, run=run, module=None, channels_last=False)


def last_output(model: str | bytes) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    """Load an ONNX model of one input on the CPU, and return what computes its last output.

    Parameters
    ----------
    model : str or bytes
        Path of a file, or its content.
    """
    import onnxruntime
    import torch

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    # Threads that wait for the next picture leave the processor to others.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda values: np.asarray(session.run(None, {name: values})[-1])


def lite_graph(module: Any, size: int) -> bytes:
    r"""ONNX model of an EfficientNet-Lite: its last convolution, averaged over positions.

    A normalisation after a convolution with weights w is part of it: with mean :math:`\mu`,
    variance :math:`\sigma^2`, scale :math:`\gamma` and shift :math:`\beta` of each channel, the
    convolution has the weights :math:`s w` and the bias :math:`\beta - s \mu`, where
    :math:`s = \gamma / \sqrt{\sigma^2 + \epsilon}`; computed in double precision.

    Parameters
    ----------
    module : EfficientNet
        Of the package efficientnet-lite-pytorch, in evaluation mode.
    size : int
        Side of its input, pixels.

    Returns
    -------
    bytes
        From (n, 3, size, size) to (n, 1280), both float32.
    """
    graph = OnnxGraph((3, size, size))
    least, most = graph.constant(np.zeros(())), graph.constant(np.full((), 6.0))

    def convolve(x: str, convolution: Any, normalisation: Any, *, rectified: bool = True) -> str:
        mean, variance, gamma, beta = (
            array.detach().double().numpy()
            for array in (
                normalisation.running_mean,
                normalisation.running_var,
                normalisation.weight,
                normalisation.bias,
            )
        )
        scale = gamma / np.sqrt(variance + normalisation.eps)
        weights = convolution.weight.detach().double().numpy() * scale[:, None, None, None]
        # Padding as a layer of its own; none has none.
        left, right, top, bottom = getattr(convolution.static_padding, "padding", (0, 0, 0, 0))
        x = graph.add(
            "Conv",
            x,
            graph.constant(weights),
            graph.constant(beta - scale * mean),
            group=convolution.groups,
            kernel_shape=convolution.kernel_size,
            strides=convolution.stride,
            pads=(top, left, bottom, right),
        )
        return graph.add("Clip", x, least, most) if rectified else x

    x = convolve(graph.input, module._conv_stem, module._bn0)
    for block in module._blocks:
        entered, form = x, block._block_args
        if form.expand_ratio != 1:
            x = convolve(x, block._expand_conv, block._bn0)
        x = convolve(x, block._depthwise_conv, block._bn1)
        x = convolve(x, block._project_conv, block._bn2, rectified=False)
        if block.id_skip and form.stride == 1 and form.input_filters == form.output_filters:
            x = graph.add("Add", x, entered)
    x = convolve(x, module._conv_head, module._bn1)
    return graph.model(graph.add("Flatten", graph.add("GlobalAveragePool", x)))
