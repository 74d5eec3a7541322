import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag, eigh
from sklearn.cross_decomposition import CCA

from cppcl.baselines import PLS, ClassCCA, Eigensketch, RidgeCCA
from cppcl.errors import InputError

PLAIN = {"preparation": {"center": False, "unit_norm": False}}


def two_views(n=200, m_s=6, m_i=5, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 3))
    sketches = shared @ rng.normal(size=(3, m_s)) + rng.normal(size=(n, m_s)) + 2
    images = shared @ rng.normal(size=(3, m_i)) + rng.normal(size=(n, m_i)) - 1
    return sketches, images


def covariances(sketches, images):
    joint = np.cov(sketches.T, images.T, bias=True)
    m = sketches.shape[1]
    return joint[:m, :m], joint[m:, m:], joint[:m, m:]


def generalized_eigenvalues(within_s, within_i, cross, ridge):
    """Ridge canonical correlations as a symmetric generalised eigenproblem, descending."""
    ridged = [w + ridge * np.linalg.eigvalsh(w)[-1] * np.eye(len(w)) for w in (within_s, within_i)]
    m_s, m_i = cross.shape
    coupled = np.block([[np.zeros((m_s, m_s)), cross], [cross.T, np.zeros((m_i, m_i))]])
    return eigh(coupled, block_diag(*ridged), eigvals_only=True)[::-1][: min(m_s, m_i)]


def test_correlations_equal_scikit_learn_without_ridge():
    sketches, images = two_views()
    ids = np.arange(len(sketches))
    method = RidgeCCA(ridge=1e-9, n_directions=3, **PLAIN).fit(sketches, images, ids, ids)
    oracle = CCA(3, max_iter=10_000, tol=1e-12).fit_transform(sketches, images)
    expected = [np.corrcoef(oracle[0][:, k], oracle[1][:, k])[0, 1] for k in range(3)]
    np.testing.assert_allclose(method.correlations_, expected, atol=1e-3)
    a, b = method.encode_sketches(sketches), method.encode_images(images)
    attained = [np.corrcoef(a[:, k], b[:, k])[0, 1] for k in range(3)]
    np.testing.assert_allclose(attained, expected, atol=1e-3)


@pytest.mark.parametrize("n", [200, 8])
@pytest.mark.parametrize("ridge", [0.03, 1.0])
def test_ridge_correlations_equal_a_generalised_eigenproblem(ridge, n):
    sketches, images = two_views(n, 12, 9)
    ids = np.arange(n)
    method = RidgeCCA(ridge=ridge, **PLAIN).fit(sketches, images, ids, ids)
    expected = generalized_eigenvalues(*covariances(sketches, images), ridge)
    d = min(9, n - 1)
    np.testing.assert_allclose(method.correlations_, expected[:d], atol=1e-6)
    assert len(method.correlations_) == d


@pytest.mark.parametrize("ridge", [0.03, 1.0])
def test_directions_are_orthonormal_in_the_ridged_metric(ridge):
    sketches, images = two_views()
    ids = np.arange(len(sketches))
    arrays = RidgeCCA(ridge=ridge, **PLAIN).fit(sketches, images, ids, ids).to_arrays()
    within_s, _, cross = covariances(sketches, images)
    metric = within_s + ridge * np.linalg.eigvalsh(within_s)[-1] * np.eye(len(within_s))
    A, B = arrays["sketch_projection"], arrays["image_projection"]
    np.testing.assert_allclose(A.T @ metric @ A, np.eye(A.shape[1]), atol=1e-9)
    np.testing.assert_allclose(A.T @ cross @ B, np.diag(arrays["correlations"]), atol=1e-9)


def test_pairs_may_come_in_any_order_with_samples_left_over():
    sketches, images = two_views(60)
    ids = np.arange(60)
    rng = np.random.default_rng(3)
    rows = rng.permutation(60)
    expected = RidgeCCA(**PLAIN).fit(sketches, images, ids, ids)
    shuffled = RidgeCCA(**PLAIN).fit(
        np.vstack([sketches, 50 + sketches[:4]]), images[rows], [*ids, -1, -2, -3, -4], ids[rows]
    )
    np.testing.assert_allclose(shuffled.correlations_, expected.correlations_, atol=1e-10)
    np.testing.assert_allclose(
        shuffled.encode_images(images), expected.encode_images(images), atol=1e-8
    )
    links = sparse.csr_array((np.ones(60), (ids, np.argsort(rows))))
    linked = RidgeCCA(**PLAIN).fit(sketches, images[rows], ids, ids, links=links)
    np.testing.assert_allclose(linked.correlations_, expected.correlations_, atol=1e-10)


def test_class_cca_is_ridge_cca_on_the_list_of_linked_pairs():
    rng = np.random.default_rng(5)
    sketches, images = two_views(40)
    sketch_labels, image_labels = rng.integers(0, 5, 40), rng.integers(1, 6, 40)
    pairs = [(k, i) for k in range(40) for i in range(40) if sketch_labels[k] == image_labels[i]]
    left, right = np.array(pairs).T
    ids = np.arange(len(pairs))
    listed = RidgeCCA(**PLAIN).fit(sketches[left], images[right], ids, ids)
    of_class = ClassCCA(class_weight="links", **PLAIN).fit(
        sketches, images, sketch_labels, image_labels
    )
    np.testing.assert_allclose(of_class.correlations_, listed.correlations_, atol=1e-9)
    np.testing.assert_allclose(
        of_class.encode_images(images), listed.encode_images(images), atol=1e-8
    )
    affinity = (sketch_labels[:, None] == image_labels).astype(float)
    linked = ClassCCA(**PLAIN).fit(sketches, images, ids[:40], ids[:40], links=affinity)
    np.testing.assert_allclose(linked.correlations_, of_class.correlations_, atol=1e-9)


@pytest.mark.parametrize(("class_weight", "power"), [("samples", 0.5), ("equal", 1.0)])
def test_class_weights(class_weight, power):
    rng = np.random.default_rng(6)
    sketches, images = two_views(40)
    sketch_labels, image_labels = rng.integers(0, 5, 40), rng.integers(1, 6, 40)
    affinity = (sketch_labels[:, None] == image_labels).astype(float)
    for label in range(6):
        members = np.ix_(sketch_labels == label, image_labels == label)
        affinity[members] /= max(affinity[members].size, 1) ** power
    weighted = ClassCCA(class_weight=class_weight).fit(
        sketches, images, sketch_labels, image_labels
    )
    linked = ClassCCA().fit(sketches, images, sketch_labels, image_labels, links=affinity)
    np.testing.assert_allclose(weighted.correlations_, linked.correlations_, atol=1e-10)
    np.testing.assert_allclose(
        weighted.encode_images(images), linked.encode_images(images), atol=1e-9
    )


def test_directions_are_scaled_by_their_correlation():
    sketches, images = two_views()
    ids = np.arange(len(sketches))
    plain = RidgeCCA().fit(sketches, images, ids, ids)
    scaled = RidgeCCA(correlation_power=2).fit(sketches, images, ids, ids)
    np.testing.assert_allclose(
        scaled.encode_images(images), plain.encode_images(images) * plain.correlations_**2
    )


def test_classes_give_one_direction_fewer():
    sketches, images = two_views(90)
    labels = np.arange(90) % 4
    method = ClassCCA(n_directions=100).fit(sketches, images, labels, labels)
    assert method.encode_sketches(sketches).shape == (90, 3)
    assert ClassCCA(n_directions=2).fit(sketches, images, labels, labels).correlations_.size == 2


def test_ridge_means_the_same_at_any_scale():
    sketches, images = two_views()
    ids = np.arange(len(sketches))
    plain = RidgeCCA(**PLAIN).fit(sketches, images, ids, ids)
    scaled = RidgeCCA(**PLAIN).fit(1e3 * sketches, 1e-3 * images, ids, ids)
    np.testing.assert_allclose(scaled.correlations_, plain.correlations_, atol=1e-9)


def test_single_precision_agrees_with_double():
    sketches, images = two_views()
    ids = np.arange(len(sketches))
    single = RidgeCCA().fit(sketches.astype(np.float32), images.astype(np.float32), ids, ids)
    double = RidgeCCA().fit(sketches, images, ids, ids)
    np.testing.assert_allclose(
        single.encode_sketches(sketches), double.encode_sketches(sketches), atol=1e-4
    )


def test_ridge_cca_counts_every_pair_of_a_sample_with_several_partners():
    sketches, images = two_views(30)
    shown = np.repeat(np.arange(12), [6, *[1] * 5, *[2] * 4, 5, 6])  # sketches of each photo
    ids = np.arange(30)
    several = RidgeCCA(**PLAIN).fit(sketches, images[:12], shown, np.arange(12))
    listed = RidgeCCA(**PLAIN).fit(sketches, images[shown], ids, ids)
    expected = generalized_eigenvalues(*covariances(sketches, images[shown]), 0.03)
    np.testing.assert_allclose(several.correlations_, expected[:5], atol=1e-9)
    np.testing.assert_allclose(
        several.encode_images(images), listed.encode_images(images), atol=1e-8
    )
    of_class = ClassCCA(class_weight="links", **PLAIN).fit(
        sketches, images[:12], shown, np.arange(12)
    )
    np.testing.assert_array_equal(of_class.encode_images(images), several.encode_images(images))


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (np.ones((3, 2)), r"links has shape \(3, 2\), but there are 3 sketches and 3 images"),
        (-np.eye(3), "not negative"),
        (np.zeros((3, 3)), "links are all zero"),
    ],
)
def test_wrong_links_are_named(links, message):
    with pytest.raises(InputError, match=message):
        ClassCCA().fit(np.eye(3), np.eye(3), range(3), range(3), links=links)


@pytest.mark.parametrize("method", [ClassCCA, Eigensketch, PLS])
def test_samples_that_are_alike_are_named(method):
    features, ids = np.random.default_rng(0).normal(size=(6, 3)), np.arange(6)
    with pytest.raises(InputError, match="linked images are all alike"):
        method().fit(features, np.ones((6, 3)), ids, ids)
    if method is not Eigensketch:
        with pytest.raises(InputError, match="no direction"):
            method().fit(features, features, np.zeros(6), np.zeros(6))


def test_correlations_need_a_fit():
    with pytest.raises(InputError, match="not fitted"):
        _ = ClassCCA().correlations_
