"""Options of the network extractor: components, flips, precision, and where rows come from."""

import pickle

import numpy as np
import pytest
import torch
import torchvision

from cppcl.errors import InputError, NotFittedError
from cppcl.features import make_extractor
from cppcl.features.networks.cnn import MICRO_BATCH, Cnn, check_precision
from cppcl.features.networks.loading import KNOWN, find_node, output_dimension
from cppcl.features.networks.torchvision_networks import build_torchvision
from cppcl.features.principal import principal_components

NETWORK = {"network": "squeezenet1_1", "node": "features.3"}


@pytest.fixture(autouse=True)
def _on_cpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "squeezenet.pth"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        torch.save(torchvision.models.squeezenet1_1(weights=None).state_dict(), path)
    return str(path)


@pytest.fixture
def make(weights):
    return lambda **options: Cnn(**NETWORK, weights=weights, **options)


def test_alexnet_gives_fc6_after_its_rectifier(tmp_path):
    """4096 values, as torchvision's own layers compute them."""
    generator = torch.Generator().manual_seed(0)

    with torch.device("meta"):
        model = torchvision.models.alexnet(weights=None)
    state = {}
    for name, parameter in model.state_dict().items():
        # Rows of matrices are shifted views of one vector, so that the file holds no more.
        shape = parameter.shape
        values = torch.randn(sum(shape) if len(shape) == 2 else shape, generator=generator) / 20
        state[name] = values.as_strided(shape, (1, 1)) if len(shape) == 2 else values
    path = tmp_path / "alexnet.pth"
    torch.save(state, path)
    assert path.stat().st_size < 2e7
    model.load_state_dict(state, assign=True)
    model.eval()
    preset = torchvision.models.AlexNet_Weights.DEFAULT.transforms()
    square = np.full((224, 224, 3), 255, dtype=np.uint8)
    square[:, 40:190] = np.random.default_rng(0).integers(0, 256, (224, 150, 3))
    inputs = torch.from_numpy(square).permute(2, 0, 1)[None] / 255
    inputs = torchvision.transforms.functional.normalize(inputs, preset.mean, preset.std)
    with torch.inference_mode():
        flat = torch.flatten(model.avgpool(model.features(inputs)), 1)
        expected = model.classifier[1](flat)
    assert 0.2 < (expected < 0).float().mean() < 0.8
    for options, values in (({}, expected.relu()), ({"relu": False}, expected)):
        extractor = Cnn(network="alexnet", weights=str(path), **options)
        rows = extractor.transform([square])
        assert rows.shape == (1, extractor.dimension) == (1, 4096)
        np.testing.assert_allclose(rows, values, rtol=1e-4, atol=1e-5 * float(values.abs().max()))


def test_components_are_learned_from_features_of_training_pictures(make, drawings):
    extractor = make(n_components=3)
    assert extractor.learns
    assert not make().learns
    assert not Cnn.learns
    features = make().transform(drawings)
    fitted = extractor.fit(iter(drawings[:6]))
    mean, components = principal_components(features[:6], 3)
    np.testing.assert_array_equal(fitted.to_arrays()["mean"], mean)
    np.testing.assert_array_equal(fitted.to_arrays()["components"], components)
    rows = fitted.transform(drawings)
    assert rows.shape == (len(drawings), extractor.dimension) == (len(drawings), 3)
    np.testing.assert_allclose(rows, (features - mean) @ components.T, atol=1e-5)
    again = make(n_components=3).from_arrays(fitted.to_arrays())
    assert again.transform(drawings[2:3]).tobytes() == rows[2:3].tobytes()


def test_what_learned_survives_pickling_and_batching(make, drawings):
    fitted = make(n_components=3).fit(drawings)
    rows = fitted.transform(drawings)
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.learns
    assert copy == fitted
    apart = np.concatenate([copy.transform([picture]) for picture in drawings])
    assert apart.tobytes() == rows.tobytes()


def test_components_are_learned_from_a_draw_where_there_are_many(make, drawings):
    def learn(**options):
        return make(n_components=2, **options).fit(drawings).to_arrays()["mean"]

    every = learn()
    few = learn(max_samples=4)
    assert not np.array_equal(few, every)
    np.testing.assert_array_equal(few, learn(max_samples=4))
    assert not np.array_equal(few, learn(max_samples=4, seed=1))
    np.testing.assert_array_equal(every, learn(max_samples=len(drawings), seed=1))


def test_components_need_learning_and_enough_pictures(make, drawings):
    with pytest.raises(NotFittedError, match="fit"):
        make(n_components=3).transform(drawings)
    with pytest.raises(InputError, match=r"3 training pictures vary in 2 directions.*=3"):
        make(n_components=3).fit(drawings[:3])
    with pytest.raises(
        InputError, match=r"n_components=65 exceeds the 64 values of squeezenet1_1"
    ):
        Cnn(network="squeezenet1_1:features.0", weights="none", n_components=65).fit(drawings)
    with pytest.raises(InputError, match="picture 2 is"):
        make(n_components=3).fit([*drawings[:2], drawings[2][..., 0]])


def test_without_components_there_is_nothing_to_learn(make):
    extractor = make()
    assert extractor.fit(iter([])) is extractor  # pictures are not even read
    assert extractor.shapes == extractor.to_arrays() == {}


def test_flips_average_a_picture_and_its_mirror_image(make, drawings):
    mirrored = [picture[:, ::-1] for picture in drawings]
    plain, flipped = make().transform(drawings), make().transform(mirrored)
    assert np.abs(plain - flipped).max() > 1e-3
    rows = make(flip=True).transform(drawings)
    np.testing.assert_allclose(rows, (plain + flipped) / 2, atol=1e-5)
    np.testing.assert_allclose(make(flip=True).transform(mirrored), rows, atol=1e-5)


@pytest.fixture
def able(monkeypatch):
    """A processor that is said to have bfloat16 instructions, as torch computes with it anyway."""
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_bf16": True})


def test_bfloat16_is_near_float32_and_is_used(make, drawings, able):
    exact, rows = make().transform(drawings), make(precision="bfloat16").transform(drawings)
    assert rows.dtype == np.float32
    errors = np.linalg.norm(rows - exact, axis=1) / np.linalg.norm(exact, axis=1)
    # bfloat16 has 8 bits: one rounding is up to 2^-9 = 0.2 %, and here are three convolutions.
    assert 1e-4 < errors.max() < 0.02
    cosines = np.einsum("ij,ij->i", rows, exact)
    cosines /= np.linalg.norm(rows, axis=1) * np.linalg.norm(exact, axis=1)
    assert cosines.min() > 0.999
    np.testing.assert_array_equal(make().transform(drawings), exact)  # kept apart


def test_bfloat16_is_refused_where_it_is_only_slower(make, drawings, monkeypatch):
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx2": True})
    with pytest.raises(InputError, match=r"precision='bfloat16'.*cpu.*precision='float32'"):
        make(precision="bfloat16").transform(drawings)
    make().transform(drawings[:1])


@pytest.mark.parametrize("supported", [True, False])
def test_bfloat16_on_a_gpu(supported, monkeypatch):
    asked = []

    def is_supported(including_emulation):
        asked.append(including_emulation)
        return supported

    monkeypatch.setattr("torch.cuda.is_bf16_supported", is_supported)
    check_precision("float32", "cuda")
    assert not asked
    if supported:
        check_precision("bfloat16", "cuda")
    else:
        with pytest.raises(InputError, match="this cuda has no instructions"):
            check_precision("bfloat16", "cuda")
    assert asked == [False]


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("size", [3, 32])
def test_rows_stay_with_their_pictures_in_batches(make, drawings, monkeypatch, size, flip):
    """As on a GPU: a batch is collected after the next was started."""
    expected = make(flip=flip).transform(drawings)
    monkeypatch.setitem(MICRO_BATCH, "cpu", size)
    order = [5, 0, 3, 7, 1, 6, 2]
    rows = make(flip=flip).transform([drawings[k] for k in order])
    np.testing.assert_allclose(rows, expected[order], atol=1e-5)


@pytest.mark.parametrize("room", [1, 2, 0])
def test_batches_are_halved_where_a_gpu_has_no_memory(make, drawings, monkeypatch, room):
    expected = make().transform(drawings)
    sizes, run = [], Cnn._run

    def run_in_little_memory(self, network, batch, device):
        sizes.append(len(batch))
        if len(batch) > room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, network, batch, device)

    monkeypatch.setattr(Cnn, "_run", run_in_little_memory)
    monkeypatch.setitem(MICRO_BATCH, "cpu", 8)
    if room == 0:
        with pytest.raises(torch.OutOfMemoryError):
            make().transform(drawings)
        assert sizes == [8, 4, 2, 1]
        return
    rows = make().transform(drawings)
    np.testing.assert_allclose(rows, expected, atol=1e-5)
    assert sizes[:3] == [8, 4, 2]
    assert set(sizes[3 if room == 1 else 2 :]) == {room}


def test_framing_is_that_of_the_weights(make, weights, drawings):
    _, preprocessing = build_torchvision("squeezenet1_1")
    assert (preprocessing.size, preprocessing.resize) == (224, 256)
    padded, cropped = make().transform(drawings), make(framing="crop").transform(drawings)
    assert np.abs(padded - cropped).max() > 1e-2


def test_names_of_nodes_are_understood_in_every_form(weights):
    parameters = [
        Cnn(**options, weights=weights).parameters()
        for options in (
            {"network": "alexnet"},
            {"network": "alexnet", "node": "fc6"},
            {"network": "alexnet:fc6"},
            {"network": "alexnet:classifier.1"},
        )
    ]
    assert parameters[0]["node"] == "classifier.1"
    assert all(other == parameters[0] for other in parameters)
    assert Cnn(network="alexnet", node="fc7").parameters()["node"] == "classifier.4"


def test_relu_is_off_for_what_an_encoder_returns(weights):
    for options, expected in (
        ({}, True),
        ({"network": "alexnet"}, True),
        ({"network": "timm/resnet18"}, False),
        ({"network": "timm/resnet18", "node": "layer1"}, True),
        ({"network": "open_clip/ViT-B-32", "relu": True}, True),
        ({"relu": False}, False),
    ):
        options = {"weights": weights, **options}
        assert Cnn(**options).parameters()["relu"] is expected


@pytest.mark.parametrize("network", sorted(KNOWN))
def test_known_networks_have_the_dimension_that_is_said(network, monkeypatch):
    target = find_node(network, None)
    monkeypatch.setattr("cppcl.features.networks.loading.KNOWN", {})
    assert output_dimension(target) == KNOWN[network].dimension


def test_licences_are_those_of_the_weights(weights):
    assert make_extractor("cnn").licence == "Apache-2.0"
    assert "BSD-3-Clause" in Cnn(network="alexnet").licence
    assert "SWAG" in Cnn(network="vit_h_14:encoder").licence
    assert "unrestricted" in Cnn(network="caffenet", weights=weights).licence
    for network in ("alexnet", "timm/resnet18", "open_clip/ViT-B-32"):
        assert Cnn(network=network, weights=weights).licence == "that of the weights file"
