import numpy as np
import pytest

from cppcl.features import make_extractor
from cppcl.features.scores.edge_boxes import EdgeGroups, box_scores, edge_groups
from cppcl.features.scores.windows import random_windows, to_pixels
from tests.cppcl.features.scenes import overlaps, scene


def random_groups(seed: int, n_groups: int = 20, side: int = 40) -> EdgeGroups:
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(rng.permutation(side * side), side)
    ring = np.hypot(rows - side / 2, columns - side / 2) > side / 4  # edges around an object
    rows, columns = rows[ring][:150], columns[ring][:150]
    # Groups lie together.
    centres = rng.integers(0, side, (n_groups, 2))
    away = np.abs(np.stack([rows, columns], axis=1)[:, None] - centres).sum(axis=2)
    groups = np.unique(away.argmin(axis=1), return_inverse=True)[1]
    n_groups = int(groups.max()) + 1
    affinities = np.triu(rng.random((n_groups, n_groups)), 1)
    affinities[affinities < 0.5] = 0
    return EdgeGroups(rows, columns, rng.random(150), groups, affinities + affinities.T)


def score_of(found: EdgeGroups, window) -> float:
    left, top, right, bottom = (int(v) for v in window)
    inside = (found.columns >= left) & (found.columns < right)
    inside &= (found.rows >= top) & (found.rows < bottom)
    share = np.array([inside[found.groups == g].mean() for g in range(len(found.affinities))])
    best = np.where((share > 0) & (share < 1), 1.0, 0.0)
    # Paths of at most as many steps as there are groups, through groups inside.
    steps = np.where((share > 0)[:, None], found.affinities, 0)
    for _ in share:
        reached = (best[:, None] * steps).max(axis=0)
        best = np.maximum(best, np.where(share == 1, reached, 0))
    masses = np.bincount(found.groups, found.magnitudes)
    total = ((1 - best) * masses)[share == 1].sum()
    width, height = right - left, bottom - top
    x, y = found.columns - left, found.rows - top
    central = inside & (x >= width / 4) & (x < 3 * width / 4)
    central &= (y >= height / 4) & (y < 3 * height / 4)
    return max(total - found.magnitudes[central].sum(), 0) / (2 * (width + height) ** 1.5)


@pytest.mark.parametrize("seed", range(4))
def test_scores_equal_counting_and_all_paths(seed):
    found = random_groups(seed)
    windows = to_pixels(random_windows(80, seed, scale=(0.5, 1.0)), 40, 40)
    expected = [score_of(found, window) for window in windows]
    np.testing.assert_allclose(box_scores(found, windows), expected, atol=1e-12)
    assert np.count_nonzero(expected) > 5


def test_a_line_is_one_group_and_a_circle_several():
    y, x = np.mgrid[:80, :80]
    line = np.where(y < 40, 0.2, 0.8)
    found = edge_groups(line)
    assert len(found.rows) >= 70
    assert np.bincount(found.groups).max() >= 0.9 * len(found.rows)
    circle = np.where(np.hypot(x - 40, y - 40) < 25, 0.2, 0.8)
    found = edge_groups(circle)
    largest = np.sort(np.bincount(found.groups))[::-1]
    assert largest[0] <= 0.35 * len(found.rows), "more than a right angle"
    assert len(largest) >= 4


def affinity_of(first, second, angles) -> float:
    """Affinity of two groups of pixels (row, column) with an orientation each."""
    from cppcl.features.scores.window_kernels import group_affinities

    rows, columns = np.array([*first, *second]).T
    groups = np.repeat([0, 1], [len(first), len(second)])
    of_pixel = np.full((40, 40), -1)
    of_pixel[rows, columns] = np.arange(len(rows))
    orientations = np.array(angles)[groups]
    return group_affinities(rows, columns, orientations, groups, of_pixel, 2)[0, 1]


def test_groups_that_continue_one_another_belong_together():
    line = [(20, x) for x in range(5, 15)]
    further = [(20, x) for x in range(16, 26)]
    beside = [(22, x) for x in range(5, 15)]
    upright = [(y, 15) for y in range(10, 20)]
    far = [(20, x) for x in range(17, 27)]
    assert affinity_of(line, further, [0, 0]) == pytest.approx(1)
    assert affinity_of(line, further, [0, np.pi]) == pytest.approx(1)
    assert affinity_of(line, beside, [0, 0]) == pytest.approx(0, abs=1e-12)
    assert affinity_of(line, far, [0, 0]) == 0, "three pixels apart"
    # Centres (20, 9.5) and (14.5, 15): a right angle, halved by the line between them.
    assert affinity_of(line, upright, [0, np.pi / 2]) == pytest.approx(0.25)


def test_one_of_the_best_windows_has_the_object():
    extractor = make_extractor("edge_boxes")
    hits = []
    for seed in range(40):
        picture, box = scene(seed)
        found = extractor.scored_windows(picture)
        hits.append(overlaps(found.windows[found.best], box).max() >= 0.5)
    assert np.mean(hits) >= 0.9


def test_no_edges_no_score():
    assert make_extractor("edge_boxes").transform([np.full((60, 80, 3), 90, np.uint8)]) == 0
