"""A search as jobs: paths along alpha, each fit started from the one before."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest

from cppcl.baselines import RidgeCCA
from cppcl.errors import InputError
from cppcl.learning.cprl import CPRL
from cppcl.retrieval.metrics import evaluate
from cppcl.selection.folds import fold_numbers
from cppcl.selection.grid_search import gather_scores, grid_search, search_jobs

N = 90
IDS = np.arange(N)
QUICK = {
    "n_rounds": 4,
    "beta": 0.3,
    "initialization": {"atom_start": "samples", "n_initial_rounds": 3},
    "preparation": {"whiten": False},
    "coding": {"code_ridge": 0.0},
}


def two_views(seed=0):
    rng = np.random.default_rng(seed)
    content = rng.normal(size=(N, 5))
    return [content @ rng.normal(size=(5, 12)) + 0.5 * rng.normal(size=(N, 12)) for _ in range(2)]


class Refusing:
    """Counts its fits; takes a start, and refuses one value."""

    fits = 0

    def __init__(self, *, alpha=1.0, shift=0.0):
        if shift == 13:
            raise InputError("shift=13 brings bad luck; use another")
        self.alpha = alpha

    def fit(self, *given, start=None):
        Refusing.fits += 1
        if self.alpha == 0 and Refusing.fits == 2:
            raise InputError("alpha=0 cannot be fitted")
        return self

    def encode_sketches(self, features):
        return features

    encode_images = encode_sketches


def test_a_path_is_fitted_from_the_largest_alpha_down_each_from_the_one_before():
    sketches, images = two_views()
    alphas = [0.05, 0.5, 0.1]
    result = grid_search(
        partial(CPRL, n_atoms=12, **QUICK),
        {"alpha": alphas},
        sketches,
        images,
        IDS,
        IDS,
        warm_start=True,
    )
    assert result.warm_start is True
    assert result.options == ({"alpha": 0.05}, {"alpha": 0.5}, {"alpha": 0.1})
    folds, _ = fold_numbers(IDS, IDS)
    for fold in range(3):
        train, test = folds != fold, folds == fold
        model = None
        for alpha in (0.5, 0.1, 0.05):
            model = CPRL(n_atoms=12, alpha=alpha, **QUICK).fit(
                sketches[train], images[train], IDS[train], IDS[train], start=model
            )
            codes = model.encode_sketches(sketches[test]), model.encode_images(images[test])
            expected = evaluate(*codes, IDS[test], IDS[test]).scores["rank_1"]
            assert result.scores[alphas.index(alpha), fold] == expected


def test_fits_are_alone_unless_a_warm_start_is_asked_for():
    sketches, images = two_views()
    search = partial(grid_search, partial(CPRL, n_atoms=12, **QUICK), {"alpha": [0.05, 0.5]})
    cold = search(sketches, images, IDS, IDS)
    assert cold.warm_start is False
    alone = [
        grid_search(
            partial(CPRL, n_atoms=12, alpha=alpha, **QUICK), {}, sketches, images, IDS, IDS
        ).scores[0]
        for alpha in (0.05, 0.5)
    ]
    np.testing.assert_array_equal(cold.scores, alone)
    warm = search(sketches, images, IDS, IDS, warm_start=True)
    # The largest alpha has nothing to start from.
    np.testing.assert_array_equal(warm.scores[1], cold.scores[1])
    assert not np.array_equal(warm.scores[0], cold.scores[0])


@pytest.mark.parametrize("seed", [0, 1])
def test_warm_and_cold_choose_the_same_options(seed):
    sketches, images = two_views(seed)
    grid = {"n_atoms": [2, 20], "alpha": [0.02, 0.1, 1.5]}
    warm, cold = (
        grid_search(partial(CPRL, **QUICK), grid, sketches, images, IDS, IDS, warm_start=warm)
        for warm in (True, False)
    )
    assert warm.warm_start is not cold.warm_start
    assert warm.best_options == cold.best_options == {"n_atoms": 20, "alpha": 0.1}


def test_jobs_are_combinations_or_paths():
    grid = {"alpha": [0.1, 0.3, 0.2], "n_atoms": [5, 10]}
    jobs = search_jobs(CPRL, grid, warm_start=True)
    assert all(job.warm_start for job in jobs)
    assert [job.options for job in jobs] == [
        tuple({"alpha": alpha, "n_atoms": n_atoms} for alpha in (0.3, 0.2, 0.1))
        for n_atoms in (5, 10)
    ]
    cold = search_jobs(CPRL, grid)
    assert [job.options for job in cold[:2]] == [
        ({"alpha": 0.1, "n_atoms": 5},),
        ({"alpha": 0.1, "n_atoms": 10},),
    ]
    assert len(cold) == 6


@pytest.mark.parametrize(
    ("method", "grid"),
    [
        (CPRL, {"beta": [1.0, 2.0]}),
        (CPRL, {"alpha": [0.1], "beta": [1.0, 2.0]}),
        (CPRL, {}),
        (RidgeCCA, {"ridge": [0.1, 0.2]}),
    ],
)
def test_nothing_is_warm_without_a_path(method, grid):
    jobs = search_jobs(method, grid, warm_start=True)
    assert not any(job.warm_start for job in jobs)
    assert {len(job.options) for job in jobs} == {1}


def test_scores_come_back_in_the_order_of_the_grid():
    grid = {"alpha": [0.1, 0.3, 0.2], "n_atoms": [5, 10]}
    jobs = search_jobs(CPRL, grid, warm_start=True)
    scores = [
        [[100 * fold + chosen["n_atoms"] + chosen["alpha"] for fold in (0, 1)] for chosen in path]
        for path in (job.options for job in jobs)
    ]
    result = gather_scores(grid, jobs, iter(scores))
    for options, row in zip(result.options, result.scores, strict=True):
        value = options["n_atoms"] + options["alpha"]
        np.testing.assert_allclose(row, [value, 100 + value])


def test_paths_can_go_to_other_processes():
    sketches, images = two_views()
    search = partial(
        grid_search,
        partial(CPRL, n_atoms=12, **QUICK),
        {"alpha": [0.05, 0.5], "beta": [0.1, 1.0]},
        sketches,
        images,
        IDS,
        IDS,
        warm_start=True,
    )
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        elsewhere = search(map=pool.map)
    np.testing.assert_array_equal(elsewhere.scores, search().scores)
    assert elsewhere.options == search().options


def test_options_that_are_refused_cost_no_training():
    Refusing.fits = 0
    grid = {"shift": [0.0, 13]}
    with pytest.raises(InputError, match="shift=13 brings bad luck"):
        grid_search(Refusing, grid, *two_views(), IDS, IDS)
    assert Refusing.fits == 0


def test_options_that_cannot_be_fitted_are_named_with_their_fold():
    Refusing.fits = 0
    features = np.eye(len(IDS))
    with pytest.raises(InputError, match=r"options {'alpha': 0, 'shift': 2}, fold 1: alpha=0"):
        grid_search(Refusing, {"alpha": [0], "shift": [2]}, features, features, IDS, IDS)
