import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.curriculum import Curriculum, ExplicitPairs
from cppcl.errors import InputError


def random_pairs(seed, n=9, count=25):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n, size=(count, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]], rng.random(n)


@given(seed=st.integers(0, 2**20))
@settings(max_examples=30, deadline=None)
def test_value_and_degree_equal_a_loop(seed):
    pairs, v = random_pairs(seed)
    curriculum: Curriculum = ExplicitPairs(pairs, 9)
    assert curriculum.value(v) == pytest.approx(sum(max(0, v[h] - v[e]) for h, e in pairs))
    expected = [sum(k in pair for pair in pairs.tolist()) for k in range(9)]
    np.testing.assert_array_equal(curriculum.degree(), expected)


@given(seed=st.integers(0, 2**20), eps=st.sampled_from([1.0, 0.1, 1e-3]))
@settings(max_examples=40, deadline=None)
def test_smoothed_value_equals_the_three_pieces(seed, eps):
    pairs, v = random_pairs(seed)
    z = [v[h] - v[e] for h, e in pairs]
    expected = sum(0 if x < 0 else x * x / (2 * eps) if x < eps else x - eps / 2 for x in z)
    curriculum = ExplicitPairs(pairs, 9)
    value, _ = curriculum.smoothed_gradient(v, eps)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert 0 <= curriculum.value(v) - value <= len(pairs) * eps / 2 + 1e-12


@pytest.mark.parametrize("eps", [1.0, 0.3])
def test_gradient_equals_central_differences(eps):
    pairs, v = random_pairs(4)
    curriculum = ExplicitPairs(pairs, 9)
    _, gradient = curriculum.smoothed_gradient(v, eps)
    h = 1e-6
    numeric = [
        (curriculum.smoothed_gradient(v + d, eps)[0] - curriculum.smoothed_gradient(v - d, eps)[0])
        / (2 * h)
        for d in h * np.eye(9)
    ]
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)
    assert np.abs(gradient).max() > 0.1


def test_restriction_renumbers():
    curriculum = ExplicitPairs(np.array([[0, 1], [3, 1], [3, 2]]), 4)
    restricted = curriculum.restrict(np.array([1, 3]))
    np.testing.assert_array_equal(restricted.pairs, [[1, 0]])
    assert restricted.n_samples == 2


def test_arrays_restore_the_same_pairs():
    curriculum = ExplicitPairs(np.array([[0, 1], [2, 0]], dtype=np.int32), 5)
    arrays = curriculum.to_arrays()
    assert arrays["pairs"].dtype == np.int64
    restored = ExplicitPairs.from_arrays(arrays)
    np.testing.assert_array_equal(restored.pairs, curriculum.pairs)
    assert restored.n_samples == 5


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (np.array([[0.0, 1.0]]), r"integers of shape \(P, 2\).*float64"),
        (np.array([0, 1]), r"shape \(2,\)"),
        (np.array([[0, 1], [0, 3]]), r"pair 1 is \(0, 3\).*n_samples=3"),
        (np.array([[-1, 1]]), r"pair 0 is \(-1, 1\)"),
        (np.array([[2, 2]]), "sample 2 with itself"),
    ],
)
def test_wrong_pairs_are_named(pairs, message):
    with pytest.raises(InputError, match=message):
        ExplicitPairs(pairs, 3)
