"""Loss and training of heads whose samples are weighed."""

import numpy as np
import pytest
import torch

from cppcl.baselines import InfoNCEHeads
from cppcl.baselines.heads import HeadTraining, head_loss
from cppcl.baselines.links import class_links
from cppcl.errors import InputError
from cppcl.optim.contrastive import contrastive_loss

OPTIONS = InfoNCEHeads(width=16, dimension=4, batch_size=8, temperature=0.3)


def drawn(seed=0, b=5):
    """Unit codes of b pairs, links, weights and targets."""
    rng = np.random.default_rng(seed)
    codes, targets = (
        [torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(b, 4)))) for _ in "si"]
        for _ in range(2)
    )
    positives = torch.from_numpy(np.eye(b) + (rng.random((b, b)) < 0.3))
    return codes, positives, [torch.from_numpy(rng.random(b) + 0.1) for _ in "si"], targets


def training(n=30, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 3))
    views = [shared @ rng.normal(size=(3, m)) + 0.1 * rng.normal(size=(n, m)) for m in (6, 5)]
    return HeadTraining(OPTIONS, (views[0], views[1]), class_links(range(n), range(n)))


def test_gradients_of_the_weighted_loss_are_those_of_finite_differences():
    codes, positives, weights, targets = drawn()
    rest = {"weights": weights, "targets": targets, "reconstruction": 0.7}

    def loss(sketches, images):
        return head_loss([sketches, images], positives, 0.3, **rest)

    assert torch.autograd.gradcheck(loss, [Z.requires_grad_() for Z in codes], rtol=1e-6)


def test_weighted_loss_is_the_sum_that_is_written():
    (sketches, images), positives, (v, u), targets = drawn()
    expected = 0.0
    sides = ((sketches, images, positives, u), (images, sketches, positives.T, v))
    for codes, others, links, other in sides:
        for p in range(5):
            near = [float(other[q] * torch.exp(codes[p] @ others[q] / 0.3)) for q in range(5)]
            share = (links[p] * other / (links[p] * other).sum()).numpy()
            expected -= float(v[p] * u[p]) * (share @ np.log(near / np.sum(near))) / 10
    for Z, T, of in zip((sketches, images), targets, (v, u), strict=True):
        expected += 2 * float((of**2 * ((Z - T) ** 2).sum(dim=1)).sum()) / 10
    found = head_loss(
        [sketches, images], positives, 0.3, weights=[v, u], targets=targets, reconstruction=2.0
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_sample_that_hardly_counts_has_no_influence():
    (sketches, images), positives, (v, u), _ = drawn()
    positives[:4, 4] = positives[4, :4] = 0
    v[4] = u[4] = 1e-14
    expected = contrastive_loss(sketches[:4], images[:4], positives[:4, :4], 0.3, (v[:4], u[:4]))
    found = contrastive_loss(sketches, images, positives, 0.3, (v, u))
    np.testing.assert_allclose(5 * found, 4 * expected, rtol=1e-11)


def test_weights_of_one_without_reconstruction_give_the_bytes_of_infonce():
    plain, weighed = training(), training()
    plain.run(3)
    ones = np.ones(30)
    weighed.run(3, weights=(ones, ones), targets=(np.ones((30, 4)),) * 2, reconstruction=0.0)
    assert plain.losses == weighed.losses
    for name, array in plain.learned().items():
        np.testing.assert_array_equal(weighed.learned()[name], array)


def test_samples_of_no_weight_leave_heads_alone():
    found = []
    for changed in (0.0, 1.0):
        heads = training()
        heads._rows[0][3] += changed
        weights = np.ones(30), np.ones(30)
        weights[0][3] = 0
        heads.run(3, weights=weights)
        found.append(heads.learned())
    for name, array in found[0].items():
        np.testing.assert_array_equal(found[1][name], array)
    with pytest.raises(InputError, match="no linked sketch and image both have a weight above 0"):
        heads.run(1, weights=(np.arange(30) < 10, np.arange(30) >= 10))
