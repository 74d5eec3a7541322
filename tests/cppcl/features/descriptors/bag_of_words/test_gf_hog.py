import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.features import make_extractor
from cppcl.features.descriptors.bag_of_words.gf_hog import GfHog, describe_pixels, gradient_field


@pytest.mark.parametrize("spread", ["laplace", "nearest"])
def test_sides_of_a_bar(spread):
    mask = np.zeros((30, 41), dtype=bool)
    mask[:, 20] = True
    field = gradient_field(mask, spread)
    # Left of the bar values rise to the right, so the gradient's cosine is 1; right of it -1.
    np.testing.assert_allclose(field[:, :20], 1, atol=1e-9)
    np.testing.assert_allclose(field[:, 20], 1)
    np.testing.assert_allclose(field[:, 21:], 0, atol=1e-9)
    # Above and below a bar it is 0.
    sideways = gradient_field(mask.T, spread)
    np.testing.assert_allclose(np.delete(sideways, 20, axis=0), 0.5, atol=1e-6)


def test_nothing_marked():
    mask = np.zeros((20, 30), dtype=bool)
    np.testing.assert_array_equal(gradient_field(mask, "laplace"), 1)
    descriptors, pixels = describe_pixels(np.ones((20, 30)), mask)
    assert (descriptors.shape, pixels.shape) == ((0, 81), (0, 2))


def test_a_constant_field_has_no_descriptors():
    noise = 1e-7 * np.random.default_rng(0).random((60, 60))
    for field in (np.full((60, 60), 0.3), 0.3 + noise):
        descriptors, _ = describe_pixels(field, np.ones((60, 60), bool))
        assert len(descriptors) == 0


def test_a_slope_is_in_the_bin_of_its_direction():
    field = np.tile(np.linspace(0, 1, 60), (60, 1))
    mask = np.zeros((60, 60), dtype=bool)
    mask[30, 30] = True
    descriptors, pixels = describe_pixels(field, mask)
    assert pixels.tolist() == [[30, 30]] * 3
    histograms = descriptors.reshape(3, 9, 9)
    np.testing.assert_allclose(histograms[:, :, 4], 1 / 3, atol=1e-6)
    assert not np.delete(histograms, 4, axis=2).any()
    downwards = describe_pixels(field.T, mask)[0].reshape(3, 9, 9)
    np.testing.assert_allclose(downwards[:, :, 6], 1 / 3, atol=1e-6)


def test_the_approximation_is_an_option(drawings):
    exact, near = (
        GfHog(field=field).local_descriptors(drawings[3])[0] for field in ("laplace", "nearest")
    )
    assert np.abs(exact[:50] - near[:50]).max() > 0.01
    with pytest.raises(InputError, match=r"field='poisson'.*laplace"):
        make_extractor("gf_hog", {"field": "poisson"})
