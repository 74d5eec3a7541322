"""Scores over the course of drawing, beside a count by hand and random rankings."""

from __future__ import annotations

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.retrieval.on_the_fly import chance, course


def test_curves_are_means_at_each_step():
    # Two sketches at two steps, and one that has nothing relevant.
    found = course([11, 2, 5, 1, 0], [0.5, 1.0, 0.5, 1.0, 0.5], 11, ranks=(1, 5))
    np.testing.assert_array_equal(found.shares, [0.5, 1.0])
    np.testing.assert_allclose(found.percentile, [(0 + 0.6) / 2, (0.9 + 1) / 2])
    np.testing.assert_allclose(found.reciprocal_rank, [(1 / 11 + 1 / 5) / 2, 0.75])
    np.testing.assert_allclose(found.found[1], [0, 0.5])
    np.testing.assert_allclose(found.found[5], [0.5, 1])
    assert found.scores() == {
        "percentile": pytest.approx((0.3 + 0.95) / 2),
        "reciprocal_rank": pytest.approx((16 / 110 + 0.75) / 2),
    }


@pytest.mark.parametrize("n_relevant", [1, 3, 12])
def test_chance_is_what_random_rankings_have(n_relevant):
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(12), (20_000, 1)), axis=1)
    first = (order < n_relevant).argmax(axis=1) + 1
    random = course(first, np.ones(len(first)), 12).scores()
    for name, value in chance([n_relevant], 12).items():
        assert value == pytest.approx(random[name], abs=0.01)


@pytest.mark.parametrize(
    ("ranks", "shares", "n", "reason"),
    [([1], [1, 1], 9, "one of each"), ([1], [1], 1, "two pictures"), ([0], [1], 9, "no query")],
)
def test_what_has_no_course_is_refused(ranks, shares, n, reason):
    with pytest.raises(InputError, match=reason):
        course(ranks, shares, n)
