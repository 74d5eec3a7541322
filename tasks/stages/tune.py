"""Choose a method's options by cross-validation inside the training rows of a split."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from cppcl.errors import InputError
from cppcl.learning.estimator import flattened, merged
from cppcl.methods import Method, make_method
from cppcl.modality import MODALITIES, Modality
from cppcl.selection.folds import HeldOut, fewer_rows, repeated_folds
from cppcl.selection.grid_search import Job, combinations, gather_scores, search_jobs
from storage import Artifact, Recipe, Reference, Store, Writer
from tasks.cluster.jobs import run_jobs
from tasks.cluster.session import available_cluster
from tasks.prefect_progress import prefect_progress
from tasks.progress import Progress, log, tell
from tasks.samples import (
    Target,
    open_pictures,
    open_split,
    seen_in_training,
    training_samples,
)
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workers.memory import check_training_memory
from tasks.workers.search import job_recipe, score_stored_job
from tasks.workspace import Workspace

VERSION = "2"
FIRST_ROWS, MOST_ROWS = 600, 2400
"""Training rows of the larger modality in the first and in the last round of halving."""
SURVIVORS = 4
"""One of so many goes on to the last round; at least two do."""
HINT = "raise compute.memory_per_worker (what is done is kept)"


def tune_method(
    *,
    workspace: Workspace,
    table: Reference,
    split: Reference,
    sketch_features: Reference,
    image_features: Reference,
    curricula: Reference | None,
    method: str,
    options: dict[str, Any],
    grid: Mapping[str, Any],
    target: Target,
    held_out: HeldOut | Literal["auto"],
    n_folds: int,
    n_repeats: int,
    score: str,
    metric: str,
    warm_start: bool,
    seed: int,
    halving: bool = False,
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the scores of every combination of a grid, and the best one.

    Jobs run on the cluster, and each is an artifact of its own: a search that was killed goes on,
    and a larger grid costs only what is new in it.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    table, split : Reference
        Samples, and which of them train: no other row is read.
    sketch_features, image_features : Reference
        `extract` artifacts.
    curricula : Reference or None
        Pairs, left out where no combination uses them.
    method, options : str, dict
        What is tuned, and the options that the grid does not name.
    grid : dict
        Values to try of each option.
    target : {'groups', 'labels'}
        What relevance goes by.
    held_out, n_folds, n_repeats, score, metric, warm_start, seed
        See `cppcl.selection.grid_search.grid_search`. Where `held_out` is 'auto', samples are
        held out if training sees most of what test sketches ask for, else classes.
    label : str
        Which piece of the stage this is, for progress.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored search, and with stored scores of its jobs.
    """
    store, label = workspace.store, label or method
    if held_out == "auto":
        seen = seen_in_training(
            open_pictures(store, table).table, open_split(store, split), target
        )
        held_out = "samples" if seen else "classes"
    features = {"sketch_features": sketch_features, "image_features": image_features}
    division: dict[str, Any] = {
        "held_out": held_out,
        "n_folds": n_folds,
        "n_repeats": n_repeats,
        "seed": seed,
    }
    rounds: list[int | None] = [None]
    if halving:
        rounds = [MOST_ROWS] if len(combinations(grid)) < SURVIVORS else [FIRST_ROWS, MOST_ROWS]
    folds = [
        Recipe(
            "folds",
            VERSION,
            {"target": target, **division, **({} if rows is None else {"most_rows": rows})},
            {"table": table, "split": split, **features},
        )
        for rows in rounds
    ]
    try:
        jobs = search_jobs(
            functools.partial(make_method, method, **without(options, grid)),
            grid,
            warm_start=warm_start,
        )
    except InputError as error:
        raise InputError(f"{label}: {error}") from error

    def recipes_on(rows: Recipe, chosen: Sequence[Job]) -> list[Recipe]:
        return [
            job_recipe(
                method,
                replace(job, options=tuple(merged(options, one) for one in job.options)),
                score=score,
                metric=metric,
                folds=rows.reference,
                features=features,
                curricula=curricula,
            )
            for job in chosen
        ]

    recipes = recipes_on(folds[0], jobs)
    recipe = Recipe(
        "tune",
        VERSION,
        {"method": method, "options": without(options, grid), "grid": dict(grid)},
        {"folds": folds[0].reference}
        | {f"folds-{number}": other.reference for number, other in enumerate(folds[1:], start=2)}
        | {f"job-{number:04}": job.reference for number, job in enumerate(recipes)},
    )

    def create_folds(writer: Writer, most_rows: int | None) -> None:
        chosen: dict[Modality, Reference] = {"sketch": sketch_features, "image": image_features}
        put_folds(
            writer,
            training_samples(store, table=table, split=split, features=chosen, target=target),
            most_rows=most_rows,
            **division,
        )

    def scores_on(number: int, chosen: Sequence[Job], *, force: bool) -> list[Any]:
        fill = functools.partial(create_folds, most_rows=rounds[number])
        store.get_or_create(folds[number], fill, force=force)
        here = recipes_on(folds[number], chosen)
        run_pending(store, here, force=force, label=label)
        return [store.open(job.reference).array("scores").tolist() for job in here]

    def create(writer: Writer) -> None:
        force = mode == "force"
        try:
            scores = scores_on(0, jobs, force=force)
            last = list(range(len(jobs)))
            if len(rounds) > 1:
                best = [max(np.mean(of_one) for of_one in of_job) for of_job in scores]
                last = np.argsort(best)[::-1][: max(2, len(jobs) // SURVIVORS)].tolist()
                for place, found in zip(
                    last, scores_on(1, [jobs[k] for k in last], force=force), strict=True
                ):
                    scores[place] = found
            result = gather_scores(grid, jobs, scores, [jobs[k] for k in last])
        except InputError as error:
            raise InputError(f"{label}: {error}") from error
        writer.put_array("scores", result.scores)
        writer.put_json(
            "search.json",
            {
                "method": method,
                "score": score,
                "n_folds": n_folds,
                "n_repeats": n_repeats,
                "warm_start": result.warm_start,
                "best": result.best_options,
                "halving": halving,
                "table": result.table(),
            },
        )

    done = produce(store, recipe, create, mode=mode, label=label)
    log(f"{label}: {in_words(store.open(done.reference))}")
    return done


tune = stage_task(tune_method)


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
    if most_rows is not None:
        rows = fewer_rows(
            sketches.labels,
            images.labels,
            sketches.groups,
            images.groups,
            held_out=held_out,
            most_rows=most_rows,
            seed=seed,
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
    )
    _, numbers = np.unique(np.concatenate([sketches.labels, images.labels]), return_inverse=True)
    labels = np.split(numbers.astype(np.int64), [len(sketches.labels)])
    for part, of_part, fold in zip(samples, labels, folds, strict=True):
        writer.put_array(f"{part.modality}_rows", part.rows)
        writer.put_array(f"{part.modality}_kept", part.kept)
        writer.put_array(f"{part.modality}_labels", of_part)
        writer.put_array(f"{part.modality}_folds", fold)


def run_pending(store: Store, recipes: Sequence[Recipe], *, force: bool, label: str) -> None:
    """Compute on the cluster what the store lacks of these jobs."""
    pending = [job for job in recipes if force or store.find(job.reference) is None]
    stored = len(recipes) - len(pending)
    if stored and pending:
        of_all, still = (sum(map(n_combinations, jobs)) for jobs in (recipes, pending))
        log(f"{label}: {of_all - still} of {of_all} combinations were done")
    if pending and (workers := available_cluster()):
        declared = max(declared_memory(store, job) for job in pending)
        check_training_memory(method_of(pending[0]), declared, workers.memory_of_a_worker())
    work = functools.partial(score_stored_job, store=str(store.root), force=force)
    device = "gpu" if any(uses_gpu(job) for job in pending) else "cpu"
    with prefect_progress(f"tune {label}") as show:
        documents = [job.document() for job in pending]
        finished = run_jobs(work, documents, device=device, name="tune", hint=HINT)
        for done, _ in enumerate(finished, start=stored + 1):
            tell(Progress("tune", label, done, len(recipes)))
            show(done / len(recipes))


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
    return f"{search['n_folds']} folds" + (f", {repeats} times," if repeats > 1 else "")


def in_words(artifact: Artifact) -> str:
    """What a search found, in one line."""
    search = artifact.json("search.json")
    best = next(row for row in search["table"] if row["best"])
    if not search["best"]:
        return (
            f"{search['score']} {100 * best['mean']:.1f} ± {100 * best['sd']:.1f} in "
            f"{folds_in_words(search)} of the training rows"
        )
    chosen = ", ".join(f"{name}={value}" for name, value in search["best"].items())
    warm = ", warm-started" if search["warm_start"] else ""
    return (
        f"{chosen} is best of {len(search['table'])} combinations: {search['score']} "
        f"{100 * best['mean']:.1f} ± {100 * best['sd']:.1f} in {folds_in_words(search)} of the "
        f"training rows{warm}"
    )
