"""New samples linked to the classes of training by how much they resemble them."""

import numpy as np
import pytest
from sklearn.decomposition import sparse_encode
from sklearn.linear_model import Ridge

from cppcl import CPRL
from cppcl.baselines.canonical import ClassCCA
from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian
from cppcl.learning.soft_links import (
    PREDICTION_RIDGE,
    group_codes,
    linear_prediction,
    soft_targets,
)
from cppcl.optim.codes import encode
from cppcl.retrieval.metrics import evaluate
from tests.nested import nested


def test_group_codes_are_means_of_groups_in_both_modalities():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    labels = np.array([4, 0, 4, 2, 9, 0, 4]), np.array([0, 4, 4, 7, 9])
    found = group_codes(codes, labels)
    for of_side, numbers, means in zip(codes, labels, found, strict=True):
        expected = [of_side[numbers == group].mean(axis=0) for group in (0, 4, 9)]
        np.testing.assert_allclose(means, expected, rtol=1e-12)


@pytest.mark.parametrize("temperature", [0.05, 0.7])
def test_targets_are_expected_codes(temperature, monkeypatch):
    rng = np.random.default_rng(1)
    codes, own, partner = (rng.normal(size=(n, 4)) for n in (9, 5, 5))
    codes[3] = 0
    monkeypatch.setattr("cppcl.learning.soft_links.MOST_ENTRIES", 10)  # two samples at a time
    found = soft_targets(codes, own, partner, temperature)
    for code, target in zip(codes, found, strict=True):
        norm = np.linalg.norm(code) or 1.0
        cosines = [code @ o / norm / np.linalg.norm(o) for o in own]
        weights = np.exp(np.array(cosines) / temperature)
        expected = sum(
            w * (o + p) / 2 for w, o, p in zip(weights / weights.sum(), own, partner, strict=True)
        )
        np.testing.assert_allclose(target, expected, rtol=1e-10)


def test_targets_of_one_group_are_its_mean_at_any_scale():
    own = np.array([[3.0, 0, 1]])
    found = soft_targets(np.array([[1e-30, 5, 2], [0, 0, 0]]), own, -own / 3, 1e-3)
    np.testing.assert_allclose(found, np.tile(own / 3, (2, 1)))


@pytest.mark.parametrize("normalize", ["none", "sym"])
def test_linear_prediction_is_the_regression_over_all_links(normalize):
    rng = np.random.default_rng(4)
    codes, weights = rng.normal(size=(9, 3)), rng.uniform(size=(5, 4)) * (rng.random((5, 4)) < 0.6)
    laplacian = Laplacian.from_links(weights, normalize=normalize)
    W = laplacian.adjacency(np.eye(9))
    own, linked = np.nonzero(W)
    root = np.sqrt(W[own, linked])[:, None]
    # Without intercept; as rows of their own, the ridge is that of `Ridge`.
    second = (codes[own] * root).T @ (codes[own] * root)
    ridge = Ridge(PREDICTION_RIDGE * np.trace(second) / 3, fit_intercept=False)
    expected = ridge.fit(codes[own] * root, codes[linked] * root).coef_.T
    np.testing.assert_allclose(linear_prediction(codes, laplacian), expected, rtol=1e-8)


def test_a_direction_in_which_partners_disagree_is_shrunk():
    rng = np.random.default_rng(5)
    shared, apart = rng.normal(size=(50, 1)), rng.normal(size=(2, 50, 1))
    codes = np.concatenate([np.hstack([shared, of_side]) for of_side in apart])
    found = linear_prediction(codes, Laplacian.from_links(np.eye(50)))
    assert found[0, 0] > 0.8
    assert np.abs(found[1]).max() < 0.3
    assert not linear_prediction(0 * codes, Laplacian.from_links(np.eye(50))).any()


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_codes_near_a_target_are_a_lasso_on_more_rows(alpha):
    rng = np.random.default_rng(2)
    D = rng.normal(size=(6, 10))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    F, target, ridge = rng.normal(size=(8, 10)), rng.normal(size=(8, 6)), 1.7
    found = encode(F, D, alpha, ridge=ridge, target=target, tol=1e-10).codes
    wide = np.hstack([D, np.sqrt(ridge) * np.eye(6)])
    features = np.hstack([F, np.sqrt(ridge) * target])
    if alpha:
        expected = sparse_encode(
            features, wide, algorithm="lasso_cd", alpha=alpha / 2, max_iter=10_000
        )
    else:
        expected = np.linalg.lstsq(wide.T, features.T)[0].T
    np.testing.assert_allclose(found, expected, atol=1e-5)


def noisy_classes(seed=0, n=160, classes=4):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    centres = rng.normal(size=(2, classes, 30))
    return [c[labels] + 1.6 * rng.normal(size=(n, 30)) for c in centres], labels


OPTIONS = {
    "n_atoms": 4,
    "alpha": 0.01,
    "beta": 3.0,
    "whiten": True,
    "ridge": 0.1,
    "atom_start": "correlated",
    "n_initial_rounds": 0,
    "n_rounds": 5,
    "code_ridge": 1.0,
    "soft_links": 0.0,
}


def fitted(**options):
    (sketches, images), labels = noisy_classes()
    return CPRL(**nested(**OPTIONS | options)).fit(
        sketches[:80], images[:80], labels[:80], labels[:80]
    )


def mean_average_precision(model):
    (sketches, images), labels = noisy_classes()
    codes = model.encode_sketches(sketches[80:]), model.encode_images(images[80:])
    return evaluate(*codes, labels[80:].tolist(), labels[80:].tolist()).scores["map"]


def test_soft_links_help_where_classes_overlap():
    alone, linked = (mean_average_precision(fitted(soft_links=w)) for w in (0.0, 10.0))
    assert 0.3 < alone < 0.9
    assert linked > alone + 0.02


def test_a_large_weight_gives_the_target_itself():
    model = fitted(soft_links=1e6, link_temperature=0.2)
    sketches = noisy_classes()[0][0][80:]
    alone = fitted().encode_sketches(sketches).astype(np.float64)
    arrays = model.to_arrays()
    groups = [arrays[f"{side}_group_codes"] for side in ("sketch", "image")]
    target = soft_targets(alone, *groups, 0.2)
    np.testing.assert_allclose(model.encode_sketches(sketches), target, rtol=1e-3, atol=1e-5)


def test_linear_links_need_no_labels_and_survive_storage():
    (sketches, images), labels = noisy_classes()
    links = np.equal.outer(labels[:80], labels[:80]) * 1.0
    options = OPTIONS | {"soft_links": 1e6, "link_model": "linear"}
    model = CPRL(**nested(**options)).fit(sketches[:80], images[:80], links=links)
    prediction = model.to_arrays()["code_prediction"]
    alone = CPRL(**nested(**OPTIONS)).fit(sketches[:80], images[:80], links=links)
    expected = alone.encode_sketches(sketches[80:]) @ prediction
    found = model.encode_sketches(sketches[80:])
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    again = CPRL(**model.options()).from_arrays(model.to_arrays())
    np.testing.assert_array_equal(again.encode_sketches(sketches[80:]), found)


def test_soft_links_survive_storage_and_change_no_training():
    model, plain = fitted(soft_links=3.0, center_codes=True), fitted()
    arrays = model.to_arrays()
    assert arrays["image_group_codes"].shape == (4, 4)
    for name, array in plain.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name])
    assert "image_group_codes" not in plain.to_arrays()
    again = CPRL(**model.options()).from_arrays(arrays)
    (sketches, images), _ = noisy_classes()
    np.testing.assert_array_equal(again.encode_images(images), model.encode_images(images))
    centred = model.encode_sketches(sketches[:80])
    np.testing.assert_allclose(centred.mean(axis=0), 0, atol=1e-5)


def test_soft_links_need_labels():
    (sketches, images), labels = noisy_classes()
    links = np.equal.outer(labels[:80], labels[:80]) * 1.0
    with pytest.raises(InputError, match=r"soft_links=1\.0 needs sketch_labels and image_labels"):
        CPRL(**nested(**OPTIONS | {"soft_links": 1.0})).fit(
            sketches[:80], images[:80], links=links
        )
    given = CPRL(**nested(**OPTIONS | {"soft_links": 1.0})).fit(
        sketches[:80], images[:80], labels[:80], labels[:80], links=links
    )
    assert given.to_arrays()["sketch_group_codes"].shape == (4, 4)
    with pytest.raises(InputError, match=r"soft_links=1\.0: no label occurs in both"):
        CPRL(**nested(**OPTIONS | {"soft_links": 1.0})).fit(
            sketches[:80], images[:80], labels[:80], labels[:80] + 10, links=links
        )


def test_class_cca_may_do_the_same():
    (sketches, images), labels = noisy_classes()
    training = sketches[:80], images[:80], labels[:80], labels[:80]
    options = {"n_directions": 3, "ridge": 0.1}
    plain = ClassCCA(**options).fit(*training)
    linked = ClassCCA(**options, soft_links=2.0, link_temperature=0.3).fit(*training)
    codes = [plain.encode_sketches(sketches), plain.encode_images(images)]
    means = group_codes((codes[0][:80], codes[1][:80]), (labels[:80], labels[:80]))
    expected = (codes[1] + 2 * soft_targets(codes[1], means[1], means[0], 0.3)) / 3
    np.testing.assert_allclose(linked.encode_images(images), expected, rtol=1e-9)
    assert mean_average_precision(linked) > mean_average_precision(plain) + 0.02
    again = ClassCCA(**linked.options()).from_arrays(linked.to_arrays())
    np.testing.assert_array_equal(again.encode_images(images), linked.encode_images(images))
    with pytest.raises(InputError, match=r"soft_links=2\.0 is for classes"):
        linked.fit(*training, links=np.eye(80))
