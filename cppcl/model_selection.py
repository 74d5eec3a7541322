"""Choice of a method's options by cross-validation within training samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.metrics import evaluate

Labels = Sequence[Hashable] | NDArray[Any]
HeldOut = Literal["classes", "samples"]
Rows = NDArray[np.int64]
Scorer = Callable[[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]], float]
"""Score, higher is better, from sketch codes, image codes, sketch labels and image labels."""


@dataclass(frozen=True)
class SearchResult:
    """Scores of every combination of options.

    Parameters
    ----------
    options : tuple of dict
        The combinations, in the order of the grid (last option fastest).
    scores : ndarray, (combinations, folds) float64
    """

    options: tuple[dict[str, Any], ...]
    scores: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean score of each combination over folds."""
        mean: NDArray[np.float64] = self.scores.mean(axis=1)
        return mean

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviation over folds (divisor folds - 1)."""
        sd: NDArray[np.float64] = self.scores.std(axis=1, ddof=1)
        return sd

    @property
    def best_index(self) -> int:
        """Combination of the highest mean, the first of equals."""
        return int(np.argmax(self.mean))

    @property
    def best_options(self) -> dict[str, Any]:
        """Options of the highest mean score."""
        return dict(self.options[self.best_index])

    def table(self) -> list[dict[str, Any]]:
        """One row a combination: its options, ``mean``, ``sd`` and ``best``."""
        return [
            {**options, "mean": float(mean), "sd": float(sd), "best": k == self.best_index}
            for k, (options, mean, sd) in enumerate(
                zip(self.options, self.mean, self.sd, strict=True)
            )
        ]


def grid_search(
    make_method: Callable[..., Any],
    grid: Mapping[str, Sequence[Any]],
    sketch_features: NDArray[Any],
    image_features: NDArray[Any],
    sketch_labels: Labels,
    image_labels: Labels,
    *,
    sketch_groups: Labels | None = None,
    image_groups: Labels | None = None,
    sketch_curriculum: Curriculum | None = None,
    image_curriculum: Curriculum | None = None,
    held_out: HeldOut = "classes",
    n_folds: int = 3,
    score: str | Scorer = "rank_1",
    seed: int = 0,
    map: Callable[[Callable[[Any], float], Iterable[Any]], Iterable[float]] = map,
) -> SearchResult:
    """Score every combination of options on folds of the training samples.

    For each fold, the method learns from the other folds; the fold's sketches then query the
    fold's images, and an image of the same label is relevant.

    Parameters
    ----------
    make_method : callable
        Returns a method (`cppcl.methods.Method`) for options given as keywords: a class, or a
        `functools.partial` that fixes other options. Must be picklable if `map` needs it.
    grid : mapping of str to sequence
        Values to try of each option; every combination is tried.
    sketch_features, image_features : ndarray, (K, m_s) and (L, m_i)
    sketch_labels, image_labels : array_like, (K,) and (L,)
    sketch_groups, image_groups : array_like, (K,) and (L,), optional
        With ``held_out='samples'``, samples of one group are held out together: name the
        instance that ties a sketch to its picture. Give both or neither.
    sketch_curriculum, image_curriculum : Curriculum, optional
        Restricted to the training part of each fold.
    held_out : {'classes', 'samples'}
        'classes' holds out whole labels, as when testing on unseen ones (instance retrieval);
        'samples' spreads the samples of each label over the folds (category retrieval).
    n_folds : int
        At least 2.
    score : str or callable
        A score of `cppcl.metrics.evaluate`, such as 'rank_1' or 'map', or a `Scorer`.
    seed : int
        Of the folds.
    map : callable
        As the builtin: applies a function to (combination, fold) jobs, in any place, and returns
        the results in order. Jobs are a few numbers; the function carries the features.

    Returns
    -------
    SearchResult

    Raises
    ------
    InputError
        For an empty grid entry, fewer classes or samples than folds, or a score that is not a
        number.
    """
    for name, values in grid.items():
        if len(values) == 0:
            raise InputError(f"grid[{name!r}] is empty; give at least one value")
    options = tuple(
        dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
    )
    labels = np.asarray(sketch_labels), np.asarray(image_labels)
    features = np.asarray(sketch_features), np.asarray(image_features)
    for side, of_side, matrix in zip(("sketch", "image"), labels, features, strict=True):
        if len(of_side) != len(matrix):
            raise InputError(
                f"{side}_labels has {len(of_side)} entries, but {side}_features has "
                f"{len(matrix)} rows"
            )
    folds = fold_numbers(
        *labels,
        sketch_groups=sketch_groups,
        image_groups=image_groups,
        held_out=held_out,
        n_folds=n_folds,
        seed=seed,
    )
    scorer = score if callable(score) else partial(_score_by_name, score)
    data = _Data(features, labels, folds, (sketch_curriculum, image_curriculum))
    work = partial(_fit_and_score, make_method, data, scorer)
    jobs = [(chosen, fold) for chosen in options for fold in range(n_folds)]
    scores = np.array(list(map(work, jobs)), dtype=np.float64).reshape(len(options), n_folds)
    if not np.isfinite(scores).all():
        worst, fold = np.argwhere(~np.isfinite(scores))[0]
        raise InputError(f"score of options {options[worst]} on fold {fold} is not a number")
    return SearchResult(options, scores)


def fold_numbers(
    sketch_labels: Labels,
    image_labels: Labels,
    *,
    sketch_groups: Labels | None = None,
    image_groups: Labels | None = None,
    held_out: HeldOut = "classes",
    n_folds: int = 3,
    seed: int = 0,
) -> tuple[Rows, Rows]:
    """Fold that holds out each sketch (K,) and each image (L,); see `grid_search`.

    Folds differ by at most one in classes ('classes'), or in groups ('samples'), where each
    label also spreads as evenly as its size allows.
    """
    if n_folds < 2:
        raise InputError(f"n_folds={n_folds} must be at least 2")
    if held_out not in get_args(HeldOut):
        raise InputError(f"held_out={held_out!r} is not one of {get_args(HeldOut)}")
    if (sketch_groups is None) != (image_groups is None):
        raise InputError("give both of sketch_groups and image_groups, or neither")
    rng = np.random.default_rng(seed)
    labels = np.asarray(sketch_labels), np.asarray(image_labels)
    K = len(labels[0])
    if held_out == "classes":
        units = np.unique(np.concatenate(labels), return_inverse=True)[1]
        both = np.intersect1d(units[:K], units[K:])
        folds = np.full(units.max() + 1, -1)
        folds[both] = _deal(np.zeros(len(both), dtype=np.int64), n_folds, rng, "classes")
        only_one_side = np.flatnonzero(folds < 0)
        folds[only_one_side] = np.arange(len(only_one_side)) % n_folds
        return folds[units[:K]], folds[units[K:]]
    if sketch_groups is None or image_groups is None:
        numbers = [np.unique(of_side, return_inverse=True)[1] for of_side in labels]
        sketches, images = (_deal(of_side, n_folds, rng, "samples") for of_side in numbers)
        return sketches, images
    groups = np.asarray(sketch_groups), np.asarray(image_groups)
    for side, of_side, own in zip(("sketch", "image"), groups, labels, strict=True):
        if len(of_side) != len(own):
            raise InputError(f"{side}_groups has {len(of_side)} entries for {len(own)} labels")
    _, first, units = np.unique(np.concatenate(groups), return_index=True, return_inverse=True)
    label_of_unit = np.unique(np.concatenate(labels), return_inverse=True)[1][first]
    folds = _deal(label_of_unit, n_folds, rng, "groups")
    return folds[units[:K]], folds[units[K:]]


@dataclass(frozen=True)
class _Data:
    features: tuple[NDArray[Any], NDArray[Any]]
    labels: tuple[NDArray[Any], NDArray[Any]]
    folds: tuple[Rows, Rows]
    curricula: tuple[Curriculum | None, Curriculum | None]


def _fit_and_score(
    make_method: Callable[..., Any],
    data: _Data,
    scorer: Scorer,
    job: tuple[dict[str, Any], int],
) -> float:
    options, fold = job
    kept = [np.flatnonzero(of_side != fold) for of_side in data.folds]
    method = make_method(**options).fit(
        *(matrix[rows] for matrix, rows in zip(data.features, kept, strict=True)),
        *(labels[rows] for labels, rows in zip(data.labels, kept, strict=True)),
        *(
            None if curriculum is None else curriculum.restrict(rows)
            for curriculum, rows in zip(data.curricula, kept, strict=True)
        ),
    )
    sketches, images = (of_side == fold for of_side in data.folds)
    return float(
        scorer(
            method.encode_sketches(data.features[0][sketches]),
            method.encode_images(data.features[1][images]),
            data.labels[0][sketches],
            data.labels[1][images],
        )
    )


def _score_by_name(
    name: str,
    sketch_codes: NDArray[Any],
    image_codes: NDArray[Any],
    sketch_labels: NDArray[Any],
    image_labels: NDArray[Any],
) -> float:
    scores = evaluate(
        sketch_codes, image_codes, sketch_labels.tolist(), image_labels.tolist()
    ).scores
    if name not in scores:
        raise InputError(f"score={name!r} is not one of {tuple(scores)}")
    return scores[name]


def _deal(strata: Rows, n_folds: int, rng: np.random.Generator, what: str) -> Rows:
    """Shuffle units, then deal them out in turn, stratum after stratum."""
    if len(strata) < n_folds:
        raise InputError(f"n_folds={n_folds}, but there are {len(strata)} {what} to hold out")
    shuffled = rng.permutation(len(strata))
    order = shuffled[np.argsort(strata[shuffled], kind="stable")]
    folds = np.empty(len(strata), dtype=np.int64)
    folds[order] = np.arange(len(strata)) % n_folds
    return folds
