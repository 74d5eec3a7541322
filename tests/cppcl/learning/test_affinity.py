import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

from cppcl.errors import InputError
from cppcl.learning import affinity
from cppcl.learning.affinity import within_weights
from cppcl.learning.graph import Laplacian


def unit(F):
    return F / np.linalg.norm(F, axis=1, keepdims=True)


@pytest.mark.parametrize("block", [1 << 22, 100])
@pytest.mark.parametrize(("n_neighbors", "sigma"), [(3, 1.0), (10, 0.5), (50, 2.0)])
def test_neighbours_are_those_of_scikit_learn_in_each_class(
    block, n_neighbors, sigma, monkeypatch
):
    monkeypatch.setattr(affinity, "BLOCK", block)
    rng = np.random.default_rng(0)
    F = rng.standard_normal((90, 6)) * rng.random((90, 1))
    labels = np.array(["a", "b", "c", "c"])[rng.integers(0, 4, 90)]
    weights = within_weights(F, labels, "knn", n_neighbors=n_neighbors, sigma=sigma)
    expected = np.zeros((90, 90))
    for label in "abc":
        rows = np.flatnonzero(labels == label)
        k = min(n_neighbors, len(rows) - 1)
        graph = kneighbors_graph(unit(F[rows]), k, mode="distance").toarray()
        graph[graph > 0] = np.exp(-(graph[graph > 0] ** 2) / (2 * sigma**2))
        expected[np.ix_(rows, rows)] = np.maximum(graph, graph.T)
    np.testing.assert_allclose(weights.toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("size", [1.0, 3.0, 1e-200, 1e200])
def test_the_complete_graph_is_as_printed_on_features_as_they_come(size):
    F = np.random.default_rng(0).standard_normal((20, 4))
    weights = within_weights(size * F, np.zeros(20), "dense", sigma=1.5).toarray()
    expected = np.exp(-cdist(F, F, "sqeuclidean") * min(size, 1e100) ** 2 / (2 * 1.5**2))
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(weights, expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["knn", "dense"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_keep_the_dtype_and_join_a_laplacian(kind, dtype):
    rng = np.random.default_rng(1)
    labels = np.arange(40) % 4
    weights = within_weights(rng.random((40, 5)).astype(dtype), labels, kind)
    assert weights.dtype == dtype
    graph = Laplacian.from_labels(labels, [0, 1, 2, 3], within=(weights, None), dtype=dtype)
    assert graph.within_weights[0].dtype == dtype
    assert graph.within_degree[:40].min() > 0


def test_samples_alone_in_their_class_and_zero_or_equal_rows_are_taken():
    F = np.array([[1.0, 0], [2.0, 0], [0, 0], [0, 3.0]])
    weights = within_weights(F, ["a", "a", "a", "b"], "knn", n_neighbors=1).toarray()
    assert weights[0, 1] == 1
    assert weights[2, :2].max() == pytest.approx(np.exp(-0.5))
    assert not weights[3].any()
    assert not weights.diagonal().any()
    assert within_weights(F, [*"aaab"], "none") is None


def test_memory_of_a_large_class_is_bounded():
    F = np.random.default_rng(0).standard_normal((5000, 4)).astype(np.float32)
    tracemalloc.start()
    weights = within_weights(F, np.zeros(5000), "knn", n_neighbors=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 5 * 5000 <= weights.nnz <= 10 * 5000
    # All distances alone would be 100 MB, and their order 200 MB more.
    assert peak < 90e6


def test_the_complete_graph_of_many_samples_is_refused(monkeypatch):
    monkeypatch.setattr(affinity, "LARGEST_DENSE", 3)
    with pytest.raises(InputError, match="every two of 4 samples, and takes at most 3; use"):
        within_weights(np.ones((4, 2)), np.zeros(4), "dense")
    assert within_weights(np.ones((4, 2)), np.zeros(4), "knn").nnz == 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "all"}, "kind='all' is not one of"),
        ({"n_neighbors": 0}, "n_neighbors=0 must be a whole number"),
        ({"sigma": 0.0}, "sigma=0.0 must be a number above 0"),
        ({"labels": [*"ab"]}, "labels has 2 entries for 3 rows"),
    ],
)
def test_bad_options_are_refused(options, message):
    settings = {"labels": [*"aab"], "kind": "knn"} | options
    with pytest.raises(InputError, match=message):
        within_weights(np.ones((3, 2)), **settings)


@pytest.mark.parametrize("kind", ["knn", "dense"])
@pytest.mark.parametrize(("sigma", "weight"), [(1e-9, 0.0), (1e9, 1.0)])
def test_widths_whose_squares_are_no_numbers_weigh_nothing_or_all(kind, sigma, weight):
    F = np.random.default_rng(0).standard_normal((6, 4))
    weights = within_weights(F, [0] * 6, kind, sigma=sigma).toarray()
    np.testing.assert_array_equal(weights, weight * (1 - np.eye(6)))
