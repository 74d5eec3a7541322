"""A prepared gallery finds exactly what an unprepared one does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.errors import InputError
from cppcl.retrieval.exact import METRICS, nearest
from cppcl.retrieval.gallery import Gallery


def codes(n, width=40, share=1.0, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, width)) * (rng.random((n, width)) < share)).astype(dtype)


def assert_same(queries, gallery, k, metric):
    prepared = Gallery(gallery, metric=metric)
    found, expected = prepared.nearest(queries, k), nearest(queries, gallery, k, metric=metric)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("share", [1.0, 0.04])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_is_found(metric, share, dtype):
    gallery = codes(9000, share=share, dtype=dtype)
    gallery[17] = 0
    queries = codes(5, share=max(share, 0.1), seed=1, dtype=dtype)
    queries[3] = 0
    for k in (1, 10, 300):
        assert_same(queries, gallery, k, metric)
    few = gallery[10:40]  # one is zero
    assert_same(queries, few, 30, metric)
    assert_same(queries, few, 99, metric)


@pytest.mark.parametrize("share", [1.0, 0.04])
def test_codes_closer_than_single_precision_tells_are_told_apart(share):
    gallery = np.repeat(codes(3, share=share, dtype=np.float64), 500, axis=0)
    gallery *= 1 + 3e-8 * np.random.default_rng(2).standard_normal(gallery.shape)
    for metric in ("cosine", "l2"):
        assert_same(gallery[::300] + 1e-3 * (gallery[::300] != 0), gallery, 20, metric)


@pytest.mark.parametrize("scale", [1e-140, 1e-22, 1e-10, 1e16, 1e140])
@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_extreme_codes(scale, metric):
    gallery, queries = codes(300, dtype=np.float64) * scale, codes(3, seed=1, dtype=np.float64)
    assert_same(queries, gallery, 7, metric)
    assert_same(queries * scale, gallery, 7, metric)


@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.3, 1.0]), st.sampled_from(METRICS))
@settings(max_examples=40, deadline=None)
def test_the_same_is_found_in_random_ones(seed, share, metric):
    rng = np.random.default_rng(seed)
    # Few values, so that many codes tie.
    gallery = rng.integers(-1, 2, (rng.integers(1, 80), 12)) * (rng.random(12) < share)
    assert_same(rng.integers(-1, 2, (2, 12)), gallery, int(rng.integers(1, 90)), metric)


@pytest.mark.parametrize(
    ("gallery", "query", "k", "message"),
    [
        (np.ones((0, 3)), np.ones((1, 3)), 1, "gallery_codes are empty"),
        (np.ones((2, 3)), np.ones((1, 4)), 1, "query_codes have 4 entries and gallery_codes 3"),
        (np.ones((2, 3)), np.ones((1, 3)), 0, "k=0 must be a whole number of at least 1"),
        (np.ones((2, 3)), np.full((1, 3), np.nan), 1, "query_codes row 0 holds nan"),
        (np.full((2, 3), np.inf), np.ones((1, 3)), 1, "gallery_codes row 0 holds inf"),
    ],
)
def test_errors(gallery, query, k, message):
    with pytest.raises(InputError, match=message):
        Gallery(gallery).nearest(query, k)
    with pytest.raises(InputError, match=r"metric='hamming' is not one of"):
        Gallery(np.ones((2, 3)), metric="hamming")


@pytest.mark.parametrize("k", [0, 1.5, float("nan"), True, "3"])
@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_are_counted(k, metric):
    gallery = np.eye(3)
    with pytest.raises(InputError, match=f"k={k!r} must be a whole number of at least 1"):
        Gallery(gallery, metric=metric).nearest(gallery, k)
    with pytest.raises(InputError, match=f"k={k!r} must be a whole number of at least 1"):
        nearest(gallery, gallery, k, metric=metric)


def test_a_notebook_shows_what_a_gallery_holds():
    gallery = Gallery(np.array([[1.0, 0], [0, 0], [2, 3], [0, 4]]))
    assert repr(gallery) == "Gallery(4 codes of 2 float64, metric='cosine')"
    page = gallery._repr_html_()
    for name, value in (("codes", "4"), ("entries not zero", "50.0 %"), ("empty codes", "1")):
        assert f"<th>{name}</th><td>{value}</td>" in page
