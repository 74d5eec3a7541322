import tracemalloc
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfTransformer

from cppcl.errors import InputError
from cppcl.features import make_extractor
from cppcl.features.descriptors.bag_of_words.visual_words import (
    N_CELLS,
    VisualWords,
    inverse_document_frequency,
    learn_words,
    nearest_words,
    word_histogram,
)

WORDS = ["gf_hog", "self_similarity", "shog", "sift"]


@dataclass(frozen=True, kw_only=True)
class Colours(VisualWords):
    """Words of the colours of pixels that are not white."""

    name: ClassVar[str] = "colours"
    version: ClassVar[int] = 1
    device: ClassVar[str] = "cpu"
    length: ClassVar[int] = 3

    def local_descriptors(self, picture):
        pixels = np.argwhere((picture < 255).any(axis=2))
        return (picture[tuple(pixels.T)] / 255).astype(np.float32), pixels / picture.shape[:2]


def painted(n, seed=0, n_colours=6):
    """Pictures of pixels in a few of several colours."""
    rng = np.random.default_rng(seed)
    palette = np.vstack([rng.integers(0, 200, (n_colours, 3)), [[255, 255, 255]]])
    pictures = []
    for _ in range(n):
        few = rng.permutation(n_colours)[: rng.integers(1, n_colours)]
        choice = rng.choice([*few, n_colours], (12, 10))
        pictures.append(palette[choice].astype(np.uint8))
    return pictures


def words_by_hand(extractor, picture):
    descriptors, positions = extractor.local_descriptors(picture)
    words = extractor.to_arrays()["words"]
    return [np.linalg.norm(words - d, axis=1).argmin() for d in descriptors], positions


def test_histograms_by_hand():
    pictures = painted(9)
    extractor = Colours(n_words=6).fit(pictures)
    rows = extractor.transform(pictures)
    assert rows.shape == (9, extractor.dimension) == (9, 6)
    for picture, row in zip(pictures, rows, strict=True):
        words, _ = words_by_hand(extractor, picture)
        np.testing.assert_allclose(row, np.bincount(words, minlength=6) / len(words), atol=1e-7)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)


def test_tf_idf_by_scikit_learn():
    pictures, others = painted(20), painted(7, seed=5)
    extractor = Colours(n_words=6, weighting="tf_idf").fit(pictures)
    counts, of_others = (
        np.array([np.bincount(words_by_hand(extractor, p)[0], minlength=6) for p in part])
        for part in (pictures, others)
    )
    model = TfidfTransformer(norm=None, smooth_idf=False).fit(counts)
    frequencies = of_others / of_others.sum(axis=1, keepdims=True)
    # scikit-learn adds one to the logarithm.
    expected = model.transform(frequencies).toarray() - frequencies
    assert (np.abs(expected) > 0.01).any()
    np.testing.assert_allclose(extractor.transform(others), expected, atol=1e-6)


def test_a_picture_without_anything_is_zero():
    extractor = Colours(n_words=3).fit(painted(4))
    assert not extractor.transform([np.full((5, 4, 3), 255, np.uint8)]).any()


def test_tf_idf_needs_to_read_twice():
    with pytest.raises(InputError, match=r"weighting='tf_idf'.*iterator.*give a list"):
        Colours(n_words=3, weighting="tf_idf").fit(iter(painted(4)))
    from_iterator = Colours(n_words=3).fit(iter(painted(4))).to_arrays()["words"]
    np.testing.assert_array_equal(
        from_iterator, Colours(n_words=3).fit(painted(4)).to_arrays()["words"]
    )


def test_samples_are_bounded():
    pictures = painted(30)
    few = {"n_words": 3, "samples_per_picture": 1}
    assert Colours(**few).fit(pictures).to_arrays()["words"].shape == (3, 3)
    with pytest.raises(InputError, match=r"2 different .* of 2 training pictures.*n_words=3"):
        Colours(**few).fit(painted(2, n_colours=40))
    with pytest.raises(InputError, match=r"different .* of 30 training pictures.*max_samples"):
        Colours(n_words=5, max_samples=5).fit(pictures)


def test_memory_does_not_grow_with_the_pictures():
    def peak(n):
        pictures = (painted(1, seed, 200)[0] for seed in range(n))
        extractor = Colours(n_words=5, max_samples=2000)
        tracemalloc.start()
        try:
            extractor.fit(pictures)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(5)
    assert peak(1000) < 1.5 * peak(100)


def test_the_position_of_what_is_no_picture_is_named_in_fit():
    with pytest.raises(InputError, match=r"picture 2 is .*uint8 RGB"):
        Colours(n_words=3).fit([*painted(2), np.zeros((4, 4))])


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_words": 0}, "n_words=0"),
        ({"weighting": "idf"}, "weighting='idf'.*tf_idf"),
        ({"pyramid": 1}, "pyramid=1"),
        ({"samples_per_picture": 0}, "samples_per_picture=0"),
        ({"max_samples": 30}, "max_samples=30"),
        ({"seed": -1}, "seed=-1"),
        ({"contours": "edges"}, "contours='edges'"),
    ],
)
def test_wrong_options(name, options, words):
    with pytest.raises(InputError, match=words):
        make_extractor(name, options)


@pytest.mark.parametrize("name", WORDS)
def test_photographs_by_words_of_sketches(name, drawings, make):
    extractor = make(name).fit(drawings)
    options = extractor.parameters() | {"contours": "canny"}
    other = make_extractor(name, options).from_arrays(extractor.to_arrays())
    rows = other.transform(drawings[:2])
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-5)
    assert not np.array_equal(rows, extractor.transform(drawings[:2]))


@pytest.mark.parametrize("name", WORDS)
def test_local_descriptors_lie_in_the_picture(name, drawings):
    extractor = make_extractor(name)
    descriptors, positions = extractor.local_descriptors(drawings[0])
    assert descriptors.dtype == np.float32
    assert descriptors.shape == (len(positions), extractor.length)
    assert len(descriptors) > 100
    assert (positions >= 0).all()
    assert (positions <= 1).all()
    assert np.ptp(positions, axis=0).min() > 0.5


@pytest.mark.parametrize("name", WORDS)
def test_place_and_margin_of_a_sketch_do_not_matter(name, drawings):
    extractor = make_extractor(name)
    sketch = drawings[2]
    moved = np.full((2 * sketch.shape[0], 3 * sketch.shape[1], 3), 255, np.uint8)
    moved[5 : 5 + sketch.shape[0], 9 : 9 + sketch.shape[1]] = sketch
    for found, expected in zip(
        extractor.local_descriptors(moved), extractor.local_descriptors(sketch), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


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
