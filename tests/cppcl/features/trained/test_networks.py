"""Every network that is trained: what it can learn, its gradients, layers and training."""

from functools import partial

import numpy as np
import pytest
import torch

from cppcl.errors import CppclError, InputError, ResumeError
from cppcl.features import EXTRACTORS, make_extractor
from cppcl.features.trained.network import TrainedNetwork
from cppcl.features.training.lesson import Lesson
from cppcl.retrieval.metrics import evaluate

NETWORKS = sorted(n for n, e in EXTRACTORS.items() if issubclass(e, TrainedNetwork))
LONG = {"epochs": 50, "batch_size": 4, "learning_rate": 3e-3, "held_out": 0.0}


def rank_1(extractor, pairs):
    codes = [
        extractor.branch(modality).transform([picture for picture, _ in given])
        for modality, given in zip(("sketch", "image"), pairs, strict=True)
    ]
    targets = [[number for _, number in given] for given in pairs]
    return evaluate(*codes, *targets, metric="l2").scores["rank_1"]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", NETWORKS)
def test_sixteen_pictures_are_learned_without_an_error(name, pairs, monkeypatch):
    """Only their classes tie the drawings to the pictures; `san` classifies sketches alone."""
    monkeypatch.setattr("torch.nn.Dropout", lambda share: torch.nn.Identity())
    as_they_are = partial(Lesson, changed=False)
    monkeypatch.setattr("cppcl.features.training.lesson.Lesson", as_they_are)
    extractor = make_extractor(name, LONG)
    untrained = make_extractor(name, {**LONG, "epochs": 1, "learning_rate": 1e-9})
    assert rank_1(untrained.fit_both(*pairs), pairs) < 0.5
    losses = []
    extractor.fit_both(*pairs, callback=lambda epoch: losses.append(epoch.loss))
    if name == "san":
        # No sketch costs log 2 or more, so each has most of the probability at its own class.
        assert losses[-1] < np.log(2) / 8 < 1 < losses[0]
    else:
        assert rank_1(extractor, pairs) == 1


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_those_of_finite_differences(name, pairs, monkeypatch):
    monkeypatch.setattr("torch.nn.Dropout", lambda share: torch.nn.Identity())
    extractor = make_extractor(name, {"batch_size": 8})
    views = {m: extractor._views(m, g) for m, g in zip(("sketch", "image"), pairs, strict=True)}
    lesson = Lesson(views, 8, changed=False)
    pictures = lesson.pictures
    monkeypatch.setattr(lesson, "pictures", lambda *given: pictures(*given).double())
    torch.manual_seed(0)
    network = extractor.networks()
    for part, head in extractor.build_heads(8).items():
        network[part] = head
    network.double()
    rows = extractor.batches(lesson, np.random.default_rng(0))[0]
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    gradients = torch.autograd.grad(extractor.loss(network, lesson, rows), weights)
    rng = torch.Generator().manual_seed(1)
    for _ in range(3):
        way = [torch.randn(w.shape, generator=rng, dtype=w.dtype) for w in weights]
        expected = sum(float((g * d).sum()) for g, d in zip(gradients, way, strict=True))
        step, values = 1e-6, []
        for sign in (1, -2):  # there, and as far on the other side
            with torch.no_grad():
                for weight, direction in zip(weights, way, strict=True):
                    weight += sign * step * direction
                values.append(float(extractor.loss(network, lesson, rows)))
        with torch.no_grad():
            for weight, direction in zip(weights, way, strict=True):
                weight += step * direction
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(expected, rel=1e-4)


def layers(name):
    """Kernel, stride, padding and maps of each convolution, and widths of full layers."""
    with torch.device("meta"):
        network = make_extractor(name, {"size": "paper"}).networks()
    found = []
    for module in next(iter(network.values())).modules():
        if isinstance(module, torch.nn.Conv2d):
            found.append(
                (module.kernel_size[0], module.stride[0], module.padding[0], module.out_channels)
            )
        elif isinstance(module, torch.nn.Linear):
            found.append((module.in_features, module.out_features))
    return found


def test_layers_of_the_paper_s_size():
    trunk = [(15, 3, 0, 64), (5, 1, 0, 128), *[(3, 1, 1, 256)] * 3]
    assert layers("san") == [*trunk, (256 * 7 * 7, 512), (512, 512)]
    assert layers("san_triplet") == [*trunk, (256 * 7 * 7, 512), (512, 256)]
    assert layers("siamese") == [*trunk, (256 * 7 * 7, 512), (512, 64)]
    assert layers("shape3d") == [(5, 1, 0, 32), (5, 1, 0, 64), (5, 1, 0, 256), (256 * 9, 64)]


@pytest.mark.parametrize(
    ("name", "side", "dimension", "millions"),
    [
        ("san", 225, 512, 8.4),
        ("san_triplet", 225, 256, 8.3),
        ("siamese", 225, 64, 8.2),
        ("shape3d", 100, 64, 2 * 0.6),
        ("gn_triplet", 224, 1024, 2 * 9.9),  # 6.6 and the auxiliary heads
    ],
)
def test_inputs_and_outputs_of_the_paper_s_size(name, side, dimension, millions):
    extractor = make_extractor(name, {"size": "paper"})
    assert (extractor.side, extractor.dimension) == (side, dimension)
    assert extractor.shapes["weights"][0] == pytest.approx(1e6 * millions, rel=0.03)
    with torch.device("meta"):
        network = extractor.networks().eval()
        for modality, channels in (("sketch", 1), ("image", 3 if name == "gn_triplet" else 1)):
            codes = extractor.codes(network, modality, torch.empty(2, channels, side, side))
            assert codes.shape == (2, dimension)


@pytest.mark.usefixtures("tiny")
def test_training_goes_on_to_the_same_bytes(pairs):
    options = {"epochs": 3, "batch_size": 3}
    states = []
    whole = make_extractor("siamese", options).fit_both(
        *pairs, callback=lambda epoch: states.append(epoch.to_arrays())
    )
    for state in states:
        resumed = make_extractor("siamese", options).fit_both(*pairs, resume_from=state)
        for name, values in whole.to_arrays().items():
            assert resumed.to_arrays()[name].tobytes() == values.tobytes()
    with pytest.raises(ResumeError, match="other pictures or options"):
        make_extractor("siamese", {**options, "seed": 1}).fit_both(*pairs, resume_from=states[0])


@pytest.mark.usefixtures("tiny")
def test_the_best_pass_is_kept_and_training_stops_after_it(pairs, monkeypatch):
    """By the score of pictures that are held out, which is made here."""
    scores = iter([0.1, 0.4, 0.3, 0.2, 0.9])
    kept = []
    monkeypatch.setattr(TrainedNetwork, "_score", lambda *given: next(scores))
    extractor = make_extractor("siamese", {"epochs": 5, "patience": 2, "batch_size": 4})
    extractor.fit_both(*pairs, callback=lambda epoch: kept.append(epoch.to_arrays()["weights"]))
    history = extractor.learned("history")
    np.testing.assert_allclose(history[:, 1], [0.1, 0.4, 0.3, 0.2, np.nan])
    np.testing.assert_array_equal(extractor.learned("weights"), kept[1])
    assert extractor.remarks()[0].startswith("4 of 5 passes")
    assert extractor.remarks()[0].endswith(
        "pass 2 is kept, with mAP 40.0 per cent on pictures that were held out"
    )


@pytest.mark.usefixtures("tiny")
def test_no_pass_begins_after_the_minutes(pairs):
    extractor = make_extractor("siamese", {"minutes": 1e-9, "batch_size": 4}).fit_both(*pairs)
    assert np.isfinite(extractor.learned("history")[:, 0]).sum() == 1


@pytest.mark.usefixtures("tiny")
def test_failures_of_training_are_explained(pairs, monkeypatch):
    extractor = make_extractor("siamese", {"epochs": 1})
    with monkeypatch.context() as patch:

        def full(*given):
            raise torch.OutOfMemoryError("CUDA out of memory")

        patch.setattr(type(extractor), "loss", full)
        with pytest.raises(CppclError, match=r"no memory for a batch .* lower batch_size"):
            extractor.fit_both(*pairs)
        patch.setattr(
            type(extractor), "loss", lambda *given: torch.tensor(float("nan"), requires_grad=True)
        )
        with pytest.raises(InputError, match=r"diverged in epoch 1 with learning_rate=0\.002"):
            extractor.fit_both(*pairs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "large"}, "option size"),
        ({"contours": "strokes"}, "option contours='strokes'"),
        ({"minutes": 0}, "option minutes"),
        ({"held_out": 0.6}, "option held_out"),
        ({"batch_size": 1}, "option batch_size"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        make_extractor("siamese", options)
