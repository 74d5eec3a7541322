import numpy as np
import pytest

from cppcl.curriculum.among import Among, among
from cppcl.curriculum.orders import AllPairs, ChainedPairs
from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.curriculum.semiorder import order_by_scores

ROWS = np.array([1, 4, 5, 9, 2])


@pytest.fixture(params=[AllPairs, ChainedPairs, ExplicitPairs])
def curriculum(request):
    rng = np.random.default_rng(0)
    if request.param is ExplicitPairs:
        pairs = rng.integers(12, size=(60, 2))
        return ExplicitPairs(pairs[pairs[:, 0] != pairs[:, 1]], 12)
    return request.param(order_by_scores(rng.random(12), np.zeros(12), delta=0.05, scope="global"))


def test_it_says_of_these_samples_what_the_whole_says_of_them_alone(curriculum):
    rng = np.random.default_rng(1)
    found, alone = among(curriculum, ROWS), curriculum.restrict(ROWS)
    assert (found.n_samples, found.n_pairs) == (12, alone.n_pairs)
    v = rng.random(12)
    assert found.value(v) == pytest.approx(alone.value(v[ROWS]))
    value, gradient = found.smoothed_gradient(v, 0.1)
    expected, inner = alone.smoothed_gradient(v[ROWS], 0.1)
    assert value == pytest.approx(expected)
    np.testing.assert_allclose(gradient[ROWS], inner)
    others = np.setdiff1d(np.arange(12), ROWS)
    for of_all, of_some in (
        (gradient, inner),
        (found.degree(), alone.degree()),
        (found.curvature(0.1), alone.curvature(0.1)),
    ):
        np.testing.assert_allclose(of_all[ROWS], of_some)
        assert not of_all[others].any()


def test_it_can_be_restricted_further(curriculum):
    kept = np.array([9, 0, 1, 5])
    found = Among(curriculum.restrict(ROWS), ROWS, 12).restrict(kept)
    expected = curriculum.restrict(np.array([9, 1, 5]))
    v = np.random.default_rng(2).random(4)
    assert found.n_samples == 4
    assert found.value(v) == pytest.approx(expected.value(v[[0, 2, 3]]))
