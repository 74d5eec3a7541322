"""Choose a method's options by cross-validation inside the training rows of a split."""

from __future__ import annotations

import functools
import math
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from prefect import task

from cppcl.datasets.pseudo import real_rows
from cppcl.errors import InputError
from cppcl.learning.estimator import flattened, merged
from cppcl.methods import Method, make_method
from cppcl.modality import MODALITIES, Modality
from cppcl.report.tables import score_name
from cppcl.selection.folds import HeldOut, fewer_rows, repeated_folds
from cppcl.selection.grid_search import (
    Job,
    SearchResult,
    combinations,
    gather_scores,
    search_jobs,
)
from storage import Artifact, Recipe, Reference, Store, Writer
from tasks.cluster.jobs import run_jobs
from tasks.cluster.session import available_cluster, current_cluster
from tasks.prefect_progress import prefect_progress
from tasks.progress import Progress, log, tell
from tasks.samples import (
    Target,
    open_pictures,
    open_split,
    seen_in_training,
    training_samples,
)
from tasks.stages.contract import PREFECT_OPTIONS, Mode, StageResult, produce, stage_task
from tasks.workers.memory import check_training_memory
from tasks.workers.search import ASKS, job_recipe, score_stored_job, try_stored_job
from tasks.workspace import Workspace

VERSION = "2"
FIRST_ROWS, MOST_ROWS = 600, 2400
"""Training rows of the larger modality in the first and in the last round of halving."""
SURVIVORS = 4
"""One of so many goes on to the last round; at least two do."""
ENOUGH_QUERIES, MOST_REPEATS = 200, 5
"""Held-out sketches that tell methods apart, and most divisions into folds to have so many."""
ALL = "all methods"
"""What the scores of several searches at once are called, for progress."""
HINT = "raise compute.memory_per_worker (what is done is kept)"


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search of a method's options: what is scored, on which folds, and where that is stored.

    Parameters
    ----------
    table, split : Reference
        Samples, and which of them train: no other row is read.
    sketch_features, image_features : Reference
        `extract` artifacts.
    curricula : Reference or None
        Pairs, left out where no combination uses them.
    method, options : str, dict
        What is tuned, and the options that the grid does not name.
    grid : dict
        Values to try of each option; empty to score the options as they are.
    target : {'groups', 'labels'}
        What relevance goes by.
    held_out, n_folds, n_repeats, score, metric, warm_start, seed
        See `cppcl.selection.grid_search.grid_search`. Where `held_out` is 'auto', samples are
        held out if training sees most of what test sketches ask for, else classes; where
        `n_repeats` is, folds are drawn until `ENOUGH_QUERIES` are asked, at most `MOST_REPEATS`
        times.
    halving : bool
        Score combinations on `FIRST_ROWS` first, and the best of them on `MOST_ROWS`; nothing is
        scored on more. Successive halving, in two rounds.
    label : str
        Which piece of the stage this is, for progress.
    """

    table: Reference
    split: Reference
    sketch_features: Reference
    image_features: Reference
    curricula: Reference | None
    method: str
    options: dict[str, Any]
    grid: Mapping[str, Any]
    target: Target
    held_out: HeldOut | Literal["auto"]
    n_folds: int
    n_repeats: int | Literal["auto"]
    score: str
    metric: str
    warm_start: bool
    seed: int
    halving: bool = False
    label: str = ""

    @property
    def title(self) -> str:
        """What the search is called."""
        return self.label or self.method

    @cached_property
    def jobs(self) -> list[Job]:
        """Work of the search.

        Raises
        ------
        InputError
            A combination is refused.
        """
        try:
            return search_jobs(
                functools.partial(make_method, self.method, **without(self.options, self.grid)),
                self.grid,
                warm_start=self.warm_start,
            )
        except InputError as error:
            raise InputError(f"{self.title}: {error}") from error

    def rounds(self, store: Store) -> list[int | None]:
        """Most rows of each round; None for all. One round is enough for few rows or jobs."""
        if not self.halving:
            return [None]
        split = open_split(store, self.split)
        n_rows = max(len(split.train_sketches), len(split.train_images))
        once = n_rows <= FIRST_ROWS or len(combinations(self.grid)) < SURVIVORS
        return [MOST_ROWS] if once else [FIRST_ROWS, MOST_ROWS]

    def features(self) -> dict[str, Reference]:
        """Features by role."""
        return {"sketch_features": self.sketch_features, "image_features": self.image_features}

    def division(self, store: Store) -> dict[str, Any]:
        """How training rows are divided into folds."""
        held_out = self.held_out
        if held_out == "auto":
            seen = seen_in_training(
                open_pictures(store, self.table).table, open_split(store, self.split), self.target
            )
            held_out = "samples" if seen else "classes"
        n_repeats = self.n_repeats
        if n_repeats == "auto":
            n_sketches = int(self._asks(store).sum())
            n_repeats = min(MOST_REPEATS, math.ceil(ENOUGH_QUERIES / max(1, n_sketches)))
        return {
            "held_out": held_out,
            "n_folds": self.n_folds,
            "n_repeats": n_repeats,
            "seed": self.seed,
        }

    def _asks(self, store: Store) -> NDArray[np.bool_]:
        """Which training sketches are no pseudo-sketches."""
        samples = open_pictures(store, self.table).table
        rows = open_split(store, self.split).train_sketches
        return real_rows(samples)[samples.rows("sketch")[rows]]

    def folds(self, store: Store, number: int = 0) -> Recipe:
        """Folds of a round; methods with the same features share them."""
        rows = self.rounds(store)[number]
        few = {} if rows is None else {"most_rows": rows}
        real = {} if self._asks(store).all() else {"queries": "real sketches"}
        return Recipe(
            "folds",
            VERSION,
            {"target": self.target, **self.division(store), **few, **real},
            {"table": self.table, "split": self.split, **self.features()},
        )

    def job_recipes(
        self, store: Store, number: int = 0, jobs: Sequence[Job] | None = None
    ) -> list[Recipe]:
        """Scores of jobs, of all by default, on the folds of a round."""
        folds = self.folds(store, number).reference
        return [
            job_recipe(
                self.method,
                replace(job, options=tuple(merged(self.options, one) for one in job.options)),
                score=self.score,
                metric=self.metric,
                folds=folds,
                features=self.features(),
                curricula=self.curricula,
            )
            for job in (self.jobs if jobs is None else jobs)
        ]

    def recipe(self, store: Store) -> Recipe:
        """What the search is made from."""
        folds = [self.folds(store, number).reference for number in range(len(self.rounds(store)))]
        jobs = self.job_recipes(store)
        return Recipe(
            "tune",
            VERSION,
            {
                "method": self.method,
                "options": without(self.options, self.grid),
                "grid": dict(self.grid),
            },
            {"folds": folds[0]}
            | {f"folds-{number}": other for number, other in enumerate(folds[1:], start=2)}
            | {f"job-{number:04}": job.reference for number, job in enumerate(jobs)},
        )

    def is_pending(self, store: Store) -> bool:
        """True if it is not stored; false for a method that refuses its options."""
        with suppress(InputError):
            return store.find(self.recipe(store).reference) is None
        return False

    def publish_folds(self, store: Store, number: int = 0, *, force: bool = False) -> None:
        """Divide the training rows for a round, unless that is stored."""

        def create(writer: Writer) -> None:
            features: dict[Modality, Reference] = {
                "sketch": self.sketch_features,
                "image": self.image_features,
            }
            samples = training_samples(
                store, table=self.table, split=self.split, features=features, target=self.target
            )
            put_folds(
                writer, samples, most_rows=self.rounds(store)[number], **self.division(store)
            )

        store.get_or_create(self.folds(store, number), create, force=force)

    def run(self, store: Store, *, force: bool) -> SearchResult:
        """Score what is not stored, and gather all.

        Raises
        ------
        InputError
            The method refuses the data.
        """
        scores = self._scores(store, 0, self.jobs, force=force)
        last = list(range(len(self.jobs)))
        if len(self.rounds(store)) > 1:
            best = [max(np.mean(of_one) for of_one in of_job) for of_job in scores]
            order = np.argsort(-np.array(best), kind="stable")  # the first of equals
            last = order[: max(2, len(last) // SURVIVORS)].tolist()
            again = self._scores(store, 1, [self.jobs[k] for k in last], force=force)
            for place, found in zip(last, again, strict=True):
                scores[place] = found
        return gather_scores(self.grid, self.jobs, scores, [self.jobs[k] for k in last])

    def _scores(self, store: Store, number: int, jobs: Sequence[Job], *, force: bool) -> list[Any]:
        self.publish_folds(store, number, force=force)
        recipes = self.job_recipes(store, number, jobs)
        run_pending(store, recipes, force=force, label=self.title)
        return [store.open(recipe.reference).array("scores").tolist() for recipe in recipes]


def tune_method(*, workspace: Workspace, mode: Mode = "reuse", **search: Any) -> StageResult:
    """Publish the scores of every combination of a grid, and the best one.

    Jobs run on the cluster, and each is an artifact of its own: a search that was killed goes on,
    and a larger grid costs only what is new in it.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored search, and with stored scores of its jobs.
    **search
        Fields of a `Search`.
    """
    store, asked = workspace.store, Search(**search)

    def create(writer: Writer) -> None:
        try:
            result = asked.run(store, force=mode == "force")
        except InputError as error:
            raise InputError(f"{asked.title}: {error}") from error
        writer.put_array("scores", result.scores)
        writer.put_json(
            "search.json",
            {
                "method": asked.method,
                "score": asked.score,
                "n_folds": asked.n_folds,
                "n_repeats": asked.division(store)["n_repeats"],
                "warm_start": result.warm_start,
                "best": result.best_options,
                "table": result.table(),
            },
        )

    done = produce(store, asked.recipe(store), create, mode=mode, label=asked.title)
    log(f"{asked.title}: {in_words(store.open(done.reference))}")
    return done


tune = stage_task(tune_method)


def search_several(*, workspace: Workspace, searches: Sequence[Search]) -> None:
    """Score the jobs of several searches at once on the cluster, where they are not stored.

    What a method refuses is left to its search, which says so.
    """
    store = workspace.store
    pending: dict[str, Recipe] = {}
    for search in searches:
        with suppress(InputError):
            search.publish_folds(store)
            recipes = search.job_recipes(store)
            lacking = [job for job in recipes if store.find(job.reference) is None]
            log_stored(search.title, recipes, lacking)
            pending |= {str(job.reference): job for job in lacking if not uses_gpu(job)}
    if len(pending) < 2:
        return
    memory = current_cluster().memory_of_a_worker()
    recipes = [job for job in pending.values() if declared_memory(store, job) <= memory]
    work = functools.partial(try_stored_job, store=str(store.root))
    documents = [job.document() for job in recipes]
    n, started = len(recipes), time.perf_counter()
    if n:
        log_search("tune", recipes)
        tell(Progress("tune", ALL, 0, n))
    with prefect_progress("tune") as show:
        for done, _ in enumerate(
            run_jobs(work, documents, device="cpu", name="tune", hint=HINT), 1
        ):
            seconds = time.perf_counter() - started if done == n else 0.0
            tell(Progress("tune", ALL, done, n, seconds=seconds))
            show(done / n)


search_ahead = task(search_several, name="tune_ahead", **PREFECT_OPTIONS)


def without(options: dict[str, Any], grid: Mapping[str, Any]) -> dict[str, Any]:
    """Options that a grid does not name."""
    named = flattened(grid)
    left = {path: value for path, value in flattened(options).items() if path not in named}
    return merged({}, left)


def put_folds(
    writer: Writer,
    samples: Sequence[Any],
    *,
    held_out: HeldOut,
    n_folds: int,
    n_repeats: int,
    seed: int,
    most_rows: int | None = None,
) -> None:
    """Write training rows, numbers of their labels, and the folds that hold each out."""
    sketches, images = samples
    for part in samples:
        if not len(part.rows):
            raise InputError(
                f"no {part.modality} trains in this split, so there is nothing to validate on; "
                "leave out tune and tuning.choose"
            )
    if not sketches.asks.any():
        raise InputError(
            "pseudo-sketches alone train in this split, so no real one can validate; leave out "
            "tune and tuning.choose, or let real sketches train"
        )
    if most_rows is not None:
        rows = fewer_rows(
            sketches.labels,
            images.labels,
            sketches.groups,
            images.groups,
            held_out=held_out,
            most_rows=most_rows,
            seed=seed,
            sketch_asks=sketches.asks,
        )
        sketches, images = samples = [
            part.only(of_part) for part, of_part in zip(samples, rows, strict=True)
        ]
    folds = repeated_folds(
        sketches.labels,
        images.labels,
        sketch_groups=sketches.groups,
        image_groups=images.groups,
        held_out=held_out,
        n_folds=n_folds,
        n_repeats=n_repeats,
        seed=seed,
        sketch_asks=sketches.asks,
    )
    _, numbers = np.unique(np.concatenate([sketches.labels, images.labels]), return_inverse=True)
    labels = np.split(numbers.astype(np.int64), [len(sketches.labels)])
    for part, of_part, fold in zip(samples, labels, folds, strict=True):
        writer.put_array(f"{part.modality}_rows", part.rows)
        writer.put_array(f"{part.modality}_kept", part.kept)
        writer.put_array(f"{part.modality}_labels", of_part)
        writer.put_array(f"{part.modality}_folds", fold)
    if not sketches.asks.all():
        writer.put_array(ASKS, sketches.asks)


def run_pending(store: Store, recipes: Sequence[Recipe], *, force: bool, label: str) -> None:
    """Compute on the cluster what the store lacks of these jobs."""
    pending = [job for job in recipes if force or store.find(job.reference) is None]
    stored = len(recipes) - len(pending)
    log_stored(label, recipes, pending)
    if pending and (workers := available_cluster()):
        declared = max(declared_memory(store, job) for job in pending)
        check_training_memory(method_of(pending[0]), declared, workers.memory_of_a_worker())
    work = functools.partial(score_stored_job, store=str(store.root), force=force)
    device = "gpu" if any(uses_gpu(job) for job in pending) else "cpu"
    if pending:
        log_search(label, pending)
        tell(Progress("tune", label, stored, len(recipes)))
    with prefect_progress(f"tune {label}") as show:
        documents = [job.document() for job in pending]
        finished = run_jobs(work, documents, device=device, name="tune", hint=HINT)
        for done, _ in enumerate(finished, start=stored + 1):
            tell(Progress("tune", label, done, len(recipes)))
            show(done / len(recipes))


def log_stored(label: str, recipes: Sequence[Recipe], pending: Sequence[Recipe]) -> None:
    """Log how many combinations need no computing, where some do."""
    of_all, still = (sum(map(n_combinations, jobs)) for jobs in (recipes, pending))
    if 0 < still < of_all:
        log(f"{label}: {of_all - still} of {of_all} combinations were done")


def log_search(what: str, jobs: Sequence[Recipe]) -> None:
    """Log that a search begins, and of how many combinations."""
    n = sum(map(n_combinations, jobs))
    log(f"{what}: {n} combination{'s' if n != 1 else ''} of options to score")


def n_combinations(job: Recipe) -> int:
    """Combinations of a job."""
    combinations: Any = job.parameters["options"]
    return len(combinations)


def method_of(job: Recipe) -> str:
    """Registered name of the method of a job."""
    return str(job.parameters["method"])


def methods_of(job: Recipe) -> list[Method]:
    """Method of each combination of a job, not fitted."""
    combinations: Any = job.parameters["options"]
    return [make_method(method_of(job), **options) for options in combinations]


def uses_gpu(job: Recipe) -> bool:
    """True if a combination of a job runs on a GPU."""
    return any(method.uses_gpu for method in methods_of(job))


def declared_memory(store: Store, job: Recipe) -> int:
    """Bytes that the method of a job declares that it needs for the training part of a fold."""
    folds = store.open(job.inputs["folds"])
    of_folds: Any = folds.parameters["n_folds"]
    counts, dimensions = [], []
    for modality in MODALITIES:
        (n,) = folds.shape(f"{modality}_rows")
        counts.append(n - n // of_folds)
        features = store.open(job.inputs[f"{modality}_features"])
        dimensions.append(features.shape("features")[1])
    sketch, image = dimensions
    return max(method.memory(*counts, (sketch, image)) for method in methods_of(job))


def best_options(store: Store, reference: Reference) -> dict[str, Any]:
    """Options that a `tune` artifact found best."""
    return dict(store.open(reference).json("search.json")["best"])


def folds_in_words(search: Mapping[str, Any]) -> str:
    """How a search divided the training rows."""
    repeats = search["n_repeats"]
    return f"{search['n_folds']} folds" + (f" (drawn {repeats} times)" if repeats > 1 else "")


def in_words(artifact: Artifact) -> str:
    """What a search found, in one line."""
    search = artifact.json("search.json")
    best = next(row for row in search["table"] if row["best"])
    reached = (
        f"{score_name(search['score'])} {100 * best['mean']:.1f} ± {100 * best['sd']:.1f} per "
        f"cent in {folds_in_words(search)} of the training pictures"
    )
    if not search["best"]:
        return reached
    n, names = len(search["table"]), short_names(search["best"])
    chosen = ", ".join(f"{k}={v}" for k, v in zip(names, search["best"].values(), strict=True))
    warm = ", warm-started" if search["warm_start"] else ""
    return f"{reached}{warm}, best of {n}: {chosen}" if n > 1 else f"{reached}{warm}: {chosen}"


def short_names(paths: Collection[str]) -> list[str]:
    """Last part of every path of an option, or the whole path where two end alike."""
    ends = Counter(path.rpartition(".")[2] for path in paths)
    return [end if ends[end := path.rpartition(".")[2]] == 1 else path for path in paths]
