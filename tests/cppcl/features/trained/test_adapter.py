"""The residual head on frozen features: what it computes, learns and refuses."""

import numpy as np
import pytest
import torch

from cppcl.errors import InputError, ResumeError
from cppcl.features import make_extractor
from cppcl.features.base import Memory
from cppcl.features.trained.kept_rows import KeptRows
from cppcl.retrieval.metrics import evaluate

BASE = {"features": "pixels+hog", "options": {"pixels": {"size": [8, 8]}, "weights": [2, 1]}}
OPTIONS = {
    **BASE,
    "epochs": 60,
    "learning_rate": 3e-3,
    "batch_size": 4,
    "width": 64,
    "dropout": 0.0,
    "held_out": 0.0,
}


def rank_1(extractor, pairs):
    codes = [
        extractor.branch(modality).transform([picture for picture, _ in given])
        for modality, given in zip(("sketch", "image"), pairs, strict=True)
    ]
    targets = [[number for _, number in given] for given in pairs]
    return evaluate(*codes, *targets).scores["rank_1"]


def centred(rows, mean, widths=(64, 1296), weights=(2, 1)):
    """Blocks less their mean, of unit length and weighted, by the formula in double precision."""
    blocks, at = [], 0
    for width, weight in zip(widths, weights, strict=True):
        block = rows[:, at : at + width] - mean[at : at + width]
        blocks.append(weight * block / np.linalg.norm(block, axis=1, keepdims=True))
        at += width
    return np.hstack(blocks) / np.sqrt(np.sum(np.square(weights)))


@pytest.mark.parametrize("objective", ["infonce", "triplet"])
@pytest.mark.parametrize("shared", [True, False])
def test_sixteen_pictures_are_learned(objective, shared, pairs):
    options = OPTIONS | {"objective": objective, "shared": shared}
    untrained = make_extractor("adapter", options | {"epochs": 1, "learning_rate": 1e-9})
    assert rank_1(untrained.fit_both(*pairs), pairs) < 0.5
    assert rank_1(make_extractor("adapter", options).fit_both(*pairs), pairs) == 1


@pytest.mark.parametrize(("shared", "separate"), [(True, False), (False, False), (False, True)])
def test_codes_are_features_and_what_the_head_adds(shared, separate, pairs):
    options = OPTIONS | {"epochs": 2, "shared": shared, "separate": separate}
    extractor = make_extractor("adapter", options)
    extractor.fit_both(*pairs)
    of_parts = {"adapter of pixels": 64, "adapter of hog": 1296}
    assert extractor.spaces == (of_parts if separate else {"adapter": 1360})
    base = make_extractor(BASE["features"], BASE["options"])
    numbers = {
        n: t.numpy()
        for n, t in extractor._loaded(extractor.learned("weights"), "cpu").state_dict().items()
    }
    for modality, given in zip(("sketch", "image"), pairs, strict=True):
        rows = base.transform([picture for picture, _ in given]).astype(float)
        rows = np.sign(rows) * np.sqrt(np.abs(rows))
        blocks = np.split(rows, [64], axis=1)
        rows = np.hstack([b / np.linalg.norm(b, axis=1, keepdims=True) for b in blocks])
        np.testing.assert_allclose(numbers[f"{modality} mean.mean"], rows.mean(0), atol=1e-6)
        x = centred(rows, rows.mean(0))
        head = "head" if shared else f"{modality} head"
        heads = {head: slice(None)}
        if separate:
            heads = {f"{head}.heads.0": slice(64), f"{head}.heads.1": slice(64, None)}
        expected = x.copy()
        for name, block in heads.items():
            part = x[:, block]
            length = np.linalg.norm(part, axis=1, keepdims=True)
            units = (part / length) @ numbers[f"{name}.hidden.weight"].T
            units = np.maximum(units + numbers[f"{name}.hidden.bias"], 0)
            expected[:, block] += length * (units @ numbers[f"{name}.output.weight"].T)
        found = extractor.branch(modality).transform([picture for picture, _ in given])
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert np.abs(found - x).max() > 1e-3
    assert sum(values.size for values in numbers.values()) == extractor.n_weights()


@pytest.mark.parametrize(("separate", "n"), [(False, 5), (True, 5), (True, 100)])
def test_a_head_sees_and_moves_along_principal_axes(separate, n, pairs):
    options = {"epochs": 20, "separate": separate, "n_components": n}
    extractor = make_extractor("adapter", OPTIONS | options).fit_both(*pairs)
    frozen = make_extractor("adapter", OPTIONS | {"epochs": 1, "learning_rate": 1e-9})
    frozen.fit_both(*pairs)
    x, codes = (
        [e.branch(m).transform([p for p, _ in given]).astype(float)
         for m, given in zip(("sketch", "image"), pairs, strict=True)]
        for e in (frozen, extractor)
    )  # fmt: skip
    weights = extractor.learned("weights")
    assert weights.size == extractor.n_weights()
    widths = list(extractor.spaces.values())
    state = extractor._loaded(weights, "cpu").state_dict()
    names = ["head.heads.0.axes", "head.heads.1.axes"] if separate else ["head.axes"]
    at = 0
    for width, name in zip(widths, names, strict=True):
        block = slice(at, at + width)
        rows = np.vstack(x)[:, block]
        if separate:
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        _, sizes, axes = np.linalg.svd(rows, full_matrices=False)
        axes = axes[sizes > 1e-5 * sizes[0]][:n].T
        projection = state[name].numpy().astype(float) @ state[name].numpy().T
        np.testing.assert_allclose(projection @ axes, axes, atol=1e-4)
        assert n == 100 or np.trace(projection) == pytest.approx(n)
        added = np.vstack(codes)[:, block] - np.vstack(x)[:, block]
        assert np.abs(added).max() > 1e-3
        np.testing.assert_allclose(added @ projection, added, atol=1e-5)
        at += width


def test_what_keeps_near_the_frozen_features_does(pairs):
    added = []
    for keep in (0.0, 10.0):
        extractor = make_extractor("adapter", OPTIONS | {"keep": keep}).fit_both(*pairs)
        rows = extractor.transform([picture for picture, _ in pairs[0]])
        added.append(abs(np.linalg.norm(rows, axis=1) - 1).max())
    assert added[1] < added[0] / 3


@pytest.mark.parametrize("widths", [(1360,), (64, 1296)])
def test_the_loss_of_a_batch_by_its_formula(widths, pairs):
    options = {"keep": 0.5, "temperature": 0.2, "separate": len(widths) > 1}
    extractor = make_extractor("adapter", OPTIONS | options)
    views = {m: extractor._views(m, g) for m, g in zip(("sketch", "image"), pairs, strict=True)}
    views["image"].targets[1] = 0  # two images of one class
    lesson = extractor.lesson(views, 8, "cpu")
    torch.manual_seed(0)
    network = extractor.networks()
    extractor.prepare(network, views)
    for name, weight in network["head"].named_parameters():
        if name.endswith("output.weight"):
            torch.nn.init.normal_(weight, std=0.1)
    network.eval()
    rows = np.array([[0, 0, 5], [2, 2, 5], [0, 1, 5], [4, 4, 5]])
    given, codes = [], []
    for modality, chosen in (("sketch", rows[:, 0]), ("image", rows[:, 1])):
        with torch.inference_mode():
            x, more = extractor._added(network, modality, lesson.pictures(modality, chosen))
        given.append(np.mean(np.sum(np.square(more.numpy()), axis=1)))
        code = np.split((x + more).numpy().astype(float), np.cumsum(widths)[:-1], axis=1)
        codes.append([part / np.linalg.norm(part, axis=1, keepdims=True) for part in code])
    right = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    expected = 0.0
    for of_sketches, of_images in zip(*codes, strict=True):
        logits = of_sketches @ of_images.T / 0.2
        for values, wanted in ((logits, right), (logits.T, right.T)):
            logs = values - np.log(np.exp(values).sum(axis=1, keepdims=True))
            per_row = (logs * wanted).sum(axis=1) / wanted.sum(axis=1)
            expected -= np.mean(per_row) / 2 / len(widths)
    expected += 0.5 * np.mean(given)
    with torch.inference_mode():
        assert float(extractor.loss(network, lesson, rows)) == pytest.approx(expected, rel=1e-5)


def test_training_goes_on_to_the_same_bytes(pairs):
    options = OPTIONS | {"epochs": 3, "dropout": 0.5}
    states = []
    whole = make_extractor("adapter", options).fit_both(
        *pairs, callback=lambda epoch: states.append(epoch.to_arrays())
    )
    resumed = make_extractor("adapter", options).fit_both(*pairs, resume_from=states[0])
    for name, values in whole.to_arrays().items():
        assert resumed.to_arrays()[name].tobytes() == values.tobytes()
    with pytest.raises(ResumeError, match="other pictures or options"):
        make_extractor("adapter", options | {"keep": 1}).fit_both(*pairs, resume_from=states[0])


class Counting:
    """Describes a picture by its first value, and counts how many it was asked for."""

    def __init__(self):
        self.n = 0

    def transform(self, pictures):
        self.n += len(pictures)
        return np.array([[p[0, 0, 0]] for p in pictures], np.float32).reshape(-1, 1)


def test_frozen_features_are_computed_once():
    pictures = [np.full((2, 2, 3), value, np.uint8) for value in range(3)]
    extractor, kept = Counting(), KeptRows(most=8)  # two rows of four bytes
    rows = kept.transform(extractor, b"a", [pictures[0], pictures[1], pictures[0]])
    np.testing.assert_array_equal(rows, [[0], [1], [0]])
    np.testing.assert_array_equal(kept.transform(extractor, b"a", pictures[:2]), [[0], [1]])
    assert extractor.n == 3
    kept.transform(extractor, b"b", pictures[:1])  # of another extractor; the oldest goes
    kept.transform(extractor, b"a", pictures[:1])
    assert extractor.n == 5
    assert kept.transform(extractor, b"a", []).shape == (0, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": "lks"}, "features='lks' learns from pictures itself"),
        ({"features": "precomputed", "options": {"length": 3}}, "takes no pictures"),
        ({"features": "hgo"}, "'hgo'"),
        ({"options": 3}, "option options=3"),
        ({"image_options": 3}, "option image_options=3"),
        ({"objective": "softmax"}, "option objective"),
        ({"power": 0}, "option power"),
        ({"dropout": 1}, "option dropout"),
        ({"keep": -1}, "option keep"),
        ({"width": 0}, "option width"),
        ({"shared": 1}, "option shared"),
        ({"temperature": 0}, "option temperature"),
        ({"margin": 0}, "option margin"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_extractor("adapter", options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pixels": {"size": [4, 4]}, "weights": [2, 1]}, r"are \[16, 1296\].* \[64, 1296\]"),
        ({"pixels": {"size": [8, 8]}, "weights": [1, 7]}, "weights of the parts are"),
    ],
)
def test_features_of_other_lengths_or_weights_for_images_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_extractor("adapter", OPTIONS | {"image_options": options}).parameters()


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ([0], "1 training picture of the modality 'sketch'.*let more of the data train"),
        ([0, 0, 0], "the 3 training pictures of the modality 'sketch' all look the same"),
    ],
)
def test_pictures_that_cannot_be_compared_are_refused(chosen, words, pairs):
    sketches, images = pairs
    with pytest.raises(InputError, match=words):
        make_extractor("adapter", OPTIONS).fit_both([sketches[k] for k in chosen], images)


def test_it_needs_at_least_what_the_frozen_features_do():
    own = make_extractor("adapter", OPTIONS).memory(256)
    base = make_extractor(BASE["features"], BASE["options"]).memory(256)
    assert isinstance(own, Memory)
    assert own.model > base.model
    assert own.working == base.working
