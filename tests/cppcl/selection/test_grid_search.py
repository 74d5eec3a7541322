from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.baselines import ClassCCA, RidgeCCA
from cppcl.curriculum import ExplicitPairs
from cppcl.errors import InputError
from cppcl.retrieval.metrics import evaluate
from cppcl.selection.folds import fewer_rows, fold_numbers
from cppcl.selection.grid_search import grid_search


def two_views(n=90, seed=0):
    rng = np.random.default_rng(seed)
    content = rng.normal(size=(n, 5))
    return [content @ rng.normal(size=(5, 12)) + 0.5 * rng.normal(size=(n, 12)) for _ in range(2)]


class Recorder:
    """Remembers what each fold was given; codes are the features."""

    fits: list = []  # noqa: RUF012

    def __init__(self, *, shift=0.0):
        self.shift = shift

    def fit(self, *given):
        Recorder.fits.append(given)
        return self

    def encode_sketches(self, features):
        return features

    def encode_images(self, features):
        return features + self.shift


@pytest.fixture
def recorded():
    Recorder.fits = []
    return Recorder.fits


@given(
    sketch_labels=st.lists(st.integers(0, 8), min_size=6, max_size=40),
    image_labels=st.lists(st.integers(0, 8), min_size=6, max_size=40),
    n_folds=st.integers(2, 4),
    seed=st.integers(0, 99),
)
@settings(max_examples=80, deadline=None)
def test_samples_are_spread_evenly_within_each_label(sketch_labels, image_labels, n_folds, seed):
    sketches, images = fold_numbers(
        sketch_labels, image_labels, held_out="samples", n_folds=n_folds, seed=seed
    )
    for folds, labels in ((sketches, sketch_labels), (images, image_labels)):
        counts = np.bincount(folds, minlength=n_folds)
        assert len(folds) == len(labels)
        assert np.ptp(counts) <= 1
        for label in set(labels):
            in_label = np.bincount(folds[np.array(labels) == label], minlength=n_folds)
            assert np.ptp(in_label) <= 1


@given(seed=st.integers(0, 99), n_folds=st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_whole_classes_are_held_out(seed, n_folds):
    rng = np.random.default_rng(seed)
    sketch_labels, image_labels = rng.integers(0, 12, 80), rng.integers(2, 14, 60)
    folds = fold_numbers(sketch_labels, image_labels, n_folds=n_folds, seed=seed)
    fold_of = {}
    for labels, numbers in zip((sketch_labels, image_labels), folds, strict=True):
        for label, number in zip(labels.tolist(), numbers.tolist(), strict=True):
            assert fold_of.setdefault(label, number) == number
    shared = set(sketch_labels.tolist()) & set(image_labels.tolist())
    assert np.ptp(np.bincount([fold_of[label] for label in shared], minlength=n_folds)) <= 1


def test_groups_stay_together_and_labels_are_spread():
    labels = np.repeat(np.arange(4), 15)
    groups = np.arange(60)
    order = np.random.default_rng(0).permutation(60)
    sketches, images = fold_numbers(
        labels,
        labels[order],
        sketch_groups=groups,
        image_groups=groups[order],
        held_out="samples",
    )
    np.testing.assert_array_equal(images, sketches[order])
    for label in range(4):
        np.testing.assert_array_equal(np.bincount(sketches[labels == label]), [5, 5, 5])


def test_folds_depend_on_the_seed_alone():
    labels = np.arange(30)
    first, again, other = (fold_numbers(labels, labels, seed=s)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_scores_equal_a_loop_over_folds():
    sketches, images = two_views()
    ids = np.arange(90)
    grid = {"ridge": [1e-3, 0.1], "n_directions": [2, 5]}
    result = grid_search(RidgeCCA, grid, sketches, images, ids, ids, seed=3)
    folds, _ = fold_numbers(ids, ids, seed=3)
    for options, scores in zip(result.options, result.scores, strict=True):
        for fold in range(3):
            train, test = folds != fold, folds == fold
            method = RidgeCCA(**options).fit(
                sketches[train], images[train], ids[train], ids[train]
            )
            expected = evaluate(
                method.encode_sketches(sketches[test]),
                method.encode_images(images[test]),
                ids[test].tolist(),
                ids[test].tolist(),
            ).scores["rank_1"]
            assert scores[fold] == expected
    assert result.options == (
        {"ridge": 1e-3, "n_directions": 2},
        {"ridge": 1e-3, "n_directions": 5},
        {"ridge": 0.1, "n_directions": 2},
        {"ridge": 0.1, "n_directions": 5},
    )
    np.testing.assert_allclose(result.mean, result.scores.mean(axis=1))
    np.testing.assert_allclose(result.sd**2 * 2, ((result.scores.T - result.mean) ** 2).sum(0))


@pytest.mark.parametrize("counts", [[(2, 2), (2, 2)], [(2, 3), (2, 2)], [(1, 9), (9, 1), (1, 1)]])
@pytest.mark.parametrize("seed", range(4))
def test_every_fold_asks_for_something_of_few_samples(counts, seed):
    labels = [np.repeat(np.arange(len(counts)), [n[m] for n in counts]) for m in (0, 1)]
    groups = [[f"{m}{k}" for k in range(len(labels[m]))] for m in (0, 1)]
    folds = fold_numbers(
        *labels,
        sketch_groups=groups[0],
        image_groups=groups[1],
        held_out="samples",
        n_folds=3,
        seed=seed,
    )
    for fold in range(3):
        asked, answers = (own[of == fold] for own, of in zip(labels, folds, strict=True))
        assert set(asked) & set(answers)
        assert all((of != fold).any() for of in folds)


def test_repeats_are_searches_with_other_folds():
    sketches, images = two_views()
    ids = np.arange(90)
    data = (RidgeCCA, {"ridge": [1e-3, 0.1]}, sketches, images, ids, ids)
    repeated = grid_search(*data, n_repeats=2, seed=3)
    alone = [grid_search(*data, seed=seed).scores for seed in (3, 4)]
    assert not np.array_equal(*alone)
    np.testing.assert_array_equal(repeated.scores, np.concatenate(alone, axis=1))


def test_best_options_are_found():
    sketches, images = two_views()
    ids = np.arange(90)
    result = grid_search(RidgeCCA, {"n_directions": [1, 5]}, sketches, images, ids, ids)
    assert result.best_options == {"n_directions": 5}
    rows = result.table()
    assert [row["best"] for row in rows] == [False, True]
    assert rows[1]["mean"] > 2 * rows[0]["mean"]
    assert set(rows[0]) == {"n_directions", "mean", "sd", "best"}


def test_equal_scores_choose_the_first():
    features, ids = np.eye(9), np.arange(9)
    result = grid_search(Recorder, {"shift": [0.0, 0.01]}, features, features, ids, ids)
    np.testing.assert_array_equal(result.mean, [1, 1])
    assert result.best_options == {"shift": 0.0}


@pytest.mark.parametrize("held_out", ["classes", "samples"])
def test_training_never_sees_what_is_held_out(recorded, held_out):
    labels = np.repeat(np.arange(6), 4)
    sketches = np.arange(24.0)[:, None] + 1
    grid_search(
        Recorder, {}, sketches, sketches + 100, labels, labels, held_out=held_out, score="map"
    )
    sketch_folds, image_folds = fold_numbers(labels, labels, held_out=held_out)
    assert len(recorded) == 3
    for fold, (s, i, s_labels, i_labels, *_) in enumerate(recorded):
        np.testing.assert_array_equal(s[:, 0], sketches[sketch_folds != fold, 0])
        np.testing.assert_array_equal(i[:, 0], 100 + sketches[image_folds != fold, 0])
        np.testing.assert_array_equal(s_labels, labels[sketch_folds != fold])
        np.testing.assert_array_equal(i_labels, labels[image_folds != fold])
        assert len(set(s_labels)) == (4 if held_out == "classes" else 6)


def test_curricula_are_restricted_to_each_fold(recorded):
    ids = np.arange(9)
    pairs = np.array([(a, b) for a in range(9) for b in range(9) if a != b])
    curriculum = ExplicitPairs(pairs, 9)
    grid_search(Recorder, {}, np.eye(9), np.eye(9), ids, ids, sketch_curriculum=curriculum)
    for *_, sketch_curriculum, image_curriculum in recorded:
        assert sketch_curriculum.n_samples == 6
        assert len(sketch_curriculum) == 6 * 5
        assert image_curriculum is None


def test_work_can_go_to_other_processes():
    sketches, images = two_views()
    labels = np.arange(90) % 6
    make = partial(ClassCCA, n_directions=3)
    grid = {"ridge": [0.01, 1.0]}
    search = partial(
        grid_search,
        make,
        grid,
        sketches,
        images,
        labels,
        labels,
        held_out="samples",
        score="map",
    )
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        elsewhere = search(map=pool.map)
    np.testing.assert_array_equal(elsewhere.scores, search().scores)


def test_own_scorer():
    def spread(sketch_codes, image_codes, sketch_labels, image_labels):
        return float(image_codes.mean() - sketch_codes.mean())

    ids = np.arange(9)
    result = grid_search(
        Recorder, {"shift": [1.0, 3.0, 2.0]}, np.eye(9), np.eye(9), ids, ids, score=spread
    )
    np.testing.assert_allclose(result.mean, [1, 3, 2])
    assert result.best_options == {"shift": 3.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_folds": 1}, "n_folds=1 must be a whole number of at least 2"),
        ({"n_repeats": 0}, "n_repeats=0 must be a whole number"),
        ({"n_folds": 10}, "n_folds=10, but there are 9 classes"),
        ({"held_out": "pairs"}, "held_out='pairs'"),
        ({"score": "rank1"}, "score='rank1' is not one of .*rank_1"),
        ({"score": lambda *_: np.nan}, "fold 0 is not a number"),
        ({"sketch_groups": range(9)}, "both of sketch_groups and image_groups"),
        (
            {"sketch_groups": range(8), "image_groups": range(9), "held_out": "samples"},
            "sketch_groups has 8 entries for 9 labels",
        ),
        ({"sketch_labels": range(8)}, "sketch_labels has 8 entries"),
        ({"sketch_asks": np.ones(8, bool)}, r"sketch_asks is bool of shape \(8,\)"),
        ({"sketch_asks": np.arange(9) < 2}, "fold . holds out no sketch that asks; lower n_folds"),
        ({"grid": {"shift": []}}, r"grid\['shift'\]=\[\] must be a list of at least one value"),
        ({"grid": {"shift": "ab"}}, r"grid\['shift'\]='ab' must be a list"),
        ({"grid": {"shift": [1.0, 2.0, 1.0]}}, r"grid\['shift'\].* holds a value twice"),
    ],
)
def test_wrong_use_is_named(options, message):
    given = {"grid": {}, "sketch_labels": np.arange(9), "image_labels": np.arange(9)} | options
    with pytest.raises(InputError, match=message):
        grid_search(Recorder, sketch_features=np.eye(9), image_features=np.eye(9), **given)


@pytest.mark.parametrize("held_out", ["classes", "samples"])
def test_fewer_rows_keep_whole_units_and_every_class(held_out):
    labels = np.repeat(np.arange(10), 20)
    groups = np.arange(200) // 2  # two samples an instance
    kept = fewer_rows(labels, labels, groups, groups, held_out=held_out, most_rows=60)
    for rows in kept:
        assert len(rows) == 60
        units = (labels if held_out == "classes" else groups)[rows]
        sizes = np.unique(units, return_counts=True)[1]
        assert set(sizes) == {20 if held_out == "classes" else 2}
        assert len(np.unique(labels[rows])) == (3 if held_out == "classes" else 10)
    np.testing.assert_array_equal(*kept)
    every = fewer_rows(labels, labels[:50], groups, groups[:50], held_out=held_out, most_rows=200)
    assert [len(rows) for rows in every] == [200, 50]


@pytest.mark.parametrize("held_out", ["classes", "samples"])
@pytest.mark.parametrize("by_group", [False, True])
def test_sketches_that_do_not_ask_train_and_are_held_out(recorded, held_out, by_group):
    labels = np.repeat(np.arange(6), 6)
    asks = np.arange(36) % 6 == 0  # one sketch of each label
    values = np.arange(36.0)[:, None] + 1
    asked = []

    def score(sketch_codes, image_codes, *_):
        asked.append((len(sketch_codes), len(image_codes)))
        return 1.0

    groups = dict.fromkeys(("sketch_groups", "image_groups"), np.arange(36)) if by_group else {}
    given = {"held_out": held_out, **groups}
    grid_search(
        Recorder, {}, values, values, labels, labels, sketch_asks=asks, score=score, **given
    )
    folds, _ = fold_numbers(labels, labels, sketch_asks=asks, **given)
    assert asked == [(2, 12)] * 3
    for fold, (sketches, *_) in enumerate(recorded):
        np.testing.assert_array_equal(sketches, values[folds != fold])


def test_fewer_rows_keep_sketches_that_ask():
    labels = np.repeat(np.arange(2), 300)
    asks = np.arange(600) % 100 == 0
    groups = np.arange(600), np.arange(600, 1200)
    given = (labels, labels, *groups)
    kept, _ = fewer_rows(*given, held_out="samples", most_rows=60, sketch_asks=asks)
    assert asks[kept].sum() == asks.sum()
    assert 55 <= len(kept) <= 70
