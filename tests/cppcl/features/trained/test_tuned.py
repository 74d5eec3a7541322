"""A vision transformer of which LayerNorms and prompts are learned, on random weights."""

import numpy as np
import pytest
import torch

from cppcl.errors import InputError, ResumeError
from cppcl.features import make_extractor
from cppcl.retrieval.metrics import evaluate
from tests.tiny_encoders import TIMM, saved, timm_model

LONG = {"epochs": 40, "batch_size": 4, "learning_rate": 1e-2, "held_out": 0.0}
FROZEN = {"epochs": 1, "batch_size": 4, "learning_rate": 1e-9, "held_out": 0.0}


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    weights = saved(timm_model(), tmp_path_factory.mktemp("tuned") / "timm.pth")
    return {"network": TIMM, "weights": weights, "side": 64}


def rank_1(extractor, pairs):
    codes = [
        extractor.branch(modality).transform([picture for picture, _ in given])
        for modality, given in zip(("sketch", "image"), pairs, strict=True)
    ]
    targets = [[number for _, number in given] for given in pairs]
    return evaluate(*codes, *targets).scores["rank_1"]


@pytest.mark.parametrize("objective", ["infonce", "triplet"])
def test_eight_pictures_are_learned(objective, transformer, pairs, monkeypatch):
    pairs = tuple(given[:4] for given in pairs)
    monkeypatch.setattr(
        "cppcl.features.trained.tokens.MirroredLesson.pictures",
        lambda self, modality, rows: torch.from_numpy(self.views[modality].maps[rows]) / 255,
    )
    extractor = make_extractor("tuned_transformer", transformer | LONG | {"objective": objective})
    untrained = make_extractor("tuned_transformer", transformer | FROZEN).fit_both(*pairs)
    assert rank_1(untrained, pairs) < 0.6
    assert rank_1(extractor.fit_both(*pairs), pairs) > 0.7


@pytest.mark.parametrize("pooling", ["model", "token", "average"])
def test_before_training_and_without_prompts_it_is_the_encoder(pooling, transformer, pairs):
    options = transformer | {"pooling": pooling}
    tuned = make_extractor("tuned_transformer", options | FROZEN | {"prompts": 0}).fit_both(*pairs)
    pictures = [picture for picture, _ in pairs[0]]
    expected = make_extractor("timm", options).transform(pictures)
    np.testing.assert_allclose(tuned.transform(pictures), expected, atol=1e-4)
    prompted = make_extractor("tuned_transformer", options | FROZEN | {"prompts": 2}).fit_both(
        *pairs
    )
    assert np.abs(prompted.transform(pictures) - expected).max() > 1e-3


def test_only_norms_and_prompts_are_learned(transformer, pairs):
    extractor = make_extractor(
        "tuned_transformer", transformer | LONG | {"epochs": 1, "prompts": 5}
    )
    network = extractor.networks()
    (frozen,) = network["encoder"]._frozen
    before = {name: values.clone() for name, values in frozen.state_dict().items()}
    norms = {n for n, m in frozen.named_modules() if isinstance(m, torch.nn.LayerNorm)}
    views = {m: extractor._views(m, g) for m, g in zip(("sketch", "image"), pairs, strict=True)}
    lesson = extractor.lesson(views, 8, "cpu")
    loss = extractor.loss(network, lesson, extractor.batches(lesson, np.random.default_rng(0))[0])
    loss.backward()
    given = {n for n, weight in frozen.named_parameters() if weight.grad is not None}
    assert {name.rpartition(".")[0] for name in given} == norms
    assert network["encoder"].prompts.grad.abs().max() > 0
    assert extractor.n_weights() == 5 * 64 + sum(before[name].numel() for name in given)


def test_training_goes_on_to_the_same_bytes(transformer, pairs):
    options = transformer | LONG | {"epochs": 2}
    states = []
    whole = make_extractor("tuned_transformer", options).fit_both(
        *pairs, callback=lambda epoch: states.append(epoch.to_arrays())
    )
    resumed = make_extractor("tuned_transformer", options).fit_both(*pairs, resume_from=states[0])
    for name, values in whole.to_arrays().items():
        assert resumed.to_arrays()[name].tobytes() == values.tobytes()
    other = make_extractor("tuned_transformer", options | {"prompts": 1})
    with pytest.raises(ResumeError, match="other pictures or options"):
        other.fit_both(*pairs, resume_from=states[0])


def test_half_of_the_pictures_are_mirrored(transformer, pairs):
    extractor = make_extractor("tuned_transformer", transformer | FROZEN)
    views = {m: extractor._views(m, g) for m, g in zip(("sketch", "image"), pairs, strict=True)}
    lesson = extractor.lesson(views, 8, "cpu")
    seen = lesson.pictures("sketch", np.zeros(400, np.int64)).numpy() * 255
    own = views["sketch"].maps[0]
    same = [np.abs(picture - own).max() < 1e-3 for picture in seen]
    assert 160 < sum(same) < 240  # 4 deviations
    for picture in seen[~np.array(same)]:
        np.testing.assert_allclose(picture, own[:, :, ::-1], atol=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prompts": -1}, "option prompts"),
        ({"pooling": "max"}, "option pooling"),
        ({"objective": "softmax"}, "option objective"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_extractor("tuned_transformer", options)


def test_other_networks_are_refused():
    extractor = make_extractor("tuned_transformer", {"network": "test_resnet", "weights": "x"})
    with pytest.raises(InputError, match="ResNet is no vision transformer"):
        _ = extractor.shapes
