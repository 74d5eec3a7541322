import numpy as np
import pytest

from cppcl.features.descriptors.bag_of_words.sift import (
    CELL_SIDES,
    Sift,
    direction_layers,
)


@pytest.mark.parametrize(
    ("angle", "layer"), [(0, 0), (45, 1), (90, 2), (135, 3), (180, 4), (270, 6), (315, 7)]
)
def test_directions_run_anticlockwise_from_the_right(angle, layer):
    y, x = np.mgrid[0:20, 0:20]
    turn = np.radians(angle)
    slope = (np.cos(turn) * x - np.sin(turn) * y).astype(np.float32)
    inner = direction_layers(slope)[1:-1, 1:-1]
    np.testing.assert_allclose(inner[..., layer], 2, atol=1e-4)
    np.testing.assert_allclose(inner.sum(axis=-1), 2, atol=1e-4)


def test_every_contour_pixel_has_three_sizes(drawings):
    _, positions = Sift().local_descriptors(drawings[1])
    _, counts = np.unique(positions, axis=0, return_counts=True)
    assert counts.max() == len(CELL_SIDES)
    assert (counts == 3).mean() > 0.5
