"""Packaged networks through ONNX Runtime, against PyTorch."""

import numpy as np
import onnxruntime
import pytest
import torch

from cppcl.features.networks import cnn
from cppcl.features.networks.cnn import Cnn
from cppcl.features.networks.loading import find_node, load_network
from cppcl.features.networks.onnx_message import OnnxGraph
from cppcl.features.networks.onnx_runtime import TOLERANCE, last_output, through_onnx_runtime
from cppcl.features.networks.packaged import PACKAGED


def by_pytorch(monkeypatch, extractor, pictures):
    """Features by PyTorch alone."""
    with monkeypatch.context() as patch:
        cnn._loaded.cache_clear()
        patch.setattr(cnn, "through_onnx_runtime", lambda network: network)
        rows = extractor.transform(pictures)
    cnn._loaded.cache_clear()
    return rows


@pytest.mark.parametrize("network", PACKAGED)
def test_features_are_those_of_pytorch(network, drawings, monkeypatch):
    noise = np.random.default_rng(0).integers(0, 256, (300, 280, 3), dtype=np.uint8)
    pictures = [*drawings[:3], noise, np.zeros((9, 9, 3), dtype=np.uint8)]
    extractor = Cnn(network=network, flip=True)
    expected = by_pytorch(monkeypatch, extractor, pictures)
    rows = extractor.transform(pictures)
    assert (rows != expected).any(), "PyTorch computed both"
    largest = expected.max(axis=1, keepdims=True)
    assert (np.abs(rows - expected) <= TOLERANCE * largest).all()


def test_averages_are_those_of_the_module_in_double_precision():
    network = load_network(find_node("efficientnet_lite0", None), None)
    batch = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 224, 224)))
    with torch.inference_mode():
        expected = network.module.double().extract_features(batch)
    network.module.float()
    fast = through_onnx_runtime(network)
    assert fast.module is None
    output = fast.run(batch.float())
    assert output.shape == (2, 1280)
    torch.testing.assert_close(output.double(), expected.mean((2, 3)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("options", [{"node": "_conv_stem"}, {"precision": "bfloat16"}], ids=str)
def test_other_nodes_and_numbers_stay_with_pytorch(options, drawings, monkeypatch):
    monkeypatch.setattr(cnn, "through_onnx_runtime", lambda network: pytest.fail("went through"))
    monkeypatch.setattr(cnn, "check_precision", lambda *given: None)
    cnn._loaded.cache_clear()
    assert Cnn(**options).transform(drawings[:1]).any()


def test_as_many_threads_as_pytorch(monkeypatch):
    given, session = [], onnxruntime.InferenceSession

    def note(model, options, providers):
        given.append((options.intra_op_num_threads, providers))
        return session(model, options, providers=providers)

    monkeypatch.setattr(onnxruntime, "InferenceSession", note)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    graph = OnnxGraph((200,))
    compute = last_output(graph.model(graph.add("Add", graph.input, graph.input)))
    values = np.arange(600, dtype=np.float32).reshape(3, 200)
    np.testing.assert_array_equal(compute(values), 2 * values)
    assert given == [(3, ["CPUExecutionProvider"])]
