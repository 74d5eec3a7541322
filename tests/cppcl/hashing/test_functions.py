"""Hash functions against scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from cppcl.errors import InputError
from cppcl.hashing import objective
from cppcl.hashing.functions import Anchors, BitRegression, HashFunctions


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 5)) + 1, rng.normal(size=(20, 5)) - 1


@pytest.mark.parametrize("sharing", [0.0, 0.5, 1.0])
def test_values_are_those_of_weighted_ridge_regression(features, sharing, monkeypatch):
    monkeypatch.setattr(objective, "CHUNK", 7)
    rng = np.random.default_rng(1)
    weights, again = rng.uniform(0.1, 2, (2, 50))
    bits = rng.choice([-1.0, 1.0], (50, 3))
    regression = BitRegression(features, weights, ridge=0.02, sharing=sharing)
    common, own = np.sqrt((1 + sharing) / 2), np.sqrt((1 - sharing) / 2)
    blocks = [
        [common * features[0], own * features[0]],
        [common * features[1], -own * features[1]],
    ]
    rows = (
        np.block(blocks)
        if sharing
        else np.block([[features[0], np.zeros((30, 5))], [np.zeros((20, 5)), features[1]]])
    )
    centred = rows - weights @ rows / weights.sum()
    rho = 0.02 * weights @ (centred**2).sum(axis=1)
    for u in (weights, again):
        regression.weigh(u)
        values = regression.fit(bits)
        oracle = Ridge(alpha=rho).fit(rows, bits, sample_weight=u)
        np.testing.assert_allclose(values, oracle.predict(rows), atol=1e-8)
        assert regression.penalty == pytest.approx(rho * (oracle.coef_**2).sum(), rel=1e-8)
        arrays = regression.to_arrays()
        of_images = features[1] @ arrays["image_coefficients"] + arrays["intercept"]
        np.testing.assert_allclose(of_images, values[30:], atol=1e-8)


def test_anchors_are_a_centred_gaussian_kernel(features):
    anchors = Anchors.among(features[0], features[1][:4], 0.5)
    distances = ((features[0][:, None] - features[1][:4]) ** 2).sum(axis=2)
    kernel = rbf_kernel(features[0], features[1][:4], gamma=1 / (0.5 * distances.mean()))
    np.testing.assert_allclose(anchors.of(features[0]), kernel - kernel.mean(axis=0), atol=1e-10)


@pytest.mark.parametrize("comparable", [True, False])
def test_modalities_share_anchors_where_their_features_are_comparable(features, comparable):
    functions = HashFunctions(kind="kernel", n_anchors=8)
    sketches, images = functions.anchors(features, comparable, np.random.default_rng(0))
    assert sketches.rows.shape == images.rows.shape == (8, 5)
    own = (sketches.rows[:, None] == features[0]).all(axis=2).any(axis=1)
    assert np.array_equal(sketches.rows, images.rows) == comparable
    assert own.all() != comparable
    assert HashFunctions().anchors(features, comparable, np.random.default_rng(0)) is None


@pytest.mark.parametrize(
    "options",
    [{"kind": "deep"}, {"ridge": 0}, {"sharing": 1.5}, {"n_anchors": 0}, {"width": 0}],
)
def test_options_out_of_range_are_named(options):
    ((name, value),) = options.items()
    with pytest.raises(InputError, match=f"{name}={value!r}"):
        HashFunctions(**options)
