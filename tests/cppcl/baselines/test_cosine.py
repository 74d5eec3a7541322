import numpy as np
import pytest

from cppcl.baselines import CentredCosine, RawCosine
from cppcl.errors import InputError


@pytest.mark.parametrize("method", [RawCosine, CentredCosine])
def test_different_features_cannot_be_compared_directly(method):
    with pytest.raises(InputError, match="sketch_features has 3 columns and image_features 4"):
        method().fit(np.eye(3), np.eye(4), range(3), range(4))


def test_raw_codes_are_the_features():
    rng = np.random.default_rng(0)
    sketches, images = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    method = RawCosine().fit(sketches, images, range(5), range(4))
    np.testing.assert_array_equal(method.encode_sketches(sketches), sketches)
    np.testing.assert_array_equal(method.encode_images(images), images)


def test_centring_removes_what_tells_the_modalities_apart():
    rng = np.random.default_rng(1)
    content = rng.normal(size=(50, 8))
    style = 10 * rng.normal(size=(2, 8))
    sketches, images = content[:40] + style[0], content[:40] + style[1]
    method = CentredCosine().fit(sketches, images, range(40), range(40))
    np.testing.assert_allclose(
        method.encode_sketches(content[40:] + style[0]),
        method.encode_images(content[40:] + style[1]),
        atol=1e-12,
    )
    expected = content[40:] - content[:40].mean(axis=0)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(method.encode_images(content[40:] + style[1]), expected)
