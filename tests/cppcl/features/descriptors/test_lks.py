import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.features.descriptors.lks import Lks
from tests.cppcl.features.scenes import cosine, drawing


@pytest.fixture(scope="module")
def fitted():
    return Lks().fit(drawing(seed, width) for seed in range(12) for width in (1, 2, 3))


@pytest.mark.parametrize(("blocks", "dimension"), [(4, 2400), (3, 1350)])
def test_dimension_as_printed(fitted, blocks, dimension):
    extractor = Lks(blocks=blocks).from_arrays(fitted.to_arrays())
    assert extractor.dimension == dimension
    assert extractor.transform([drawing(50)]).shape == (1, dimension)


def test_place_does_not_matter_and_size_hardly(fitted):
    sketch = drawing(60)
    moved = np.full((500, 420, 3), 255, dtype=np.uint8)
    moved[200:456, 100:356] = sketch
    large = sketch.repeat(2, axis=0).repeat(2, axis=1)
    rows = fitted.transform([sketch, moved, large])
    np.testing.assert_array_equal(rows[1], rows[0])
    assert cosine(rows[2], rows[0]) > 0.95


def test_samples_are_limited():
    pictures = [drawing(seed) for seed in range(6)]
    options = {"n_keyshapes": 10, "samples_per_picture": 30}
    counts = Lks(**options).fit(pictures).learned("statistics")[:, 4]
    assert counts.sum() == 180
    counts = Lks(**options, max_samples=100).fit(pictures).learned("statistics")[:, 4]
    assert counts.sum() == 100


def test_blank_training_pictures_teach_nothing():
    blank = np.full((50, 60, 3), 255, dtype=np.uint8)
    pictures = [drawing(seed) for seed in range(3)]
    extractor = Lks(n_keyshapes=20)
    with_blank = extractor.fit([blank, *pictures, blank]).learned("keyshapes")
    np.testing.assert_array_equal(with_blank, extractor.fit(pictures).learned("keyshapes"))
    for none in ([], [blank, np.zeros_like(blank)]):
        with pytest.raises(InputError, match=f"none of the {len(none)} training pictures"):
            extractor.fit(none)
    with pytest.raises(InputError, match=r"3 different stroke descriptors.*n_keyshapes=20"):
        Lks(n_keyshapes=20, samples_per_picture=1).fit(pictures)
    with pytest.raises(InputError, match="picture 1 is"):
        extractor.fit([blank, "a.png"])


def test_no_contours_give_zeros(fitted):
    flat = [np.full((40, 60, 3), value, dtype=np.uint8) for value in (0, 128, 255)]
    np.testing.assert_array_equal(fitted.transform(flat), 0)


def test_photographs_in_the_keyshapes_of_sketches(fitted):
    y, x = np.mgrid[:200, :200] - 99.5
    disk = np.where(np.hypot(x, y) < 70, 60, 180).astype(np.uint8)
    photo = np.repeat(disk[..., None], 3, axis=2)
    circle = np.full_like(photo, 255)
    circle[np.abs(np.hypot(x, y) - 99) < 1] = 0
    square = np.full_like(photo, 255)
    square[:2] = square[-2:] = square[:, :2] = square[:, -2:] = 0
    row = Lks(contours="canny").from_arrays(fitted.to_arrays()).transform([photo])[0]
    like, unlike = fitted.transform([circle, square])
    assert cosine(row, like) > cosine(row, unlike) + 0.1


def test_distances_far_beyond_the_scales_still_vote(fitted):
    arrays = fitted.to_arrays()
    arrays["statistics"] = arrays["statistics"].copy()
    arrays["statistics"][:, 1] *= 1e-3
    row = Lks().from_arrays(arrays).transform([drawing(50)])[0]
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) > 2


def test_picture_of_the_keyshapes(fitted):
    sheet = fitted.drawing(columns=15, gap=4).picture
    assert sheet.shape == (10 * 35 + 4, 15 * 35 + 4, 3)
    assert sheet.dtype == np.uint8
    order = np.argsort(-fitted.learned("statistics")[:, 4], kind="stable")
    look = fitted.learned("patches")[order[16]]
    expected = 255 * (1 - look / look.max())
    np.testing.assert_allclose(sheet[39:70, 39:70, 0], expected, atol=0.51)
    # Every member is marked in the middle of its own surroundings.
    np.testing.assert_allclose(fitted.learned("patches")[:, 15, 15], 1)
    assert (sheet[4 + 15 :: 35, 4 + 15 :: 35] == 0).all()
