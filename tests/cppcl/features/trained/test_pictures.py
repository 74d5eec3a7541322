"""What networks see, how it is changed, and their losses."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from cppcl.features.contours.detection import colour_canny
from cppcl.features.trained.inputs import seen_by_network
from cppcl.features.training import augmentation, losses

RNG = np.random.default_rng(0)


def see(picture, kind, side=60):
    return seen_by_network(picture, kind, side, contours="colour_canny", threshold=0.5)


def test_a_drawing_is_seen_wherever_and_however_large_it_is():
    small = np.full((80, 100, 3), 255, dtype=np.uint8)
    small[10:14, 20:50] = small[10:30, 20:24] = 0
    large = np.full((200, 120, 3), 255, dtype=np.uint8)
    large[100:108, 40:100] = large[100:140, 40:48] = 0
    seen = see(small, "strokes")
    assert seen.shape == (1, 60, 60)
    rows = np.flatnonzero(seen[0].any(axis=0))
    assert rows[-1] - rows[0] + 1 == 54  # nine tenths
    assert np.abs(seen.astype(int) - see(large, "strokes")).mean() < 3
    assert not see(np.full((9, 9, 3), 255, dtype=np.uint8), "strokes").any()


def test_colours_are_seen_on_a_ground_of_zero():
    picture = np.full((40, 20, 3), 255, dtype=np.uint8)
    picture[10:30, 5:15] = (255, 0, 0)
    seen = see(picture, "colours", 40)
    assert seen.shape == (3, 40, 40)
    assert not seen[:, :, :8].any()
    np.testing.assert_array_equal(seen[:, 20, 20], [0, 255, 255])


def test_edges_of_colours_of_one_lightness_and_at_the_border():
    picture = np.full((100, 100, 3), 255, dtype=np.uint8)
    picture[:, 30:] = (200, 60, 60)
    picture[:, 60:] = (60, 131, 60)  # the same grey
    edges = colour_canny(picture)
    assert edges.shape == (100, 100)
    inside = edges[20:80]
    columns = [int(np.abs(np.flatnonzero(inside.any(axis=0)) - at).min()) for at in (31, 60)]
    assert max(columns) <= 1
    # A thing that reaches the border of a plain ground is closed there.
    thing = np.full((100, 100, 3), 255, dtype=np.uint8)
    thing[30:70, 50:] = 0
    assert colour_canny(thing)[35:65, 94:].any(axis=1).all()
    assert not colour_canny(np.full((50, 70, 3), 7, dtype=np.uint8)).any()
    assert colour_canny(np.zeros((1, 30, 3), dtype=np.uint8)).shape == (1, 30)


def test_strokes_are_parts_between_meetings():
    lines = np.zeros((40, 40), dtype=np.uint8)
    lines[10:12, 5:36] = 255
    lines[10:34, 20:22] = 255  # a T: three parts
    lines[36:38, 3:10] = 255
    strokes = augmentation.strokes_of(lines)
    assert set(np.unique(strokes)) == {0, 1, 2, 3, 4}
    np.testing.assert_array_equal(strokes > 0, lines > 0)
    assert len({strokes[10, 8], strokes[10, 33], strokes[30, 20], strokes[37, 5]}) == 4
    assert not augmentation.strokes_of(np.zeros((9, 9), dtype=np.uint8)).any()


def test_strokes_are_left_out_whole_and_as_often_as_said():
    strokes = np.repeat(np.arange(1, 201, dtype=np.uint8), 4).reshape(1, 20, 40).repeat(20, axis=0)
    drawings = np.full((20, 1, 20, 40), 9, dtype=np.uint8)
    seen = augmentation.without_strokes(drawings, strokes, np.random.default_rng(0))
    parts = seen.reshape(20, 200, 4)
    assert set(np.unique(parts)) == {0, 9}
    assert (parts == parts[:, :, :1]).all()
    assert abs((parts[:, :, 0] == 0).mean() - augmentation.DROPPED) < 0.02  # 4 deviations


def test_lines_get_wider_or_thinner_by_a_pixel():
    lines = np.zeros((60, 1, 16, 16), dtype=np.float32)
    lines[:, :, 5:10] = 1
    seen = augmentation.other_width(torch.from_numpy(lines), np.random.default_rng(0)).numpy()
    least = ndimage.grey_erosion(lines, size=(1, 1, 3, 3), mode="nearest")
    most = ndimage.grey_dilation(lines, size=(1, 1, 3, 3), mode="nearest")
    assert ((least <= seen) & (seen <= most)).all()
    widths = seen[:, 0, :, 8].sum(axis=1)
    assert widths.min() < 4.3
    assert widths.max() > 6.5


def test_pictures_are_mirrored_moved_and_scaled():
    dot = np.zeros((400, 1, 64, 64), dtype=np.float32)
    dot[:, :, 20, 40] = 1
    seen = augmentation.moved(torch.from_numpy(dot), np.random.default_rng(0)).numpy()[:, 0]
    centres = np.array([ndimage.center_of_mass(s) for s in seen if s.sum() > 0.1])
    # 11.5 rows above the middle and 8.5 columns beside it; up to 3.2 further, and 10 % more.
    rows, columns = (centres - 31.5).T
    assert len(rows) > 390
    assert -(11.5 + 3.2) * 1.1 - 1 <= rows.min() < -13
    assert -10 < rows.max() <= -(11.5 - 3.2) * 0.9 + 1
    assert abs((columns > 0).mean() - 0.5) < 0.1  # 4 deviations
    assert 10 < np.abs(columns).max() <= (8.5 + 3.2) * 1.1 + 1
    crops = augmentation.moved(torch.ones(9, 3, 20, 20), np.random.default_rng(0), (2.0, 2.0))
    assert float(crops.min()) == pytest.approx(1)  # nothing from beyond


def test_losses_by_their_formulas():
    a, p, n = (RNG.normal(size=(5, 3)) for _ in range(3))
    tensors = [torch.from_numpy(x) for x in (a, p, n)]
    near, far = ((a - p) ** 2).sum(1), ((a - n) ** 2).sum(1)
    assert float(losses.triplet_loss(*tensors, 0.3)) == pytest.approx(
        np.maximum(0, 0.3 + near - far).mean()
    )
    y = np.repeat([1, 0], 5)
    D = np.sqrt(np.concatenate([near, far]))
    expected = (y * D**2 / 2 + (1 - y) * np.maximum(0, 4 - D) ** 2 / 2).mean()
    found = losses.contrastive_loss_of_pairs(torch.from_numpy(near), torch.from_numpy(far), 4.0)
    assert float(found) == pytest.approx(expected)
    differ = np.array([True, False, True, True, False])
    L1 = np.abs(a - p).sum(1)
    expected = np.where(differ, 10 * np.exp(-0.277 * L1), 5 * L1**2).mean()
    found = losses.exponential_loss(tensors[0], tensors[1], torch.from_numpy(differ))
    assert float(found) == pytest.approx(expected)
