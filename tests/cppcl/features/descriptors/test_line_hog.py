import numpy as np

from cppcl.features import make_extractor
from cppcl.features.descriptors.hog import hog_of_square


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_a_drawing_is_like_the_edges_of_the_thing_elsewhere():
    """Small and in a corner, against large and filled; `hog` sees two different pictures."""
    rows, columns = np.mgrid[:200, :200]
    ring = np.abs(np.hypot(rows - 60, columns - 50) - 30) < 2
    sketch = np.where(ring, 0, 255).astype(np.uint8)[..., None].repeat(3, axis=2)
    photo = np.full((200, 200, 3), 255, dtype=np.uint8)
    photo[np.hypot(rows - 100, columns - 100) < 80] = (200, 60, 60)
    drawn = make_extractor("line_hog").transform([sketch])[0]
    taken = make_extractor("line_hog", {"contours": "colour_canny"}).transform([photo])[0]
    assert cosine(drawn, taken) > 0.7
    plain = make_extractor("hog").transform([sketch, photo])
    assert cosine(*plain) < 0.5


def test_it_is_the_hog_of_lines_that_fill_nine_tenths():
    picture = np.full((128, 128, 3), 255, dtype=np.uint8)
    picture[6:121, 6:9] = picture[6:121, 118:121] = 0  # a box of 115 pixels, where it is put
    expected = hog_of_square((255 - picture[..., 0]).astype(np.float32) / 255)
    np.testing.assert_allclose(
        make_extractor("line_hog").transform([picture])[0], expected, atol=1e-5
    )
