"""Options chosen by cross-validation on training rows: on a cluster, killed, extended."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import tasks.stages.tune
from cppcl.errors import InputError
from cppcl.methods import make_method
from cppcl.selection.grid_search import SearchResult, grid_search
from storage import Artifact
from tasks.progress import Progress, listening
from tasks.samples import open_curriculum, open_pictures, open_split, targets, usable_rows
from tasks.stages.contract import StageNotStoredError
from tasks.stages.tune import best_options, short_names

GRID = {"alpha": (0.01, 0.3), "pacing": {"mu": (0.0, 0.5)}}
BASE = {"n_atoms": 4, "n_rounds": 3, "initialization": {"n_initial_rounds": 2}}


RUN_ON_CLUSTER = tasks.stages.tune.run_jobs
"""Before a fixture makes jobs run in this process."""


class Interrupted(BaseException):
    """As when the process is killed: nothing in a task may catch it."""


def search_here(stages: Any, curricula: Any, grid: Any, **options: Any) -> SearchResult:
    """The library's search on the training rows, read without any task."""
    store = stages.workspace.store
    split = open_split(store, stages.split)
    table = open_pictures(store, stages.table).table
    data: dict[str, Any] = {}
    for modality, rows in (("sketch", split.train_sketches), ("image", split.train_images)):
        features = store.open(stages.features[modality])
        kept = usable_rows(features)[rows]
        data[f"{modality}_features"] = features.array("features")[rows[kept]]
        data[f"{modality}_labels"] = targets(table, modality, "groups", rows[kept])
        if curricula is not None:
            data[f"{modality}_curriculum"] = open_curriculum(store, curricula, modality, kept)
    return grid_search(
        partial(make_method, "cprl", **BASE), grid, n_folds=2, score="map", **data, **options
    )


def found(stages: Any, result: Any) -> Artifact:
    artifact: Artifact = stages.workspace.store.open(result.reference)
    return artifact


def jobs_of(artifact: Artifact) -> dict[str, Any]:
    return {name: ref for name, ref in artifact.inputs.items() if name.startswith("job-")}


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("broken", [False, True])
def test_scores_are_those_of_the_library(request, warm_start, broken):
    stages: Any = request.getfixturevalue("broken_stages" if broken else "stages")
    curricula = stages.curricula()
    expected = search_here(stages, curricula, GRID, warm_start=warm_start)
    assert np.ptp(expected.scores) > 0.01
    artifact = found(stages, stages.tune(GRID, curricula, warm_start=warm_start))
    np.testing.assert_array_equal(artifact.array("scores"), expected.scores)
    search = artifact.json("search.json")
    assert search["table"] == expected.table()
    assert search["best"] == expected.best_options
    assert best_options(stages.workspace.store, artifact.reference) == expected.best_options
    assert search["warm_start"] is warm_start
    assert (search["method"], search["score"], search["n_folds"]) == ("cprl", "map", 2)
    assert len(jobs_of(artifact)) == (2 if warm_start else 4)


@pytest.mark.flow
@pytest.mark.parametrize("warm_start", [False, True])
def test_a_cluster_finds_what_one_process_finds(stages, dask_cluster, monkeypatch, warm_start):
    here = found(stages, stages.tune(GRID, warm_start=warm_start))
    ran: list[Any] = []

    def count(work: Any, documents: Any, **options: Any) -> Any:
        for done in RUN_ON_CLUSTER(work, documents, **options):
            ran.append(done)
            yield done

    monkeypatch.setattr(tasks.stages.tune, "run_jobs", count)
    there = found(stages, stages.tune(GRID, warm_start=warm_start, mode="force"))
    assert len(ran) == len(jobs_of(here))
    assert there.manifest == here.manifest
    assert there.array("scores").tobytes() == here.array("scores").tobytes()
    loaded = dask_cluster.client().run(lambda: set(__import__("sys").modules))
    assert any("tasks.workers.search" in names for names in loaded.values())
    assert not any("prefect" in names for names in loaded.values())


def test_a_search_that_is_interrupted_goes_on(stages):
    def interrupt(progress: Progress) -> None:
        if progress.stage == "tune" and progress.done == 2:
            raise Interrupted

    with pytest.raises(Interrupted), listening(interrupt):
        stages.tune(GRID)
    said: list[str] = []
    steps: list[tuple[int, int]] = []
    with listening(lambda p: steps.append((p.done, p.total)), said.append):
        artifact = found(stages, stages.tune(GRID))
    assert said[:2] == [
        "cprl: 2 of 4 combinations were done",
        "cprl: 2 combinations of options to score",
    ]
    assert steps == [(0, 1), *((done, 4) for done in (2, 3, 4)), (1, 1)]
    np.testing.assert_array_equal(artifact.array("scores"), search_here(stages, None, GRID).scores)


def test_a_larger_grid_costs_what_is_new_in_it(stages, monkeypatch):
    counts: list[int] = []
    run = tasks.stages.tune.run_jobs

    def count(work: Any, documents: Any, **options: Any) -> Any:
        counts.append(len(documents))
        return run(work, documents, **options)

    monkeypatch.setattr(tasks.stages.tune, "run_jobs", count)
    first = stages.tune({"alpha": (0.01, 0.3)})
    again = stages.tune({"alpha": (0.01, 0.3)})
    assert again.cached
    assert again.reference == first.reference
    larger = found(stages, stages.tune({"alpha": (0.3, 0.05, 0.01)}))
    assert counts == [2, 1]
    np.testing.assert_array_equal(
        larger.array("scores")[[2, 0]], found(stages, first).array("scores")
    )
    # An option that the grid names was the same as one of the options before.
    stages.tune(
        {"n_atoms": (4, 5)},
        options={"n_rounds": 3, "initialization": {"n_initial_rounds": 2}, "alpha": 0.01},
    )
    assert counts == [2, 1, 1]
    stages.tune({"alpha": (0.01, 0.3)}, mode="force")
    assert counts == [2, 1, 1, 2]


def test_test_rows_are_never_read(stages, monkeypatch):
    """Neither by the task nor by its jobs: features are read by row, and only training rows."""
    curricula = stages.curricula()
    split = open_split(stages.workspace.store, stages.split)
    training = {
        stages.features["sketch"]: set(split.train_sketches.tolist()),
        stages.features["image"]: set(split.train_images.tolist()),
    }
    read: dict[Any, set[int]] = {reference: set() for reference in training}
    rows, array = Artifact.rows, Artifact.array

    def watch_rows(self: Artifact, name: str, numbers: Any) -> Any:
        if name == "features":
            read[self.reference] |= set(np.asarray(numbers).tolist())
        return rows(self, name, numbers)

    def watch_array(self: Artifact, name: str) -> Any:
        assert name != "features"
        return array(self, name)

    monkeypatch.setattr(Artifact, "rows", watch_rows)
    monkeypatch.setattr(Artifact, "array", watch_array)
    artifact = found(stages, stages.tune(GRID, curricula))
    assert read == training
    folds = stages.workspace.store.open(artifact.inputs["folds"])
    for modality, part in (("sketch", split.train_sketches), ("image", split.train_images)):
        assert set(folds.array(f"{modality}_rows").tolist()) == set(part.tolist())
        assert set(folds.array(f"{modality}_folds")[0].tolist()) == {0, 1}


def test_instances_are_held_out_together_where_classes_are_sought(stages):
    """A sketch and its picture are in one fold, else the fold would hold what it learned."""
    artifact = found(stages, stages.tune({"alpha": (0.01,)}, target="labels", held_out="samples"))
    store = stages.workspace.store
    folds = store.open(artifact.inputs["folds"])
    table = open_pictures(store, stages.table).table
    fold_of: dict[str, int] = {}
    for modality in ("sketch", "image"):
        rows = folds.array(f"{modality}_rows")
        groups = targets(table, modality, "groups", rows)
        assert len(np.unique(folds.array(f"{modality}_labels"))) == 3
        for group, fold in zip(groups, folds.array(f"{modality}_folds")[0], strict=True):
            assert fold_of.setdefault(str(group), int(fold)) == fold
    assert len(fold_of) == 7


def test_pairs_belong_to_the_fits_that_weigh_them(stages):
    curricula = stages.curricula()
    store = stages.workspace.store
    artifact = found(stages, stages.tune(GRID, curricula))
    for reference in jobs_of(artifact).values():
        job = store.open(reference)
        (options,) = job.parameters["options"]
        assert ("curricula" in job.inputs) == (options["pacing"]["mu"] > 0)
    without = found(
        stages, stages.tune({"alpha": (0.01, 0.3)}, options={**BASE, "pacing": {"mu": 0.0}})
    )
    again = found(
        stages,
        stages.tune({"alpha": (0.01, 0.3)}, curricula, options={**BASE, "pacing": {"mu": 0.0}}),
    )
    assert again.reference == without.reference


def test_an_option_is_named_by_the_end_of_its_path_unless_two_end_alike():
    paths = ["alpha", "composition.hubness", "graph.ridge", "preparation.ridge"]
    assert short_names(paths) == ["alpha", "hubness", "graph.ridge", "preparation.ridge"]


def test_what_was_chosen_is_said(stages):
    said: list[str] = []
    with listening(on_message=said.append):
        artifact = found(stages, stages.tune({"alpha": (0.01, 0.3)}))
        stages.tune({"alpha": (0.01, 0.3)})
    best = artifact.json("search.json")["best"]["alpha"]
    assert said.pop(0) == "cprl: 2 combinations of options to score"
    assert said[0] == said[1]
    assert said[0].startswith("cprl: mAP ")
    in_folds = " per cent in 2 folds of the training pictures"
    assert said[0].endswith(f"{in_folds}, best of 2: alpha={best}")
    with listening(on_message=said.append):
        stages.tune({"alpha": (0.01, 0.3)}, n_repeats=2)
    assert " per cent in 2 folds (drawn 2 times) of the training pictures, best" in said[-1]
    with listening(on_message=said.append):
        stages.tune({"alpha": (0.01, 0.3)}, warm_start=True)
    assert " of the training pictures, warm-started, best of 2: " in said[-1]


def test_a_search_that_must_be_stored_is_asked_for(stages):
    with pytest.raises(StageNotStoredError, match=r"'tune' \(cprl\) has not been run"):
        stages.tune(GRID, mode="require")
    stages.tune(GRID)
    assert stages.tune(GRID, mode="require").cached


@pytest.mark.parametrize(
    ("grid", "changes", "message"),
    [
        ({"alpha": (0.01, -1)}, {}, r"cprl: alpha=-1 must be"),
        ({"alhpa": (0.01,)}, {}, r"cprl: cprl has no option 'alhpa'; did you mean 'alpha'"),
        ({"alpha": ()}, {}, r"cprl: grid\['alpha'\]=\(\) must be a list"),
        ({"alpha": (0.01,)}, {"n_folds": 9}, r"cprl: n_folds=9, but there are 7 classes"),
        ({"alpha": (0.01,)}, {"score": "precision_at_100"}, r"cprl: score='precision_at_100'"),
    ],
)
def test_trouble_is_told_with_the_name_of_the_method(stages, grid, changes, message):
    with pytest.raises(InputError, match=message):
        stages.tune(grid, **changes)


def test_halving_scores_the_survivors_again_on_more_rows(stages, monkeypatch):
    """Each of four combinations on four rows, the two best of them on all; one of these wins."""
    monkeypatch.setattr(tasks.stages.tune, "FIRST_ROWS", 4)
    grid = {"alpha": [0.01, 0.05, 50.0, 60.0]}  # the last two leave no codes
    artifact = found(stages, stages.tune(grid, None, halving=True))
    rows = {a.array("sketch_rows").size for a in stages.workspace.store.artifacts("folds")}
    assert len(rows) == 2
    assert min(rows) <= 4 < max(rows)
    assert len(list(stages.workspace.store.artifacts("fold-scores"))) == 4 + 2
    whole = found(stages, stages.tune(grid, None))
    best = [0, 1]
    np.testing.assert_array_equal(artifact.array("scores")[best], whole.array("scores")[best])
    assert artifact.json("search.json")["best"] == whole.json("search.json")["best"]
