"""Encoders of timm and open_clip, against what the packages themselves compute."""

import logging
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features import make_extractor
from cppcl.features.networks.cnn import Cnn
from cppcl.features.networks.encoders import build_encoder, cached_weights
from tests.tiny_encoders import CLIP, TIMM, clip_model, register_clip, saved, timm_model

KINDS = ("timm", "open_clip")
NAMES = {"timm": TIMM, "open_clip": CLIP}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoders")


@pytest.fixture(scope="module")
def models(folder):
    """Of timm with a classifier, of open_clip with a text tower."""
    return {"timm": timm_model(num_classes=4), "open_clip": clip_model(folder)}


@pytest.fixture(scope="module")
def files(models, folder):
    return {kind: saved(model, folder / f"{kind}.pth") for kind, model in models.items()}


@pytest.fixture
def options(files):
    return {
        "timm": {"network": TIMM, "weights": files["timm"]},
        "open_clip": {"network": CLIP, "tag": None, "weights": files["open_clip"]},
    }


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(0).integers(0, 256, (70, 50, 3), dtype=np.uint8)


def as_timm_sees(model, picture, **changed):
    import timm

    config = timm.data.resolve_model_data_config(model) | changed
    return timm.data.create_transform(**config, is_training=False)(Image.fromarray(picture))[None]


def test_timm_equals_the_package(models, options, picture):
    """Its own preprocessing, and each pooling."""
    model = models["timm"]
    with torch.inference_mode():
        tokens = model.forward_features(as_timm_sees(model, picture))
        expected = {
            "model": model.forward_head(tokens, pre_logits=True),
            "token": tokens[:, 0],
            "average": tokens[:, 1:].mean(1),
        }
        expected = {pooling: row.numpy() for pooling, row in expected.items()}
    for pooling, row in expected.items():
        extractor = make_extractor("timm", options["timm"] | {"pooling": pooling})
        found = extractor.transform([picture])
        assert found.shape == (1, extractor.dimension)
        np.testing.assert_allclose(found, row, atol=1e-5)
    assert np.abs(expected["token"] - expected["average"]).max() > 0.1
    padded = make_extractor("timm", options["timm"] | {"framing": "pad"}).transform([picture])
    assert np.abs(padded - expected["model"]).max() > 1e-2


def test_open_clip_equals_the_package(models, options, picture):
    import open_clip

    model = models["open_clip"]
    config = open_clip.transform.PreprocessCfg(**model.visual.preprocess_cfg)
    see = open_clip.transform.image_transform_v2(config, is_train=False)
    with torch.inference_mode():
        expected = model.encode_image(see(Image.fromarray(picture))[None])
    extractor = make_extractor("open_clip", options["open_clip"])
    np.testing.assert_allclose(extractor.transform([picture]), expected, atol=1e-5)
    assert extractor.dimension == 24
    assert extractor.parameters()["network"] == CLIP


def test_position_embeddings_are_interpolated_as_timm_does(models, options, picture, tmp_path):
    import timm

    side = 96
    own = timm.create_model(
        TIMM,
        img_size=side,
        num_classes=0,
        pretrained=True,
        pretrained_cfg_overlay={"file": options["timm"]["weights"], "num_classes": 4},
    ).eval()
    with torch.inference_mode():
        expected = own(as_timm_sees(own, picture, input_size=(3, side, side)))
    found = make_extractor("timm", options["timm"] | {"side": side}).transform([picture])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    other = make_extractor("timm", {"network": "test_resnet", "weights": "x", "side": side})
    with pytest.raises(InputError, match="side=96: test_resnet takes no input of this size"):
        _ = other.dimension


def test_published_weights_settle_how_open_clip_sees(monkeypatch, folder):
    import open_clip

    register_clip(folder)
    of_tag = {"mean": (0.5,) * 3, "std": (0.25,) * 3, "resize_mode": "squash", "quick_gelu": True}
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, CLIP, {"mine": of_tag})
    module, seen = build_encoder(f"open_clip/{CLIP}", tag="mine")
    assert (seen.mean, seen.std, seen.stretch) == ((0.5,) * 3, (0.25,) * 3, True)
    assert any(type(part).__name__ == "QuickGELU" for part in module.modules())
    with pytest.raises(InputError, match=r"tag='mina'.*'mine'"):
        build_encoder(f"open_clip/{CLIP}", tag="mina")


@pytest.mark.parametrize("kind", KINDS)
def test_the_image_tower_alone_will_do(kind, models, options, picture, tmp_path):
    tower = models[kind] if kind == "timm" else models[kind].visual
    alone = options[kind] | {"weights": saved(tower, tmp_path / "tower.pth")}
    rows = [make_extractor(kind, given).transform([picture]) for given in (alone, options[kind])]
    np.testing.assert_array_equal(*rows)


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_is_a_network_of_cnn_too(kind, options, picture, files, caplog):
    """Without moving torch's seed, and without a warning that its first weights are random."""
    state = torch.random.get_rng_state()
    extractor = Cnn(network=f"{kind}/{NAMES[kind]}", weights=files[kind], framing="crop")
    rows = extractor.transform([picture])
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not caplog.records
    logging.warning("heard")
    assert caplog.messages == ["heard"]
    assert rows.min() < 0  # what an encoder returns is not rectified
    np.testing.assert_array_equal(rows, make_extractor(kind, options[kind]).transform([picture]))


def test_nodes_of_encoders(models, options, picture):
    node = "patch_embed.proj"
    extractor = make_extractor("timm", options["timm"] | {"node": node, "relu": False})
    with torch.inference_mode():
        inputs = as_timm_sees(models["timm"], picture)
        expected = models["timm"].patch_embed.proj(inputs).mean((2, 3))
    np.testing.assert_allclose(extractor.transform([picture]), expected, atol=1e-5)
    with pytest.raises(InputError, match=r"no node 'patch_embed\.pro'.*'patch_embed\.proj'"):
        make_extractor("timm", options["timm"] | {"node": node[:-1]}).transform([picture])


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_models_are_named(kind, options):
    wrong = options[kind] | {"network": f"{NAMES[kind]}x"}
    with pytest.raises(InputError, match=f"{kind} has no model .*did you mean"):
        _ = make_extractor(kind, wrong).dimension


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_that_is_not_installed_is_named_with_its_extra(kind, options, monkeypatch):
    monkeypatch.setitem(sys.modules, kind, None)
    words = rf"needs the package {kind}; .*pip install 'cppcl\[encoders\]'"
    with pytest.raises(DataUnavailableError, match=words):
        build_encoder(f"{kind}/{NAMES[kind]}")


@pytest.mark.parametrize("changed", [{"input_size": (1, 160, 160)}, {"input_size": (3, 160, 128)}])
def test_inputs_that_are_no_square_of_three_channels_are_refused(changed, monkeypatch):
    import timm

    given = timm.data.resolve_model_data_config(timm_model())
    monkeypatch.setattr(timm.data, "resolve_model_data_config", lambda module: given | changed)
    with pytest.raises(InputError, match="three channels of a square"):
        build_encoder(f"timm/{TIMM}")


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_missing_are_named_and_how_they_are_had(kind, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    extractor = make_extractor(kind)
    folder, file, load = {
        "timm": ("models--timm--vit_small_patch14_dinov2.lvd142m", "model", "timm.create_model"),
        "open_clip": (
            "models--timm--vit_base_patch32_clip_224.openai",
            "open_clip_model",
            "open_clip.create_model",
        ),
    }[kind]
    with pytest.raises(DataUnavailableError) as refused:
        extractor.parameters()
    told = str(refused.value)
    for words in (f"{file}.safetensors", str(tmp_path), "option weights", load):
        assert words in told
    assert "http" not in told
    snapshot = tmp_path / folder / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (tmp_path / folder / "refs").mkdir()
    (tmp_path / folder / "refs" / "main").write_text("abc")
    (snapshot / f"{file}.safetensors").write_bytes(b"weights")
    assert extractor.parameters()["weights"].startswith("sha256:")


def test_models_without_published_weights_ask_for_a_file():
    with pytest.raises(InputError, match="network='timm/test_mambaout2' names no published"):
        cached_weights("timm/test_mambaout2")


@pytest.mark.parametrize(
    ("kind", "changed", "words"),
    [
        ("timm", {"pooling": "max"}, "pooling='max'"),
        ("timm", {"side": 0}, "side=0"),
        ("timm", {"network": None}, "network=None"),
        ("timm", {"pooling": "token", "node": "norm"}, "pooling='token' beside node='norm'"),
        ("open_clip", {"tag": ""}, "tag=''"),
    ],
)
def test_wrong_options_are_named(kind, changed, words):
    with pytest.raises(InputError, match=words):
        make_extractor(kind, changed)


def test_a_network_without_a_class_token_has_none(picture):
    extractor = make_extractor("timm", {"network": "test_resnet", "pooling": "token"})
    with pytest.raises(InputError, match="pooling='token': ResNet has no class token"):
        _ = extractor.dimension


def test_words_are_as_the_text_tower_has_them(models, options, folder, monkeypatch, tmp_path):
    import open_clip

    texts = ["a red car", "fish"]
    extractor = make_extractor("open_clip", options["open_clip"])
    with torch.inference_mode():
        expected = models["open_clip"].encode_text(open_clip.get_tokenizer(CLIP)(texts))
    found = extractor.describe_words(texts)
    assert found.shape == (2, extractor.dimension)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    tower = saved(models["open_clip"].visual, tmp_path / "tower.pth")
    alone = make_extractor("open_clip", options["open_clip"] | {"weights": tower})
    with pytest.raises(InputError, match=r"tower\.pth' holds no text tower of tiny-clip"):
        alone.describe_words(texts)

    def missing(name):
        raise OSError("no such file")

    monkeypatch.setattr(open_clip, "get_tokenizer", missing)
    other = saved(models["open_clip"], tmp_path / "whole.pth")
    lacking = make_extractor("open_clip", options["open_clip"] | {"weights": other})
    with pytest.raises(DataUnavailableError, match="divides words by is not on this machine"):
        lacking.describe_words(texts)


def test_only_whole_towers_take_words(options):
    assert make_extractor("open_clip", options["open_clip"]).takes_words
    within = make_extractor("open_clip", options["open_clip"] | {"node": "ln_post"})
    for extractor, words in (
        (within, "leave both out"),
        (make_extractor("hog"), "knows no words"),
    ):
        assert not extractor.takes_words
        with pytest.raises(InputError, match=words):
            extractor.describe_words(["fish"])
