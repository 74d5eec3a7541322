"""What extractors show of a picture agrees with what they describe."""

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.features import EXTRACTORS, make_extractor
from cppcl.features.descriptors.shelo import sobel
from cppcl.features.explanation import explanation, extracted_layers
from cppcl.features.layers import N_GROUPS, Numbers, Seen, Tiles, most_frequent

NAMES = sorted(set(EXTRACTORS) - {"precomputed"})
SMALL = {"lks": {"n_keyshapes": 5, "n_nearest": 2, "blocks": 2}}


@pytest.fixture(scope="module")
def stripe():
    """One dark line from the upper left to the lower right, a degree steeper than 45."""
    rows, columns = np.mgrid[:120, :120]
    marked = np.abs(np.sin(0.77) * columns - np.cos(0.77) * rows) < 2
    return np.where((marked & (rows < 110))[..., None], 0, 255).astype(np.uint8).repeat(3, axis=2)


def only(layers, kind):
    return [layer for layer in layers if isinstance(layer, kind)]


@pytest.mark.parametrize("name", [*NAMES, "lks+hog"])
def test_layers_are_well_formed_and_hold_the_vector(name, make, drawings, taught):
    extractor = taught(make(name), drawings)
    layers = explanation(extractor, drawings[3])
    assert isinstance(layers[0], Seen)
    np.testing.assert_array_equal(layers[0].picture, drawings[3])
    vectors = np.concatenate([layer.values.ravel() for layer in only(layers, Numbers)])
    expected = extractor.transform([drawings[3]])[0]
    if name == "lks+hog":  # each part as it is alone
        expected = np.concatenate([p.transform([drawings[3]])[0] for p in extractor.parts])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    for layer in only(layers, Seen):
        shape = np.array(layer.picture.shape[:2])
        if layer.picture.dtype not in (np.bool_, np.uint8):
            assert 0 <= layer.picture.min() <= layer.picture.max() <= 1 + 1e-6
        if layer.points is not None:
            assert layer.points.shape[1:] == (2,)
            assert (layer.points >= -0.5).all()
            assert (layer.points <= shape - 0.5).all()
        if layer.groups is not None:
            assert layer.groups.shape == layer.points.shape[:1]
            assert set(layer.groups.tolist()) <= set(range(-1, N_GROUPS))
        if layer.angles is not None:
            assert layer.angles.shape == layer.lengths.shape
            assert layer.lengths.min() >= 0
        if layer.boxes is not None:
            assert (layer.boxes[:, :2] < layer.boxes[:, 2:]).all()
    titles = [layer.title for layer in layers]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("name", sorted(n for n in NAMES if EXTRACTORS[n].learns))
def test_what_is_not_learned_yet_is_left_out(name, make, drawings):
    layers = extracted_layers(make(name), drawings[0])
    assert only(layers, Numbers) == only(layers, Tiles) == []
    assert all(layer.groups is None for layer in only(layers, Seen))


@pytest.mark.parametrize("name", [*NAMES, "lks+hog"])
def test_a_blank_picture_can_be_looked_at(name, make, drawings, taught):
    blank = np.full((40, 50, 3), 255, dtype=np.uint8)
    for layer in only(explanation(taught(make(name), drawings), blank), Numbers):
        assert np.isfinite(layer.values).all()


def test_an_extractor_without_pictures_is_refused():
    with pytest.raises(InputError, match="vectors of real numbers"):
        explanation(make_extractor("precomputed"), np.zeros((5, 5, 3), dtype=np.uint8))


@pytest.mark.parametrize("name", ["hog", "shelo", "helo", "structure_tensor"])
def test_lines_run_along_the_stroke(name, stripe):
    """The longest lines of cells on it point down to the right, as it does."""
    (layer, *_) = only(make_extractor(name).explain(stripe), Seen)
    strongest = layer.lengths >= 0.9 * layer.lengths.max()
    middle = slice(len(strongest) // 4, -(len(strongest) // 4))
    turns = 2 * layer.angles[middle, middle][strongest[middle, middle]]
    direction = np.angle(np.mean(np.exp(1j * turns))) / 2
    assert abs(direction - 0.77) < 0.15


def test_cells_vote_by_the_gradients_in_them(stripe):
    layer = only(make_extractor("shelo").explain(stripe), Seen)[0]
    around = sobel(layer.picture.astype(np.float32))
    edges = np.hypot(*around)
    cells = np.array_split(np.arange(256), 25)
    magnitude = np.array(
        [[edges[np.ix_(rows, columns)].sum() for columns in cells] for rows in cells]
    )
    lengths = layer.lengths[..., 0]
    assert np.corrcoef(lengths.ravel(), magnitude.ravel())[0, 1] > 0.8
    assert (lengths[lengths > 0] > 0.1 * lengths.max()).all()
    assert 0.01 < (lengths > 0).mean() < 0.25


def test_lines_of_blocks_run_along_the_stroke(stripe):
    layer = only(make_extractor("shelo").explain(stripe), Seen)[1]
    assert layer.lengths.shape == (6, 6, 36)
    best = layer.lengths[2, 2].argmax()
    assert abs(layer.angles[2, 2, best] - 0.77) < 0.1


def test_keyshapes_of_most_pixels(drawings):
    lks = make_extractor("lks", SMALL["lks"]).fit(drawings)
    _, nearest, tiles, _ = lks.explain(drawings[2])
    n = len(tiles.tiles)
    assert 2 < n == len(tiles.captions) == nearest.groups.max() + 1
    counts = [np.count_nonzero(nearest.groups == k) for k in range(n)]
    assert counts == sorted(counts, reverse=True)
    assert tiles.captions[0] == f"{100 * counts[0] / len(nearest.points):.0f} %"
    # Fewer clusters than colours: each pixel has one, the darkest of its keyshape in the middle.
    assert nearest.groups.min() == 0
    assert tiles.tiles.shape == (n, 31, 31)
    assert tiles.tiles.min() == 0
    assert nearest.grid == 2
    np.testing.assert_array_equal(nearest.points, np.argwhere(nearest.picture))


def test_words_are_where_their_descriptors_are(make, drawings):
    sift = make("sift").fit(drawings)
    mask, patches, words = only(sift.explain(drawings[2]), Seen)
    marked = np.argwhere(mask.picture)
    assert {tuple(p) for p in np.rint(words.points).astype(int)} <= {tuple(p) for p in marked}
    histogram = sift.transform([drawings[2]])[0]
    counts = np.bincount(words.groups[words.groups >= 0])
    np.testing.assert_allclose(
        counts / len(words.points), np.sort(histogram)[::-1][: len(counts)], atol=1e-6
    )
    middles = (patches.boxes[:, :2] + patches.boxes[:, 2:])[:, ::-1] / 2 - 0.5
    assert {tuple(p) for p in middles} <= {tuple(p) for p in marked.astype(float)}
    sides = patches.boxes[:, 2:] - patches.boxes[:, :2]
    assert set(sides.ravel()) == {16.0, 32.0, 48.0}


def test_most_frequent_numbers_come_first_and_the_rest_is_grey():
    numbers = np.array([5, 5, 5, 9, 9, 0, 0, 1, 2, 3, 4])
    frequent, groups = most_frequent(numbers)
    assert frequent.tolist() == [5, 0, 9, 1, 2, 3]
    assert groups.tolist() == [0, 0, 0, 2, 2, 1, 1, 3, 4, 5, -1]
    assert [a.tolist() for a in most_frequent(np.array([], dtype=np.int64))] == [[], []]
