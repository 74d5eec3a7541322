import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.features.descriptors.bag_of_words.laplace import harmonic


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
