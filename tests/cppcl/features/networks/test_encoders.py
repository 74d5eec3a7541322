"""Encoders of timm and open_clip: with the packages where they are installed, else stand-ins."""

import logging
import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features.networks.cnn import Cnn
from cppcl.features.networks.input import Preprocessing, prepare
from cppcl.features.networks.loading import build, find_node

TIMM, CLIP = "test_vit", "ViT-S-32-alt"


class Tower(nn.Module):
    """A convolution, a rectifier, a mean and a projection, like any encoder."""

    def __init__(self, n_out):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 8, stride=8)
        self.head = nn.Linear(6, n_out) if n_out else nn.Identity()

    def forward(self, x):
        return self.head(torch.relu(self.stem(x)).mean((2, 3)) - 0.2)


def stand_in_for_timm():
    def create_model(name, pretrained, num_classes):
        assert (name, pretrained) == (TIMM, False)
        module = Tower(num_classes)
        module.pretrained_cfg = {"classifier": "head"}
        return module

    config = {
        "input_size": (3, 160, 160),
        "mean": (0.5, 0.4, 0.3),
        "std": (0.5, 0.6, 0.7),
        "interpolation": "bicubic",
        "crop_pct": 0.95,
        "crop_mode": "center",
    }
    package = ModuleType("timm")
    package.create_model = create_model
    package.list_models = lambda pretrained=False: [f"{TIMM}.r160_in1k"] if pretrained else [TIMM]
    package.data = SimpleNamespace(resolve_model_data_config=lambda module: config)
    return package


def stand_in_for_open_clip():
    def create_model(name, load_weights, pretrained_text):
        assert (name, load_weights, pretrained_text) == (CLIP, False, False)
        model = nn.Module()
        model.visual, model.text = Tower(5), nn.Linear(2, 2)
        model.visual.preprocess_cfg = {
            "size": (224, 224),
            "mode": "RGB",
            "mean": (0.48, 0.46, 0.41),
            "std": (0.27, 0.26, 0.28),
            "interpolation": "bicubic",
            "resize_mode": "shortest",
            "fill_color": 0,
        }
        logging.warning("No pretrained weights loaded")
        model.encode_image = model.visual
        return model

    package = ModuleType("open_clip")
    package.create_model = create_model
    package.list_models = lambda: [CLIP]
    return package


@pytest.fixture(params=["timm", "open_clip"])
def kind(request, monkeypatch):
    stand_in = {"timm": stand_in_for_timm, "open_clip": stand_in_for_open_clip}[request.param]
    if find_spec(request.param) is None:
        monkeypatch.setitem(sys.modules, request.param, stand_in())
    return request.param


@pytest.fixture
def network(kind):
    return {"timm": f"timm/{TIMM}", "open_clip": f"open_clip/{CLIP}"}[kind]


@pytest.fixture
def model(kind):
    """The package's own model: of timm with a classifier, of open_clip with a text tower."""
    package = __import__(kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "timm":
            return package.create_model(TIMM, pretrained=False, num_classes=4).eval()
        return package.create_model(CLIP, load_weights=False, pretrained_text=False).eval()


@pytest.fixture
def weights(model, tmp_path):
    path = tmp_path / "checkpoint.pth"
    torch.save(model.state_dict(), path)
    return str(path)


@pytest.fixture
def picture():
    return np.random.default_rng(0).integers(0, 256, (70, 50, 3), dtype=np.uint8)


def expected_preprocessing(kind, model):
    if kind == "timm":
        data = __import__(kind).data.resolve_model_data_config(model)
        size = data["input_size"][1]
        resize = int(size / data["crop_pct"])
        mean, std, interpolation = data["mean"], data["std"], data["interpolation"]
    else:
        data = model.visual.preprocess_cfg
        size = resize = 224
        mean, std, interpolation = data["mean"], data["std"], data["interpolation"]
    return Preprocessing(
        size=size, mean=tuple(mean), std=tuple(std), interpolation=interpolation, resize=resize
    )


def test_encoder_equals_the_package(kind, network, model, weights, picture):
    preprocessing = expected_preprocessing(kind, model)
    assert build(find_node(network, None))[1] == preprocessing
    if kind == "timm":
        model.head = nn.Identity()
    with torch.inference_mode():
        inputs = torch.from_numpy(prepare(picture, preprocessing))[None]
        expected = model.encode_image(inputs) if kind == "open_clip" else model(inputs)
    extractor = Cnn(network=network, weights=weights)
    rows = extractor.transform([picture])
    assert rows.shape == (1, extractor.dimension) == tuple(expected.shape)
    assert expected.min() < 0  # what an encoder returns is not rectified
    np.testing.assert_allclose(rows, expected, atol=1e-5)


def test_nodes_of_encoders(kind, network, model, weights, picture):
    tower = model if kind == "timm" else model.visual
    node = next(name for name, child in tower.named_modules() if isinstance(child, nn.Conv2d))
    extractor = Cnn(network=network, node=node, weights=weights, relu=False)
    convolution = dict(tower.named_modules())[node]
    inputs = torch.from_numpy(prepare(picture, expected_preprocessing(kind, model)))[None]
    with torch.inference_mode():
        expected = convolution(inputs).mean((2, 3))
    np.testing.assert_allclose(extractor.transform([picture]), expected, atol=1e-5)
    assert extractor.dimension == expected.shape[1]
    with pytest.raises(InputError, match=f"no node '{node}x'.*'{node}'"):
        Cnn(network=network, node=f"{node}x", weights=weights).transform([picture])


def test_the_image_tower_alone_will_do(kind, network, model, weights, picture, tmp_path):
    tower = model if kind == "timm" else model.visual
    path = tmp_path / "tower.pth"
    torch.save(tower.state_dict(), path)
    rows = Cnn(network=network, weights=str(path)).transform([picture])
    np.testing.assert_array_equal(rows, Cnn(network=network, weights=weights).transform([picture]))


def test_unknown_models_are_named(kind, network, weights):
    with pytest.raises(InputError, match=f"{kind} has no model .*did you mean"):
        _ = Cnn(network=f"{network}x", weights=weights).dimension


def test_building_leaves_the_seed_of_torch_alone_and_warns_of_nothing(
    network, weights, picture, caplog
):
    state = torch.random.get_rng_state()
    Cnn(network=network, weights=weights).transform([picture])
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not any("No pretrained weights" in r.message for r in caplog.get_records("call"))
    logging.warning("heard")
    assert caplog.messages[-1] == "heard"


def test_a_package_that_is_not_installed_is_named_with_its_extra(kind, network, monkeypatch):
    monkeypatch.setitem(sys.modules, kind, None)
    words = rf"{network}' needs the package {kind}; .*pip install 'cppcl\[{kind}\]'"
    with pytest.raises(DataUnavailableError, match=words):
        build(find_node(network, None))


@pytest.mark.parametrize("input_size", [(1, 160, 160), (3, 160, 128)])
def test_inputs_that_are_no_square_of_three_channels_are_refused(input_size, monkeypatch):
    package = stand_in_for_timm()
    config = package.data.resolve_model_data_config(None) | {"input_size": input_size}
    package.data.resolve_model_data_config = lambda module: config
    monkeypatch.setitem(sys.modules, "timm", package)
    with pytest.raises(InputError, match="three channels of a square"):
        build(find_node(f"timm/{TIMM}", None))
