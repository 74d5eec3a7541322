import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.errors import InputError
from cppcl.features.descriptors.bag_of_words.laplace import harmonic


def test_a_line_between_two_values():
    known = np.zeros((7, 101), dtype=bool)
    known[:, [0, -1]] = True
    values = np.where(known, np.linspace(-3, 5, 101), np.nan)
    solved = harmonic(known, values)
    np.testing.assert_allclose(solved, np.tile(np.linspace(-3, 5, 101), (7, 1)), atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 120), st.integers(1, 120)),
    n_known=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_unknown_is_the_mean_of_its_neighbours(shape, n_known, seed):
    rng = np.random.default_rng(seed)
    known = np.zeros(shape, dtype=bool)
    known.flat[rng.integers(0, known.size, n_known)] = True
    values = rng.uniform(-4, 4, shape)
    solved = harmonic(known, values, tolerance=1e-9)
    padded = np.pad(solved, 1, mode="edge")
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    np.testing.assert_allclose(solved[~known], around[~known] / 4, atol=1e-5)
    assert solved.min() >= values[known].min() - 1e-6
    assert solved.max() <= values[known].max() + 1e-6


def test_one_far_pixel_decides_all():
    known = np.zeros((300, 200), dtype=bool)
    known[299, 0] = True
    np.testing.assert_allclose(harmonic(known, np.full((300, 200), 2.5)), 2.5, atol=1e-6)


def test_everything_known_is_kept():
    values = np.random.default_rng(0).random((3, 5, 6))
    np.testing.assert_array_equal(harmonic(np.ones((5, 6), bool), values), values)


def test_nothing_known_is_refused():
    with pytest.raises(InputError, match=r"no pixel of \(4, 5\)"):
        harmonic(np.zeros((4, 5), bool), np.zeros((4, 5)))
