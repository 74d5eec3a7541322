"""Queries that are moved by what is liked."""

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.retrieval.feedback import moved_query

NONE = np.empty((0, 2))


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # Directions (1, 0), mean of (0, 1) and (0.6, 0.8), and (-1, 0).
        ("cosine", [1 + 0.75 * 0.3 + 0.1, 0.75 * 0.9]),
        # Codes (2, 0), mean (1.5, 3.5), and (-3, 0); weights 1 + 0.75 - 0.1.
        ("l2", [(2 + 0.75 * 1.5 + 0.1 * 3) / 1.65, 0.75 * 3.5 / 1.65]),
        ("intersection", [2 + 0.75 * 1.5 + 0.1 * 3, 0.75 * 3.5]),
    ],
)
def test_the_sum_is_rocchios(metric, expected):
    moved = moved_query([2.0, 0.0], [[0.0, 3.0], [3.0, 4.0]], [[-3.0, 0.0]], metric=metric)
    np.testing.assert_allclose(moved, expected, rtol=1e-12)


def test_without_answers_nothing_moves_and_without_a_query_answers_count():
    np.testing.assert_allclose(moved_query([0.0, 4.0], NONE, NONE), [0, 1])
    np.testing.assert_allclose(moved_query([0.0, 0.0], [[0.0, 2.0]], NONE), [0, 0.75])
    assert moved_query([0.1, 1], NONE, [[1.0, 0]], metric="intersection").tolist() == [0, 1]


def test_mistakes_are_named():
    with pytest.raises(InputError, match="liked codes have 3 entries and the query 2"):
        moved_query([1.0, 0], [[1.0, 2, 3]], NONE)
    with pytest.raises(InputError, match="away"):
        moved_query([1.0, 0], NONE, NONE, away=-1)
