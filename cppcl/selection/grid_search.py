"""Choice of a method's options by cross-validation within training samples."""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.learning.composed_method import ComposedMethod, Widths
from cppcl.learning.composition import COMPOSITION, POST
from cppcl.learning.estimator import Estimator, flattened, merged
from cppcl.retrieval.exact import METRICS, Metric
from cppcl.retrieval.metrics import evaluate
from cppcl.selection.folds import HeldOut, Rows, repeated_folds
from cppcl.validation import Labels, check_choice, check_flag, check_labels, check_matrix

Scores = Sequence[Sequence[float]]
"""Scores of each combination of a job on every fold, repeat after repeat."""

Scorer = Callable[[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]], float]
"""Score, higher is better, from sketch codes, image codes, sketch labels and image labels."""


@dataclass(frozen=True)
class Job:
    """What one worker does at a time, on every fold.

    Attributes
    ----------
    options : tuple of dict
        Combinations that are fitted one after the other.
    warm_start : bool
        True if each fit starts from the one before.
    """

    options: tuple[dict[str, Any], ...]
    warm_start: bool


@dataclass(frozen=True)
class SearchResult:
    """Scores of every combination of options.

    Parameters
    ----------
    options : tuple of dict
        The combinations, in the order of the grid (last option fastest).
    scores : ndarray, (combinations, folds of all repeats) float64
    warm_start : bool
        True if each fit started from that of the next larger value. Scores then differ
        slightly from those of the same options fitted alone.
    may_win : ndarray, (combinations,) bool, optional
        False for those that were given up after few samples; all may win if None.
    """

    options: tuple[dict[str, Any], ...]
    scores: NDArray[np.float64]
    warm_start: bool = False
    may_win: NDArray[np.bool_] | None = None

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
        """Combination of the highest mean of those that may win, the first of equals."""
        mean = self.mean
        return int(
            np.argmax(mean if self.may_win is None else np.where(self.may_win, mean, -np.inf))
        )

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


@dataclass(frozen=True)
class SearchData:
    """Training samples of both modalities, sketches first.

    Attributes
    ----------
    features, labels : pairs of ndarray, (n_k, m_k) and (n_k,)
    folds : pair of ndarray, (repeats, n_k)
        The fold that holds each sample out.
    curricula : pair of Curriculum or None
    spaces : pair of tuple of int, or None
        Columns of each space of either modality's features; one space if None.
    sketch_asks : (n_0,) bool ndarray or None
        Sketches that are queries of the fold that holds them out; all if None.
    """

    features: tuple[NDArray[Any], NDArray[Any]]
    labels: tuple[NDArray[Any], NDArray[Any]]
    folds: tuple[Rows, Rows]
    curricula: tuple[Curriculum | None, Curriculum | None] = (None, None)
    spaces: Widths | None = None
    sketch_asks: NDArray[np.bool_] | None = None


def grid_search(
    make_method: Callable[..., Any],
    grid: Mapping[str, Any],
    sketch_features: NDArray[Any],
    image_features: NDArray[Any],
    sketch_labels: Labels,
    image_labels: Labels,
    *,
    sketch_groups: Labels | None = None,
    image_groups: Labels | None = None,
    sketch_curriculum: Curriculum | None = None,
    image_curriculum: Curriculum | None = None,
    sketch_asks: NDArray[np.bool_] | None = None,
    held_out: HeldOut = "classes",
    n_folds: int = 3,
    n_repeats: int = 1,
    score: str | Scorer = "rank_1",
    metric: Metric = "cosine",
    warm_start: bool = False,
    seed: int = 0,
    map: Callable[[Callable[[Job], Scores], Iterable[Job]], Iterable[Scores]] = map,
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
        Values to try of each option; every combination is tried. An option of a group is nested
        as the group is, ``{"pacing": {"eta": [1.3, 2.0]}}``, or named by ``pacing.eta`` or
        ``pacing__eta``.
    sketch_features, image_features : ndarray, (K, m_s) and (L, m_i)
    sketch_labels, image_labels : array_like, (K,) and (L,)
    sketch_groups, image_groups : array_like, (K,) and (L,), optional
        With ``held_out='samples'``, samples of one group are held out together: name the
        instance that ties a sketch to its picture. Give both or neither.
    sketch_curriculum, image_curriculum : Curriculum, optional
        Restricted to the training part of each fold.
    sketch_asks : (K,) bool ndarray, optional
        False for sketches that train and are never queries, such as contours of images that train
        in the place of sketches. All are queries if None.
    held_out : {'classes', 'samples'}
        'classes' holds out whole labels, as when testing on unseen ones (instance retrieval);
        'samples' spreads the samples of each label over the folds (category retrieval).
    n_folds : int
        At least 2.
    n_repeats : int
        Divisions into folds, each drawn anew: more steady where samples are few.
    score : str or callable
        A score of `cppcl.retrieval.metrics.evaluate`, such as 'rank_1' or 'map', or a `Scorer`.
    metric : {'cosine', 'l2'}
        What ranks, where `score` is a name.
    warm_start : bool
        Fit descending values of the method's `warm_start_option`, where it has one, each from
        what the one before learned. Such a path is one job. It
        saves initialisation, but the scores are not those of the same options fitted alone: few
        rounds stay near where they start.
    seed : int
        Of the folds.
    map : callable
        As the builtin: applies a function to jobs, in any place, and returns the results in
        order. Jobs are a few numbers; the function carries the features.

    Returns
    -------
    SearchResult

    Raises
    ------
    InputError
        For an empty grid entry, fewer classes or samples than folds, options that the method
        refuses, or a score that is not a number.
    """
    check_flag("warm_start", warm_start)
    check_choice("metric", metric, METRICS)
    if not callable(score) and not isinstance(score, str):
        raise InputError(f"score={reprlib.repr(score)} must be a name or a function")
    features = (
        check_matrix(sketch_features, "sketch_features"),
        check_matrix(image_features, "image_features"),
    )
    labels = (
        label_array(check_labels(sketch_labels, len(features[0]), "sketch_labels")),
        label_array(check_labels(image_labels, len(features[1]), "image_labels")),
    )
    folds = repeated_folds(
        *labels,
        sketch_groups=sketch_groups,
        image_groups=image_groups,
        held_out=held_out,
        n_folds=n_folds,
        n_repeats=n_repeats,
        seed=seed,
        sketch_asks=sketch_asks,
    )
    scorer = score if callable(score) else partial(score_by_name, score, metric)
    data = SearchData(
        features, labels, folds, (sketch_curriculum, image_curriculum), sketch_asks=sketch_asks
    )
    jobs = search_jobs(make_method, grid, warm_start=warm_start)
    return gather_scores(grid, jobs, map(partial(score_job, make_method, data, scorer), jobs))


def combinations(grid: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Every combination of the values of a grid, the last option fastest.

    Options of groups are named by their path, such as ``pacing.eta``.
    """
    if not isinstance(grid, Mapping) or not all(isinstance(name, str) for name in grid):
        raise InputError(f"grid={reprlib.repr(grid)} must be lists of values by option")
    grid = {name.replace("__", "."): values for name, values in flattened(grid).items()}
    for name, values in grid.items():
        listed = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes)
        if not listed or len(values) == 0:
            raise InputError(f"grid[{name!r}]={values!r} must be a list of at least one value")
        if len({repr(value) for value in values}) < len(values):
            raise InputError(f"grid[{name!r}]={values!r} holds a value twice; give each once")
    return tuple(
        dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
    )


def constructed(make_method: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Construct a method; options of groups are named by their path."""
    fixed: Mapping[str, Any] = {}
    if isinstance(make_method, partial):
        fixed = {
            name: value.options() if isinstance(value, Estimator) else value
            for name, value in make_method.keywords.items()
        }
        make_method = partial(make_method.func, *make_method.args)
    return make_method(**merged(fixed, options))


def search_jobs(
    make_method: Callable[..., Any],
    grid: Mapping[str, Any],
    *,
    warm_start: bool = False,
) -> list[Job]:
    """Work of a search: each combination, or each path along the method's `warm_start_option`.

    Combinations that learn the same, and differ in what becomes of the codes, are one job.
    Every combination is constructed once, so that one that is refused costs no training.
    """
    options = combinations(grid)
    methods = [constructed(make_method, chosen) for chosen in options]
    along = methods[0].warm_start_option if warm_start else None
    warm = along is not None and len(grid.get(along, ())) > 1
    paths: dict[Any, list[dict[str, Any]]] = {}
    apart = {f"{COMPOSITION}.{name}" for name in POST} | ({along} if warm else set())
    for chosen in options:
        rest = {name: value for name, value in chosen.items() if name not in apart}
        paths.setdefault(repr(rest), []).append(chosen)
    if along is not None and warm:
        for path in paths.values():
            path.sort(key=lambda chosen: chosen[along], reverse=True)
    return [Job(tuple(path), warm) for path in paths.values()]


def gather_scores(
    grid: Mapping[str, Any],
    jobs: Sequence[Job],
    scores: Iterable[Scores],
    last: Sequence[Job] | None = None,
) -> SearchResult:
    """Put the scores of every job in their place.

    The best combination is one of the jobs in `last`, where these are given.
    """
    options = combinations(grid)
    found = {
        repr(chosen): values
        for job, of_job in zip(jobs, scores, strict=True)
        for chosen, values in zip(job.options, of_job, strict=True)
    }
    table = np.array([found[repr(chosen)] for chosen in options], dtype=np.float64)
    if not np.isfinite(table).all():
        worst, fold = np.argwhere(~np.isfinite(table))[0]
        raise InputError(f"score of options {options[worst]} on fold {fold} is not a number")
    candidates = [repr(chosen) for job in last or jobs for chosen in job.options]
    may_win = np.array([repr(chosen) in candidates for chosen in options])
    return SearchResult(options, table, jobs[0].warm_start, may_win)


def score_job(
    make_method: Callable[..., Any], data: SearchData, scorer: Scorer, job: Job
) -> list[list[float]]:
    """Fit each combination of a job without each fold, and score it on the fold."""
    scores: list[list[float]] = [[] for _ in job.options]
    for repeat in zip(*data.folds, strict=True):
        for fold in range(1 + max(of_modality.max() for of_modality in repeat)):
            kept = [np.flatnonzero(of_modality != fold) for of_modality in repeat]
            held_out = [np.flatnonzero(of_modality == fold) for of_modality in repeat]
            if data.sketch_asks is not None:
                held_out[0] = held_out[0][data.sketch_asks[held_out[0]]]
                if not len(held_out[0]):
                    raise InputError(
                        f"sketch_asks: fold {fold} holds out no sketch that asks; lower n_folds"
                    )
            of_fold = score_fold(make_method, data, scorer, job, fold, kept, held_out)
            for of_options, score in zip(scores, of_fold, strict=True):
                of_options.append(score)
    return scores


def score_fold(
    make_method: Callable[..., Any],
    data: SearchData,
    scorer: Scorer,
    job: Job,
    fold: int,
    kept: Sequence[Rows],
    held_out: Sequence[Rows],
) -> Iterator[float]:
    """Fit each combination of a job on some rows, and score it on others."""
    training = [
        *(matrix[rows] for matrix, rows in zip(data.features, kept, strict=True)),
        *(labels[rows] for labels, rows in zip(data.labels, kept, strict=True)),
        *(
            None if curriculum is None else curriculum.restrict(rows)
            for curriculum, rows in zip(data.curricula, kept, strict=True)
        ),
    ]
    sketches, images = held_out
    asked = data.features[0][sketches], data.features[1][images]
    labels = data.labels[0][sketches], data.labels[1][images]
    method: Any = None
    spaces: tuple[Any, Any] | None = None
    for options in job.options:
        before = method
        start: dict[str, Any] = {"start": method} if job.warm_start and method is not None else {}
        try:
            method = constructed(make_method, options)
            if isinstance(method, ComposedMethod):
                method.fit_like(before, training, data.spaces)
            else:
                method = method.fit(*training, **start)
        except InputError as error:
            raise InputError(f"options {options}, fold {fold}: {error}") from error
        if isinstance(method, ComposedMethod):
            if spaces is None or not method.shares_members(before):
                spaces = (
                    method.encode_spaces("sketch", asked[0]),
                    method.encode_spaces("image", asked[1]),
                )
            codes = method.compose("sketch", spaces[0]), method.compose("image", spaces[1])
        else:
            codes = method.encode_sketches(asked[0]), method.encode_images(asked[1])
        yield float(scorer(*codes, *labels))


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Labels as a vector; of objects where they are of several types, or tuples."""
    if len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple):
        return np.asarray(labels)
    vector = np.empty(len(labels), dtype=object)
    vector[:] = labels
    return vector


def score_by_name(
    name: str,
    metric: Metric,
    sketch_codes: NDArray[Any],
    image_codes: NDArray[Any],
    sketch_labels: NDArray[Any],
    image_labels: NDArray[Any],
) -> float:
    """Score of this name of `cppcl.retrieval.metrics.evaluate`."""
    scores = evaluate(
        sketch_codes, image_codes, sketch_labels.tolist(), image_labels.tolist(), metric=metric
    ).scores
    if name not in scores:
        raise InputError(f"score={name!r} is not one of {tuple(scores)}")
    return scores[name]
