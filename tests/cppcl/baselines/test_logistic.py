import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression as Oracle

from cppcl.baselines import LogisticRegression, logistic
from cppcl.errors import ConvergenceWarning, InputError

PLAIN = {"preparation": {"center": False, "unit_norm": False}}


def two_views(n, n_classes, m_s=7, m_i=7, seed=0):
    """Sketches and images of classes about which they say much; the last is of images alone."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % (n_classes - 1), np.arange(n + 3) % n_classes
    features = [
        rng.normal(size=(n_classes, m))[of_modality] + rng.normal(size=(len(of_modality), m))
        for m, of_modality in zip((m_s, m_i), labels, strict=True)
    ]
    return *features, *labels


def rows_of(sketches, images, sharing):
    a, b = np.sqrt((1 + sharing) / 2), np.sqrt((1 - sharing) / 2)
    return np.hstack([a * sketches, b * sketches]), np.hstack([a * images, -b * images])


@pytest.mark.parametrize(("n", "n_classes"), [(40, 5), (40, 3), (4, 3)])
@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
def test_probabilities_are_those_of_scikit_learn_on_joint_rows(n, n_classes, sharing, monkeypatch):
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-7)
    *features, sketch_labels, image_labels = two_views(n, n_classes)
    method = LogisticRegression(C=0.7, sharing=sharing, **PLAIN).fit(
        *features, sketch_labels, image_labels
    )
    rows = rows_of(*features, sharing)
    oracle = Oracle(C=0.7, tol=1e-9, max_iter=1000).fit(
        np.vstack(rows), np.concatenate([sketch_labels, image_labels])
    )
    codes = method.encode_sketches(features[0]), method.encode_images(features[1])
    for found, of_modality in zip(codes, rows, strict=True):
        np.testing.assert_allclose(found, oracle.predict_proba(of_modality), atol=1e-5)


def test_two_classes_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-7)
    sketches, images, *_ = two_views(40, 3)
    labels = np.arange(40) % 2, np.arange(43) % 2
    method = LogisticRegression(sharing=1.0, **PLAIN).fit(sketches, images, *labels)
    oracle = Oracle(C=10, tol=1e-9).fit(np.vstack([sketches, images]), np.concatenate(labels))
    found = method.encode_images(images)
    np.testing.assert_allclose(found, oracle.predict_proba(images), atol=1e-5)


def test_modalities_that_cannot_share_have_weights_of_their_own():
    data = two_views(40, 4, m_i=5)
    alone, asked = (LogisticRegression(sharing=s).fit(*data) for s in (0.0, 1.0))
    np.testing.assert_array_equal(alone.encode_images(data[1]), asked.encode_images(data[1]))
    data = two_views(40, 4)
    projected = {"preparation": {"n_components": 4}}
    alone, asked = (LogisticRegression(sharing=s, **projected).fit(*data) for s in (0.0, 1.0))
    np.testing.assert_array_equal(alone.encode_images(data[1]), asked.encode_images(data[1]))


def test_logits_and_temperature_say_the_same_as_probabilities():
    data = two_views(40, 4)
    plain = LogisticRegression().fit(*data)
    warm = LogisticRegression(temperature=3.0).from_arrays(plain.to_arrays())
    logits = LogisticRegression(output="logits").from_arrays(plain.to_arrays())
    codes = logits.encode_sketches(data[0])
    np.testing.assert_allclose(codes.sum(axis=1), 0, atol=1e-12)
    for method, temperature in ((plain, 1.0), (warm, 3.0)):
        expected = np.log(method.encode_sketches(data[0])) * temperature
        np.testing.assert_allclose(codes, expected - expected.mean(axis=1, keepdims=True))


def test_samples_that_links_connect_are_a_class():
    sketches, images, *_ = two_views(6, 3)
    chain = sparse.csr_array(([1, 2, 1, 1, 3], ([0, 0, 1, 2, 3], [0, 1, 1, 2, 2])), shape=(6, 9))
    linked = LogisticRegression(**PLAIN).fit(sketches, images, range(6), range(9), links=chain)
    named = LogisticRegression(**PLAIN).fit(sketches[:4], images[:3], list("aabb"), list("aab"))
    np.testing.assert_array_equal(linked.encode_images(images), named.encode_images(images))
    one = np.ones((6, 9))
    with pytest.raises(InputError, match="links connect all samples"):
        LogisticRegression().fit(sketches, images, range(6), range(9), links=one)


def test_what_it_cannot_learn_is_named(monkeypatch):
    sketches, images, labels, others = two_views(12, 4)
    with pytest.raises(InputError, match=r"sharing=1\.5 must be a number from 0 to 1"):
        LogisticRegression(sharing=1.5)
    with pytest.raises(InputError, match="all samples are of one class"):
        LogisticRegression().fit(sketches, images, ["a"] * 12, ["a"] * 15)
    monkeypatch.setattr(logistic, "MOST_CLASSES", 3)
    with pytest.raises(InputError, match=r"4 classes.*at most 3.*use ridge_cca"):
        LogisticRegression().fit(sketches, images, labels, others)


def test_not_converging_is_told(monkeypatch):
    monkeypatch.setattr(logistic, "MOST_ITERATIONS", 2)
    with pytest.warns(ConvergenceWarning, match=r"within 2 iterations; a C smaller than 10\.0"):
        LogisticRegression().fit(*two_views(40, 4))


@pytest.mark.parametrize(("n", "n_classes", "m"), [(120, 121, 200), (40, 41, 200), (900, 8, 60)])
def test_memory_is_not_more_than_declared(n, n_classes, m):
    sketches, images, *labels = two_views(n, n_classes, m, m)
    data = sketches.astype(np.float32), images.astype(np.float32), *labels
    declared = LogisticRegression().memory(n, n + 3, (m, m))
    LogisticRegression().fit(*data)  # what is imported does not count
    tracemalloc.start()
    try:
        LogisticRegression().fit(*data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < declared
