"""Places of codes in the plane."""

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.retrieval.layout import picture_layout, query_layout


@pytest.fixture(scope="module")
def clusters():
    """Codes around three directions, and which each is around."""
    rng = np.random.default_rng(0)
    which = np.repeat(np.arange(3), 20)
    return np.eye(3)[which] * 5 + rng.normal(0, 0.1, (60, 3)), which


@pytest.mark.parametrize("most", [2000, 30])
def test_codes_alike_are_near_and_all_are_within_the_square(clusters, most):
    codes, which = clusters
    places = picture_layout(codes, most=most)
    assert places.dtype == np.float32
    assert np.ptp(places, axis=0).max() == pytest.approx(1, abs=1e-5)
    assert -1e-5 <= places.min() < places.max() <= 1 + 1e-5
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (which[distances.argmin(axis=1)] == which).all()
    np.testing.assert_array_equal(places, picture_layout(codes, most=most))


def test_lengths_count_only_for_a_distance(clusters):
    codes, _ = clusters
    longer = codes * np.linspace(1, 9, len(codes))[:, None]
    np.testing.assert_allclose(picture_layout(longer), picture_layout(codes), atol=0.05)


@pytest.mark.parametrize("codes", [np.ones((1, 4)), np.eye(3), np.ones((9, 4))])
def test_few_codes_and_equal_ones_stand_apart(codes):
    places = picture_layout(codes)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == len(codes)


def test_queries_stand_beside_what_they_find():
    places = np.array([[0.0, 0.0], [1.0, 0.0]])
    beside = query_layout(places, np.array([[0, 1], [0, 1], [1, 1]]))
    np.testing.assert_allclose(beside, [[0.125, 0], [0.125, 0], [1, 0]], atol=0.0061)
    assert len(np.unique(beside, axis=0)) == 3


def test_mistakes_are_named():
    with pytest.raises(InputError, match="codes are empty"):
        picture_layout(np.empty((0, 3)))
    with pytest.raises(InputError, match="most"):
        picture_layout(np.eye(9), most=2)
