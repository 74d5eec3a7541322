import numpy as np
import pytest

from cppcl.features.contours.detection import canny_edges
from cppcl.features.contours.perceptual_groups import (
    Ends,
    affinities,
    salient_edges,
    segment_ends,
    split_segments,
)
from cppcl.features.descriptors.hog import Hog
from cppcl.features.descriptors.perceptual_edge import PerceptualEdgeLite


def _ring(side: int, radius: float) -> np.ndarray:
    y, x = np.mgrid[:side, :side] - side // 2
    return np.abs(np.hypot(x, y) - radius) < 0.6


def _ends(*ends) -> Ends:
    points, directions, segments = zip(*ends, strict=True)
    return Ends(np.array(points, float), np.array(directions, float), np.array(segments))


def test_a_cross_is_cut_into_four_arms_and_short_ones_are_dropped():
    edges = np.zeros((80, 80), dtype=bool)
    edges[40, 10:70] = True
    edges[33:75, 40] = True
    labels, n = split_segments(edges)
    assert n == 3
    lengths = np.bincount(labels.ravel())[1:]
    assert lengths.min() >= 27
    assert not labels[33:39].any(), "an arm of 6 pixels stayed"
    assert labels[40, 40] == 0


def test_ends_point_outwards():
    edges = np.zeros((60, 60), dtype=bool)
    edges[20, 10:40] = True
    np.fill_diagonal(edges[25:55, 25:55], True)
    ends = segment_ends(split_segments(edges)[0])
    half = np.sqrt(0.5)
    expected = {
        (20, 10): (0, -1),
        (20, 39): (0, 1),
        (25, 25): (-half, -half),
        (54, 54): (half, half),
    }
    assert {tuple(map(int, p)) for p in ends.points} == set(expected)
    for point, direction in zip(ends.points, ends.directions, strict=True):
        np.testing.assert_allclose(direction, expected[tuple(map(int, point))], atol=1e-6)
    assert list(ends.segments) == [0, 0, 1, 1]


def test_a_closed_line_has_no_ends():
    labels, n = split_segments(_ring(80, 25))
    assert n == 1
    assert len(segment_ends(labels).points) == 0


def test_affinities_of_pairs():
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((12, 2))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    ends = Ends(rng.uniform(0, 25, (12, 2)), directions, np.arange(12) // 2)
    strengths = rng.random(6)
    found = affinities(ends, strengths)
    for i in range(12):
        for j in range(12):
            d = np.linalg.norm(ends.points[i] - ends.points[j])
            expected = 0.0
            if d < 20 and i // 2 != j // 2:
                # The line that arrives at i goes on along the reverse of j's direction.
                cos = -directions[i] @ directions[j]
                change = abs(strengths[i // 2] - strengths[j // 2])
                expected = np.exp(-d / 5) * np.exp(-(1 - cos) / 0.2) * np.exp(-change / 0.2)
            assert found[i, j] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("gap", "turn", "change", "linked"),
    [(4, 0, 0, True), (7, 0, 0, False), (2, 90, 0, False), (2, 20, 0, True), (2, 0, 0.3, False)],
)
def test_what_is_linked(gap, turn, change, linked):
    angle = np.radians(180 - turn)
    ends = _ends(
        ((0, 0), (0, 1), 0),
        ((0, gap), (np.sin(angle), np.cos(angle)), 1),
    )
    affinity = affinities(ends, np.array([0.5, 0.5 + change]))
    assert (affinity[0, 1] > 0.3) == linked
    assert affinity[0, 1] == pytest.approx(affinity[1, 0])
    assert affinity[0, 0] == 0


def test_salient_groups_are_kept_until_their_share():
    edges = np.zeros((120, 120), dtype=bool)
    edges[20, 10:110] = True
    for k in range(4):
        edges[40 + 15 * k, 10:32] = True
    gradient = np.where(np.arange(120)[:, None] < 30, 1.0, 0.5) * np.ones((120, 120))
    kept = salient_edges(edges, gradient)
    # 100 of 100 + 4 x 11: 69 % are not enough, so one short line comes along.
    assert kept[20].sum() == 100
    assert kept[30:].sum() == 22
    gradient[30:] *= 0.9
    np.testing.assert_array_equal(salient_edges(edges, gradient)[30:], False)


@pytest.mark.parametrize(("gap", "n_kept"), [(4, 60), (8, 30)])
def test_linked_segments_are_kept_together(gap, n_kept):
    edges = np.zeros((120, 120), dtype=bool)
    edges[20, 10:40] = edges[20, 39 + gap : 69 + gap] = True
    edges[60, 10:51] = True
    kept = salient_edges(edges, np.ones((120, 120)))
    # Linked, 60 pixels come before 41, and are less than 70 %; else one of 30 follows those 41.
    assert kept[20].sum() == n_kept
    assert kept[60].sum() == 41


def test_gradients_are_relative():
    edges = np.zeros((120, 120), dtype=bool)
    edges[20, 10:40] = edges[20, 42:72] = edges[60, 10:51] = True
    gradient = np.full((120, 120), 0.95)
    gradient[20, :41], gradient[20, 41:] = 1.0, 0.9
    for factor in (1, 100):
        assert salient_edges(edges, factor * gradient)[20].sum() == 60


@pytest.mark.parametrize(
    ("opened", "share", "line_kept"),
    [(0, 0.55, False), (12, 0.55, False), (20, 0.55, True), (0, 0.9, True)],
)
def test_closed_groups_count_half_as_much_again(opened, share, line_kept):
    ring = np.pad(_ring(60, 12), ((0, 60), (0, 60)))
    # A chord of so many pixels lies so far above the middle of a circle of radius 12.
    top = 30 - int(np.sqrt(12**2 - (opened / 2) ** 2)) + 1
    ring[: top if opened else 0] = False
    n = np.count_nonzero(split_segments(ring)[0])
    edges = ring.copy()
    edges[100, 5 : 5 + round(share * n)] = True
    # Alone, the ring has 1.5 of 2.05 where it is closed, which is more than 70 %, else 1 of 1.55;
    # and 1.5 of 2.4 are less.
    assert salient_edges(edges, np.ones((120, 120)))[100].any() == line_kept


def test_nothing_to_group():
    nothing = np.zeros((40, 50), dtype=bool)
    np.testing.assert_array_equal(salient_edges(nothing, np.zeros((40, 50))), nothing)
    nothing[5, 5:9] = True
    assert not salient_edges(nothing, np.ones((40, 50))).any()


@pytest.fixture
def photo():
    """A disk of strong contrast among specks of little."""
    y, x = np.mgrid[:200, :200] - 99.5
    gray = np.where(np.hypot(x, y) < 60, 40, 220)
    rng = np.random.default_rng(0)
    gray = gray + 12 * (np.kron(rng.random((20, 20)), np.ones((10, 10))) < 0.5)
    return np.repeat(gray.astype(np.uint8)[..., None], 3, axis=2)


def test_a_photograph_is_described_by_its_salient_contour(photo):
    extractor = PerceptualEdgeLite()
    sketch = extractor.sketch_of(photo)
    gray = photo[..., 0] / 255
    edges = canny_edges(gray, 1.4)
    np.testing.assert_array_equal(sketch[28:228, 28:228], salient_edges(*edges))
    rows, columns = np.nonzero(sketch)
    radii = np.hypot(rows - 127.5, columns - 127.5)
    assert (np.abs(radii - 60) < 3).mean() > 0.95
    assert len(rows) > 250
    row = extractor.transform([photo])[0]
    assert row.shape == (1296,)
    drawn = np.repeat(np.where(sketch, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
    np.testing.assert_allclose(row, Hog().transform([drawn])[0], atol=1e-4)


def test_sketches_are_described_as_they_are_drawn():
    sketch = np.full((150, 120, 3), 255, dtype=np.uint8)
    sketch[20:120, 30:33] = sketch[50:53, 20:100] = sketch[70:74, 60:64] = 0
    np.testing.assert_array_equal(
        PerceptualEdgeLite(contours="strokes").transform([sketch]),
        Hog(contours="strokes").transform([sketch]),
    )
