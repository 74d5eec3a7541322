"""An approximate gallery finds most of what is nearest, and says how much."""

import sys

import numpy as np
import pytest

from cppcl.errors import DataUnavailableError, InputError
from cppcl.retrieval.approximate import ApproximateGallery
from cppcl.retrieval.exact import nearest


def clusters(n, seed=0, width=24):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((20, width))
    return (centres[rng.integers(20, size=n)] + 0.5 * rng.standard_normal((n, width))).astype("f4")


def test_most_are_found_and_cosines_are_exact():
    gallery, queries = clusters(3000), clusters(40, seed=1)
    approximate = ApproximateGallery(gallery)
    indices, similarities = approximate.nearest(queries, 10)
    expected, cosines = nearest(queries, gallery, 10)
    shares = [np.isin(a, b).mean() for a, b in zip(expected, indices, strict=True)]
    assert np.mean(shares) > 0.95
    assert approximate.recall(queries, 10) == pytest.approx(np.mean(shares))
    same = indices == expected
    np.testing.assert_allclose(similarities[same], cosines[same], rtol=1e-6)
    assert (np.diff(similarities, axis=1) <= 0).all()


def test_less_breadth_finds_less():
    gallery, queries = clusters(3000), clusters(200, seed=1)
    narrow = ApproximateGallery(gallery, n_links=2, breadth=1).recall(queries, 5)
    assert narrow < ApproximateGallery(gallery).recall(queries, 5) - 0.05


def test_codes_of_zero_are_never_found():
    gallery = clusters(50)
    gallery[::2] = 0
    queries = clusters(3, seed=1)
    queries[1] = 0
    indices, similarities = ApproximateGallery(gallery).nearest(queries, 40)
    assert (indices[[0, 2], :20] % 2 == 1).all()
    assert (indices[1] == -1).all()
    assert np.isneginf(similarities[indices == -1]).all()
    assert np.isfinite(similarities[indices >= 0]).all()


def test_no_more_are_found_than_there_are():
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(7, 4))
    indices, cosines = ApproximateGallery(gallery).nearest(gallery[:2], 2**40)
    assert indices.shape == cosines.shape == (2, 7)
    assert [sorted(row) for row in indices.tolist()] == [list(range(7))] * 2
    with pytest.raises(InputError, match="query_codes are empty"):
        ApproximateGallery(gallery).recall(gallery[:0], 3)


def test_errors(monkeypatch):
    gallery = ApproximateGallery(clusters(5))
    with pytest.raises(InputError, match="query_codes have 3 entries and gallery_codes 24"):
        gallery.nearest(np.ones((1, 3)), 1)
    with pytest.raises(InputError, match="k=0 must be a whole number of at least 1"):
        gallery.nearest(clusters(1), 0)
    with pytest.raises(InputError, match="gallery_codes are empty"):
        ApproximateGallery(clusters(0))
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(
        DataUnavailableError, match=r"needs faiss: pip install 'cppcl\[approximate\]'"
    ):
        ApproximateGallery(clusters(5))
