import numpy as np
from skimage.feature import hog

from cppcl.features.contours.strokes import normalised_strokes
from cppcl.features.descriptors.hog import Hog


def _reference(gray: np.ndarray) -> np.ndarray:
    return hog(gray, orientations=9, pixels_per_cell=(18, 18), cells_per_block=(2, 2))


def test_equals_skimage_on_a_hand_prepared_picture():
    rng = np.random.default_rng(0)
    gray = np.full((128, 128), 255, dtype=np.uint8)
    gray[:, 34:94] = rng.integers(0, 256, (128, 60))
    picture = np.repeat(gray[:, 34:94, None], 3, axis=2)
    row = Hog().transform([picture])[0]
    np.testing.assert_allclose(row, _reference(gray / 255), atol=1e-5)


def test_is_not_stretched():
    picture = np.full((40, 120, 3), 255, dtype=np.uint8)
    picture[10:30, 30:90] = 0
    padded = np.full((120, 120, 3), 255, dtype=np.uint8)
    padded[40:80] = picture
    np.testing.assert_array_equal(Hog().transform([picture]), Hog().transform([padded]))


def test_blocks_have_unit_norm_or_none():
    picture = np.full((128, 128, 3), 255, dtype=np.uint8)
    picture[:, 20] = 0
    blocks = Hog().transform([picture]).reshape(36, 36)
    norms = np.linalg.norm(blocks, axis=1)
    assert set(np.round(norms, 3)) == {0.0, 1.0}
    # A line that runs downwards changes sideways: orientation 0 of 0 to 180 degrees.
    orientations = blocks.reshape(36, 4, 9).sum(axis=(0, 1))
    assert orientations[0] > 0
    np.testing.assert_allclose(orientations[1:], 0, atol=1e-6)


def test_contours_are_described_on_their_canvas():
    picture = np.full((300, 200, 3), 255, dtype=np.uint8)
    picture[100:201, 50:54] = picture[100:104, 50:101] = 0
    gray = normalised_strokes(picture).astype(np.float64)
    # Halved by a triangle filter: weights 1, 3, 3, 1 around each pair of pixels, both ways.
    for _ in range(2):
        padded = np.pad(gray, ((1, 1), (0, 0)))
        gray = (padded[:-3:2] + 3 * padded[1:-2:2] + 3 * padded[2:-1:2] + padded[3::2]).T / 8
    expected = _reference(gray)
    row = Hog(contours="strokes").transform([picture])[0]
    np.testing.assert_allclose(row, expected, atol=1e-4)
    moved = np.full((400, 400, 3), 255, dtype=np.uint8)
    moved[50:350, 20:220] = picture
    np.testing.assert_array_equal(Hog(contours="strokes").transform([moved])[0], row)
    assert not np.array_equal(Hog(contours="canny").transform([picture])[0], row)
