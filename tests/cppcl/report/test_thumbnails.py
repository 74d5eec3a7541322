import base64
import io

import numpy as np
from PIL import Image

from cppcl.report.thumbnails import THUMBNAIL_SIZE, thumbnail, thumbnail_uri


def test_proportions_are_kept_on_white():
    picture = np.zeros((50, 200, 3), np.uint8)
    picture[..., 0] = 200
    array = np.asarray(thumbnail(picture))
    assert array.shape == (THUMBNAIL_SIZE, THUMBNAIL_SIZE, 3)
    red = (array == [200, 0, 0]).all(axis=2)
    white = (array == 255).all(axis=2)
    assert red.any(axis=1).sum() == 24
    assert red.any(axis=0).sum() == 96
    assert (red | white).all()


def test_uri_shows_the_picture_within_its_bound():
    picture = np.random.default_rng(0).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    head, _, content = thumbnail_uri(picture).partition(",")
    png = base64.b64decode(content)
    assert head == "data:image/png;base64"
    assert len(png) < 96 * 96 + 1000
    shown = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(float)
    assert np.abs(shown - np.asarray(thumbnail(picture))).mean() < 12


def test_one_pixel_and_a_line():
    for shape in ((1, 1, 3), (1, 500, 3), (700, 1, 3)):
        assert thumbnail(np.zeros(shape, np.uint8)).size == (96, 96)
