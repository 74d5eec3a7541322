import numpy as np
import pytest
import torch
from PIL import Image

from cppcl.errors import InputError
from cppcl.features.networks.caffe_networks import POOL_FIRST, build_caffe
from cppcl.features.networks.cnn import Cnn
from tests.oracles.caffe_network import SHAPES, features, random_weights

from .caffe_files import caffemodel

CONVOLUTIONS = tuple(SHAPES)[:5]
MEAN = np.array([104.00698793, 116.66876762, 122.67891434])  # blue, green, red


@pytest.fixture(scope="module")
def picture():
    picture = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    return np.kron(picture, np.ones((5, 5, 1), dtype=np.uint8))


@pytest.fixture(scope="module")
def convolutions():
    return random_weights(CONVOLUTIONS)


@pytest.fixture(scope="module")
def file(tmp_path_factory, convolutions):
    """The convolutions alone, as Caffe writes them now."""
    path = tmp_path_factory.mktemp("caffe") / "convolutions.caffemodel"
    path.write_bytes(caffemodel(convolutions))
    return path


def network_input(picture):
    """On a white square, brought to 227 pixels, blue first, less the mean."""
    size = max(picture.shape[:2])
    square = np.full((size, size, 3), 255, dtype=np.uint8)
    top, left = ((size - side) // 2 for side in picture.shape[:2])
    square[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    image = Image.fromarray(square).resize((227, 227), Image.Resampling.BILINEAR)
    return (np.asarray(image)[..., ::-1] - MEAN).transpose(2, 0, 1)


def assert_near(rows, expected):
    error = np.linalg.norm(rows - expected) / np.linalg.norm(expected)
    assert error < 2e-5


@pytest.mark.parametrize("network", sorted(POOL_FIRST))
@pytest.mark.parametrize("node", ["conv1", "conv2", "conv4", "pool5"])
def test_layers_equal_the_reference(network, node, picture, convolutions, file):
    extractor = Cnn(network=network, node=node, weights=str(file), relu=False)
    expected = features(
        network_input(picture), convolutions, node, pool_first=network == "caffenet"
    )
    assert extractor.dimension == len(expected)
    assert_near(extractor.transform([picture])[0], expected.mean(axis=(1, 2)))


def test_fc6_after_its_rectifier_from_a_file_of_the_older_form(
    picture, convolutions, tmp_path, monkeypatch
):
    """The feature of the paper: 4096 values, of a file with full connections of four sides."""
    weights = convolutions | random_weights(["fc6"], seed=1)
    path = tmp_path / "bvlc_reference_caffenet.caffemodel"
    path.write_bytes(caffemodel(weights | {"fc8_other": [np.zeros((2, 2), np.float32)]}, old=True))
    extractor = Cnn(network="caffenet", weights=str(path))
    rows = extractor.transform([picture])
    expected = features(network_input(picture), weights, "fc6", pool_first=True)
    assert rows.shape == (1, extractor.dimension) == (1, 4096)
    assert 0.2 < (expected < 0).mean() < 0.8
    assert_near(rows[0], np.maximum(expected, 0))
    assert extractor.parameters()["node"] == "fc6"
    assert extractor.parameters()["relu"] is True


def test_bfloat16_is_near(picture, file, monkeypatch):
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_bf16": True})
    options = {"network": "caffenet", "node": "pool5", "weights": str(file)}
    exact = Cnn(**options).transform([picture])
    rows = Cnn(**options, precision="bfloat16").transform([picture])
    error = np.linalg.norm(rows - exact) / np.linalg.norm(exact)
    assert 1e-4 < error < 0.03


def test_the_order_of_pooling_and_normalising_matters(picture, file):
    rows = [
        Cnn(network=network, node="pool5", weights=str(file)).transform([picture])[0]
        for network in sorted(POOL_FIRST)
    ]
    assert np.linalg.norm(rows[0] - rows[1]) > 1e-3 * np.linalg.norm(rows[0])


@pytest.mark.parametrize("suffix", [".npz", ".pth"])
def test_converted_files_give_the_same(suffix, picture, convolutions, file, tmp_path):
    path = tmp_path / f"converted{suffix}"
    arrays = {
        f"{layer}.{kind}": array
        for layer, pair in convolutions.items()
        for kind, array in zip(("weight", "bias"), pair, strict=True)
    }
    if suffix == ".npz":
        np.savez(path, **arrays)
    else:
        tensors = {f"module.{key}": torch.from_numpy(array) for key, array in arrays.items()}
        torch.save({"epoch": 3, "state_dict": tensors}, path)
    rows = [
        Cnn(network="caffenet", node="pool5", weights=str(weights)).transform([picture])
        for weights in (file, path)
    ]
    np.testing.assert_array_equal(rows[0], rows[1])


def test_crop_stretches_as_caffe_does(picture, convolutions, file):
    extractor = Cnn(network="caffenet", node="conv1", weights=str(file), framing="crop")
    image = Image.fromarray(picture).resize((256, 256), Image.Resampling.BILINEAR)
    middle = np.asarray(image)[14:241, 14:241, ::-1] - MEAN
    expected = features(middle.transpose(2, 0, 1), convolutions, "conv1", pool_first=True)
    assert_near(extractor.transform([picture])[0], np.maximum(expected, 0).mean(axis=(1, 2)))


def test_weights_that_lack_a_layer_or_are_of_another_network_are_named(
    picture, convolutions, file, tmp_path
):
    with pytest.raises(InputError, match=r"no state_dict of caffenet: .*fc6\.weight"):
        Cnn(network="caffenet", weights=str(file)).transform([picture])
    other = dict(convolutions)
    other["conv2"] = [np.zeros((256, 96, 5, 5), np.float32), np.zeros(256, np.float32)]
    path = tmp_path / "other.caffemodel"
    path.write_bytes(caffemodel(other))
    with pytest.raises(InputError, match=r"other\.caffemodel.*conv2\.weight"):
        Cnn(network="caffenet", node="pool5", weights=str(path)).transform([picture])


def test_unknown_layers_are_named(file):
    with pytest.raises(InputError, match=r"'caffenet' has no node 'fc9'.*'fc"):
        _ = Cnn(network="caffenet", node="fc9", weights=str(file)).dimension


@pytest.mark.parametrize(("node", "dimension"), [("fc7", 4096), ("fc8", 1000), ("norm2", 256)])
def test_dimensions(node, dimension, file):
    assert Cnn(network="caffe_alexnet", node=node, weights=str(file)).dimension == dimension


def test_layers_after_the_node_are_not_built():
    module, _ = build_caffe("caffenet", "relu6")
    assert list(dict(module.named_children()))[-2:] == ["fc6", "relu6"]
