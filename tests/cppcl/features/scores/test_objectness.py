import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import percentileofscore, spearmanr

from cppcl.errors import InputError
from cppcl.features import make_extractor
from cppcl.features.scores.objectness import (
    distribution_values,
    reservoir,
    straddling,
    superpixels,
)
from cppcl.features.scores.windows import random_windows, to_pixels
from tests.cppcl.features.scenes import overlaps, scene

FINE = (0.02, 0.06)
"""Scale of clutter."""


@pytest.fixture(scope="module")
def training():
    """Scenes of any clutter, none of them measured below."""
    rng = np.random.default_rng(0)
    counts = rng.choice([0, 1, 2, 4, 8, 16, 32, 64], 40)
    return [scene(50_000 + k, int(n), occluding=bool(k % 2))[0] for k, n in enumerate(counts)]


@pytest.fixture(scope="module")
def objectness(training):
    return make_extractor("objectness").fit(training)


def test_one_of_the_best_windows_has_the_object(objectness):
    scenes = [scene(seed, 60, distractor_scale=FINE) for seed in range(60)]
    found = [objectness.scored_windows(picture) for picture, _ in scenes]
    best = [
        overlaps(of.windows[of.best], box).max()
        for of, (_, box) in zip(found, scenes, strict=True)
    ]
    assert np.mean(np.array(best) >= 0.5) >= 0.9
    assert max(len(of.best) for of in found) == 30


@pytest.mark.parametrize("occluding", [False, True], ids=["behind", "over"])
def test_clutter_and_occlusion_make_a_scene_hard(objectness, occluding):
    counts = np.repeat([0, 2, 4, 8, 16, 32, 64], 10)
    pictures = [scene(3000 + k, int(n), occluding=occluding)[0] for k, n in enumerate(counts)]
    easiness = objectness.transform(pictures)[:, 0]
    assert spearmanr(counts, easiness).statistic <= -0.7
    means = easiness.reshape(7, 10).mean(axis=1)
    assert spearmanr(np.arange(7), means).statistic <= -0.85


def test_edge_density_is_a_cue_of_its_own(training):
    both = [
        make_extractor("objectness", {"edge_density": used}).fit(training[:8])
        for used in (False, True)
    ]
    assert [extractor.shapes["quantiles"][0] for extractor in both] == [3, 4]
    scores = [extractor.transform(training[:4]) for extractor in both]
    assert not np.allclose(*scores)
    with pytest.raises(InputError, match="another extractor"):
        both[0].from_arrays(both[1].to_arrays())


@pytest.mark.parametrize("n_distractors", [0, 30])
def test_large_objects_are_easy(objectness, n_distractors):
    scenes = [scene(7000 + k, n_distractors, object_scale=(0.12, 0.9)) for k in range(40)]
    shares = [np.prod(box[2:] - box[:2]) for _, box in scenes]
    easiness = objectness.transform([picture for picture, _ in scenes])[:, 0]
    assert spearmanr(shares, easiness).statistic >= 0.5


def test_easiness_is_the_median_of_the_best_above_the_mean_of_anywhere(objectness, training):
    found, measured = objectness.scored_windows(training[0]), objectness.measure(training[0])
    quantiles = objectness.to_arrays()["quantiles"]
    scores = np.log(distribution_values(measured.cues, quantiles)).mean(axis=0)
    assert len(scores) == 1500
    np.testing.assert_array_equal(measured.windows[:1000], found.windows)
    # A tenth of the candidates, wherever they lie, and the drawn ones, which are more salient.
    assert measured.cues[0, :1000].mean() > 1.2 * measured.cues[0, 1000:].mean()
    np.testing.assert_allclose(found.scores, scores[:1000] - scores[1000:].mean(), rtol=1e-9)
    sides = found.windows[found.best, 2:] - found.windows[found.best, :2]
    expected = np.median(found.scores[found.best] + np.log(sides[:, 0] * sides[:, 1]) / 3)
    assert found.easiness == pytest.approx(expected)
    assert objectness.transform(training[:1])[0, 0] == np.float32(found.easiness)
    assert (np.diff(found.scores[found.best]) <= 0).all()
    printed = make_extractor("objectness", {"easiness": "printed"})
    printed.from_arrays(objectness.to_arrays())
    as_printed = printed.scored_windows(training[0])
    np.testing.assert_array_equal(as_printed.best, found.best)
    assert as_printed.easiness == np.median(as_printed.scores[found.best])
    # The logarithms of geometric means, but for the mean of the picture.
    offset = np.log(as_printed.scores) - found.scores
    np.testing.assert_allclose(offset, offset[0], rtol=1e-12)


def test_kept_windows_do_not_overlap_too_much(objectness, training):
    windows = objectness.scored_windows(training[1])
    kept = windows.windows[windows.best]
    for k, box in enumerate(kept):
        assert overlaps(kept[:k], box).max(initial=0) <= 0.7 + 0.03  # rounded to pixels
    everything = make_extractor("objectness", {"overlap": 1.0})
    found = everything.from_arrays(objectness.to_arrays()).scored_windows(training[1])
    assert set(found.best) == set(np.argsort(-found.scores)[:30])


def test_what_is_learned_comes_from_a_bounded_sample(training):
    few = make_extractor("objectness", {"max_pictures": 3, "seed": 2})
    learned = few.fit(training).to_arrays()["quantiles"]
    subsets = {
        few.fit(training[k : k + 3]).to_arrays()["quantiles"].tobytes() for k in range(0, 9, 3)
    }
    assert learned.tobytes() not in subsets
    np.testing.assert_array_equal(few.fit(iter(training)).to_arrays()["quantiles"], learned)
    assert (np.diff(learned, axis=1) >= 0).all()


def test_a_reservoir_is_a_uniform_sample():
    counts = np.zeros(9)
    for seed in range(3000):
        kept, n = reservoir(iter(range(9)), 4, np.random.default_rng(seed))
        assert n == 9
        assert len(set(kept)) == 4
        counts[kept] += 1
    assert np.abs(counts - 3000 * 4 / 9).max() < 4.5 * np.sqrt(3000 * 4 / 9 * 5 / 9)
    assert reservoir(iter(range(3)), 4, np.random.default_rng(0)) == ([0, 1, 2], 3)
    assert reservoir(iter(()), 4, np.random.default_rng(0)) == ([], 0)


@given(
    values=st.lists(st.integers(0, 8), min_size=3, max_size=40),
    cue=st.lists(st.integers(-1, 9), min_size=1, max_size=9),
)
@settings(max_examples=60, deadline=None)
def test_distribution_values_equal_mean_percentiles(values, cue):
    levels = np.sort(np.array(values, dtype=np.float32))
    n = len(levels)
    expected = percentileofscore(levels, cue, kind="mean") / 100
    expected = np.clip(expected, 0.5 / n, 1 - 0.5 / n)
    found = distribution_values(np.array([cue], dtype=float), levels[None])
    np.testing.assert_allclose(found[0], expected, atol=1e-12)


def test_straddling_equals_counting():
    rng = np.random.default_rng(3)
    regions = rng.integers(0, 7, (5, 6)).repeat(5, axis=0).repeat(4, axis=1)
    windows = to_pixels(random_windows(60, 1), regions.shape[1], regions.shape[0])
    expected = []
    for left, top, right, bottom in windows:
        inside = np.zeros(regions.shape, dtype=bool)
        inside[top:bottom, left:right] = True
        cut = sum(
            min((inside & (regions == r)).sum(), (~inside & (regions == r)).sum())
            for r in range(7)
        )
        expected.append(cut / inside.sum())
    np.testing.assert_allclose(straddling(regions, windows), expected, atol=1e-15)
    assert max(expected) > 0.3


def test_superpixels_are_counted_from_zero_and_tell_an_object_apart():
    picture, box = scene(4)
    regions = superpixels(picture)
    assert regions.min() == 0
    assert len(np.unique(regions)) == regions.max() + 1
    left, top, right, bottom = (box * [200, 150, 200, 150]).astype(int)
    middle = regions[(top + bottom) // 2, (left + right) // 2]
    assert (regions == middle).sum() < 0.6 * regions.size
    assert (regions[top:bottom, left:right] == middle).mean() > 0.5
