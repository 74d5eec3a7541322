import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cppcl.errors import InputError
from cppcl.features.descriptors.vocabulary import (
    N_CELLS,
    inverse_document_frequency,
    learn_words,
    nearest_words,
    word_histogram,
)


def blobs(n_each=40, seed=0):
    """Points around the corners of a cube, and the corners."""
    corners = np.array(np.meshgrid([0, 9], [0, 9], [0, 9])).reshape(3, 8).T.astype(np.float32)
    rng = np.random.default_rng(seed)
    points = np.repeat(corners, n_each, axis=0)
    return rng.permutation(points + 0.1 * rng.standard_normal(points.shape)).astype(np.float32)


def test_words_are_centres_of_clusters():
    points = blobs()
    words = learn_words(points, 8, 0, 5)
    assert words.dtype == np.float32
    found = nearest_words(points, words)
    for word in range(8):
        members = points[found == word]
        assert len(members) == 40
        np.testing.assert_allclose(words[word], members.mean(axis=0), atol=0.05)


def test_same_seed_same_words():
    points = np.random.default_rng(1).random((500, 6), dtype=np.float32)
    first = learn_words(points, 20, 3, 5)
    assert learn_words(np.asfortranarray(points), 20, 3, 5).tobytes() == first.tobytes()
    assert learn_words(points, 20, 4, 5).tobytes() != first.tobytes()


@pytest.mark.parametrize("n", [0, 1, 7])
def test_fewer_different_descriptors_than_words(n):
    points = np.repeat(blobs(1)[:n], 20, axis=0)
    words = rf"{n} different local descriptors of 12 training pictures.*n_words=8.*lower n_words"
    with pytest.raises(InputError, match=words):
        learn_words(points, 8, 0, 12)


def test_no_descriptors_have_no_words():
    assert nearest_words(np.empty((0, 3), np.float32), blobs(1)).shape == (0,)
    assert not word_histogram(np.empty(0, int), np.empty((0, 2)), 4).any()
    assert word_histogram(np.empty(0, int), np.empty((0, 2)), 4, True).shape == (4 * N_CELLS,)


@given(st.integers(1, 300), st.integers(1, 5), st.booleans(), st.integers(0, 2**32 - 1))
def test_shares_sum_to_one(n, n_words, pyramid, seed):
    rng = np.random.default_rng(seed)
    histogram = word_histogram(rng.integers(0, n_words, n), rng.random((n, 2)), n_words, pyramid)
    assert histogram.sum() == pytest.approx(1, abs=1e-12)
    assert (histogram >= 0).all()


def test_intersection_of_pyramids_weighs_finer_matches_more():
    words, corner = np.array([0]), np.array([[0.1, 0.1]])
    places = {"same": [0.2, 0.2], "half": [0.4, 0.4], "far": [0.9, 0.9]}
    first = word_histogram(words, corner, 2, pyramid=True)
    matches = {
        name: np.minimum(first, word_histogram(words, np.array([place]), 2, pyramid=True)).sum()
        for name, place in places.items()
    }
    assert matches == {"same": 1.0, "half": 0.5, "far": 0.25}


def test_frequency_of_words():
    weights = inverse_document_frequency(np.array([0, 1, 5, 10]), 10)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights, np.log([10, 10, 2, 1]), rtol=1e-6)
