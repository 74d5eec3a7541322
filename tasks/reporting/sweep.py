"""Render a score of every method over the values of options."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cppcl.errors import InputError
from cppcl.report.sweep import Axis, SweepData, SweepScores
from cppcl.report.sweep import render_sweep as render
from storage import Recipe, Reference, Store, Writer
from tasks.reporting.report import Scores
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workspace import Workspace

VERSION = "2"


def sweep_of_experiment(
    *,
    workspace: Workspace,
    experiment: str,
    axes: Sequence[Axis],
    score: str,
    scores: Mapping[int, Scores],
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the table and the plot of a sweep.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    experiment : str
        Name of the sweep.
    axes : sequence of Axis
        One or two options and their values.
    score : str
        Key of the score that is shown, such as ``rank_1``.
    scores : dict
        Evaluations of each split, by protocol and method, of every combination that was run.
        Combinations are numbered from 0, the last option fastest.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored artifact.
    """
    store = workspace.store
    recipe = Recipe(
        "sweep",
        VERSION,
        {
            "experiment": experiment,
            "score": score,
            "axes": [{"option": axis.option, "values": axis.values} for axis in axes],
            # Inputs are kept by name; lines of the table are in this order.
            "methods": [
                [number, protocol, list(methods)]
                for number, protocols in scores.items()
                for protocol, methods in protocols.items()
            ],
        },
        {
            f"{number}.{protocol}.{method}.{split}": reference
            for number, protocols in scores.items()
            for protocol, methods in protocols.items()
            for method, references in methods.items()
            for split, reference in enumerate(references)
        },
    )

    def create(writer: Writer) -> None:
        rows = list(swept_scores(store, axes, score, scores))
        for name, data in render(SweepData(experiment, score, axes, rows)).items():
            writer.put_bytes(name, data)

    return produce(store, recipe, create, mode=mode, label="table, plot")


render_sweep = stage_task(sweep_of_experiment)


def swept_scores(
    store: Store, axes: Sequence[Axis], score: str, scores: Mapping[int, Scores]
) -> Iterator[SweepScores]:
    """One row a combination, protocol and method.

    Raises
    ------
    InputError
        If an evaluation has no such score; the message lists those it has.
    """
    combinations = list(itertools.product(*(axis.values for axis in axes)))
    for number, protocols in scores.items():
        for protocol, methods in protocols.items():
            for method, references in methods.items():
                documents = [store.open(r).json("scores.json") for r in references]
                for document in documents:
                    if score not in document["scores"]:
                        raise InputError(
                            f"score={score!r} is not known of {method!r} under {protocol!r}; "
                            f"there is {', '.join(document['scores'])}"
                        )
                yield SweepScores(
                    values=combinations[number],
                    protocol=protocol,
                    method=method,
                    scores=tuple(document["scores"][score] for document in documents),
                    chance=float(np.mean([document["chance"][score] for document in documents])),
                )


def evaluations_behind(
    store: Store, report: Reference, methods: Mapping[str, Sequence[str]]
) -> Scores:
    """Evaluations that a report shows, of each split, by protocol and method.

    Parameters
    ----------
    store : Store
        Where the report is.
    report : Reference
        A `report` artifact.
    methods : dict
        Names of the methods of each protocol, in the order that is wanted.
    """
    inputs = store.open(report).inputs
    found: Scores = {}
    for protocol, names in methods.items():
        for method in names:
            numbered = (f"{protocol}.{method}.{number}" for number in itertools.count())
            here = itertools.takewhile(inputs.__contains__, numbered)
            found.setdefault(protocol, {})[method] = [inputs[name] for name in here]
    return found
