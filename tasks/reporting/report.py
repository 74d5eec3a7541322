"""Render what an experiment measured."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.modality import MODALITIES, Modality
from cppcl.pictures.decoding import read_sample
from cppcl.report import (
    LearnedFeatures,
    MethodResult,
    ProtocolResult,
    PublishedScores,
    QueryResult,
    ReportData,
    ResultGrid,
    RetrievedPicture,
    StageTime,
)
from cppcl.report import render_report as render
from cppcl.report.comparisons import choice_text
from cppcl.report.noise import AUC, SHARE
from cppcl.report.on_the_fly import mean_course
from cppcl.retrieval.exact import nearest
from cppcl.retrieval.metrics import CONVENTION
from cppcl.retrieval.on_the_fly import CONVENTION as ON_THE_FLY
from cppcl.retrieval.on_the_fly import Course, course
from storage import Artifact, Recipe, Reference, Store, Writer
from tasks.lineage import Lineage, everything_behind, first_curricula
from tasks.reporting.curricula import Reader, curriculum_results
from tasks.reporting.pacing import pacing_result
from tasks.samples import Pictures, Target, open_pictures, training_samples
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.stages.evaluate import DRAWN_SHARES, open_evaluation, open_test_set
from tasks.stages.extract import PART, one_colour_remark, zero_rows_remark
from tasks.stages.learn import CAPTION, DRAWING, remarks_on
from tasks.stages.names import STAGES
from tasks.workspace import Workspace

VERSION = "12"
LIBRARIES = ("cppcl", "numpy", "scipy", "torch", "zarr", "dask", "prefect", "scikit-image")

Scores = dict[str, dict[str, list[Reference]]]
"""Evaluations of each split, by protocol and method."""


def report_on_experiment(
    *,
    workspace: Workspace,
    table: Reference,
    scores: Scores,
    configuration: dict[str, Any],
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the report of an experiment: one page, tables and figures.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    table : Reference
        Sample table of the data set.
    scores : dict
        Evaluations of each split, by protocol and method.
    configuration : dict
        The experiment as plain data.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored report.
    """
    store = workspace.store
    inputs = {"table": table} | {
        f"{protocol}.{method}.{number}": reference
        for protocol, methods in scores.items()
        for method, references in methods.items()
        for number, reference in enumerate(references)
    }
    # Inputs are kept by name; the first method is the one that others are compared with.
    order = {protocol: list(methods) for protocol, methods in scores.items()}
    parameters = {"configuration": configuration, "methods": order}
    recipe = Recipe("report", VERSION, parameters, inputs)

    def create(writer: Writer) -> None:
        files = render(gather(store, table, scores, configuration))
        for name, data in files.items():
            writer.put_bytes(name, data)

    return produce(store, recipe, create, mode=mode, label="page, tables, figures")


render_report = stage_task(report_on_experiment)


def gather(
    store: Store, table: Reference, scores: Scores, configuration: dict[str, Any]
) -> ReportData:
    """Collect everything that a report shows."""
    pictures = open_pictures(store, table)
    evaluations = [r for methods in scores.values() for refs in methods.values() for r in refs]
    used = list(everything_behind(store, evaluations))
    return ReportData(
        experiment=configuration["name"],
        configuration=configuration,
        protocols=[
            protocol_result(store, name, methods, pictures, configuration)
            for name, methods in scores.items()
        ],
        stages=stage_times(used),
        licences=pictures.licence.splitlines(),
        findings=[*pictures.findings, *one_colour(used), *zero_rows(used)],
        learned=learned_features(store, scores),
        skipped=skipped_pictures(used),
        versions={"python": platform.python_version(), **{n: version(n) for n in LIBRARIES}},
        created=max(artifact.run["started"] for artifact in used),
        convention=convention_of(store, evaluations),
    )


def convention_of(store: Store, evaluations: list[Reference]) -> str:
    """How all scores are computed, those of drawings included where there are any."""
    found = [store.open(reference) for reference in evaluations]
    return CONVENTION + (ON_THE_FLY if any(DRAWN_SHARES in a.names for a in found) else "")


def protocol_result(
    store: Store,
    name: str,
    methods: dict[str, list[Reference]],
    pictures: Pictures,
    configuration: dict[str, Any],
) -> ProtocolResult:
    """What was measured under one protocol, with training curves and pictures."""
    result = protocol_scores(store, name, methods, configuration["protocols"][name])
    served = next(iter(methods))
    chosen = configuration.get("chosen", {}).get(name)
    target = store.open(methods[served][0]).parameters["target"]

    def reader(modality: Modality) -> Reader:
        return picture_reader(pictures, modality, target, configuration["longest_side"])

    curricula = first_curricula(store, [first for first, *_ in methods.values()])
    return replace(
        result,
        methods={
            method: replace(
                scores,
                history=history_of(store, methods[method][0]),
                training=training_of(store, methods[method]),
            )
            for method, scores in result.methods.items()
        },
        grid=result_grid(store, served, methods[served][0], pictures, configuration),
        curricula=[] if curricula is None else curriculum_results(store, curricula, reader),
        pacing=pacing_result(store, methods, reader),
        choice=choice_text(chosen) if chosen else "",
    )


def protocol_scores(
    store: Store, name: str, methods: dict[str, list[Reference]], options: dict[str, Any]
) -> ProtocolResult:
    """Scores under one protocol, of each method, split and query.

    Parameters
    ----------
    store : Store
        Where evaluations are.
    name : str
        Name of the protocol.
    methods : dict
        Evaluations of each split, by method.
    options : dict
        The protocol as plain data.
    """
    results: dict[str, MethodResult] = {}
    chance: dict[str, float] = {}
    for method, references in methods.items():
        evaluations = [open_evaluation(store, reference) for reference in references]
        queries = [store.open(reference).array("query_rows") for reference in references]
        results[method] = replace(
            MethodResult.from_evaluations(evaluations, queries=queries),
            course=course_of(store, references),
        )
        chance |= {
            score: float(np.mean([e.chance[score] for e in evaluations]))
            for score in evaluations[0].chance
        }
    split, published = options["split"], options["published"]
    by_instance = split["rule"] == "instance" or split.get("target") == "groups"
    kinds = ("wrong_pairs", "near_pairs") if by_instance else ("wrong_labels",)
    noise = split.get("noise", {})
    return ProtocolResult(
        name=name,
        description=options["description"],
        chance=chance,
        methods=results,
        main_score="rank_1" if by_instance else "map",
        published=PublishedScores(**published) if published else None,
        noise={kind: noise[kind] for kind in kinds if noise.get(kind)},
    )


def course_of(store: Store, evaluations: list[Reference]) -> Course | None:
    """Scores over the course of drawing, means over splits; None where all was drawn."""
    courses = []
    for reference in evaluations:
        artifact = store.open(reference)
        if DRAWN_SHARES not in artifact.names:
            return None
        found = open_evaluation(store, reference)
        ranks = artifact.parameters["ranks"]
        shares = artifact.array(DRAWN_SHARES)
        courses.append(course(found.first_relevant_rank, shares, found.n_gallery, ranks))
    return mean_course(courses)


def training_of(store: Store, evaluations: list[Reference]) -> dict[str, float]:
    """Seconds of training and largest deviation of pacing variables, means over splits."""
    models = [Lineage.of_evaluation(store, evaluation).training for evaluation in evaluations]
    found = {"seconds": float(np.mean([model.run["seconds"] for model in models]))}
    for modality in MODALITIES:
        name = f"history.{modality}_sd_v"
        if all(name in model.names for model in models):
            largest = [float(model.array(name).max()) for model in models]
            found[f"sd of v, {modality}"] = float(np.mean(largest))
    if all("model.right_share" in model.names for model in models):
        found[SHARE] = float(np.mean([model.array("model.right_share")[0] for model in models]))
    areas = [told_apart(store, evaluation) for evaluation in evaluations]
    if areas and not any(area is None for area in areas):
        found[AUC] = float(np.mean([area for area in areas if area is not None]))
    return found


def told_apart(store: Store, evaluation: Reference) -> float | None:
    """Area under the curve by which pacing variables tell wrong training samples from right ones.

    None where nothing is wrong, or the method does not pace.
    """
    lineage = Lineage.of_evaluation(store, evaluation)
    model = lineage.training
    names = [f"model.{modality}_pacing" for modality in MODALITIES]
    if not set(names) <= set(model.names) or model.parameters.get("only_right"):
        return None
    target: Any = model.parameters["target"]
    samples = training_samples(
        store,
        table=lineage.table,
        split=lineage.split,
        features=lineage.features,
        target=target,
    )
    right = np.concatenate([of_modality.right for of_modality in samples])
    v = np.concatenate([model.array(name) for name in names])
    if target == "groups":
        # Of a wrong pair both samples are.
        lost = np.concatenate([s.labels[~s.right] for s in samples])
        right &= ~np.isin(np.concatenate([s.labels for s in samples]), lost)
    n_right, n_wrong = int(right.sum()), int((~right).sum())
    if not n_right or not n_wrong or np.ptp(v) == 0:
        return None
    from scipy.stats import rankdata

    ranks = rankdata(v)
    area = (ranks[right].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong)
    return float(area)


def history_of(store: Store, evaluation: Reference) -> dict[str, NDArray[Any]]:
    """Training curves behind an evaluation, as ``panel`` or ``panel/curve``."""
    model = Lineage.of_evaluation(store, evaluation).training
    curves = {}
    for name in model.names:
        kind, _, curve = name.partition(".")
        if kind == "history":
            modality, _, panel = curve.partition("_")
            label = f"{panel}/{modality}" if modality in MODALITIES else curve
            curves[label.replace("_", " ")] = model.array(name)
    return curves


def result_grid(
    store: Store,
    method: str,
    evaluation: Reference,
    pictures: Pictures,
    configuration: dict[str, Any],
) -> ResultGrid | None:
    """Some test sketches with their nearest pictures; None where samples are no pictures."""
    options = configuration["report"]
    scored = store.open(evaluation)
    inputs = scored.inputs
    target = scored.parameters["target"]
    test = open_test_set(store, inputs["codes"], inputs["split"], inputs["table"], target)
    generator = np.random.default_rng(options["seed"])
    count = min(options["queries"], len(test.query_rows))
    chosen = np.sort(generator.choice(len(test.query_rows), count, replace=False))
    found, similarity = nearest(
        test.query_codes[chosen],
        test.gallery_codes,
        options["nearest"],
        metric=scored.parameters["metric"],
    )
    sketches = picture_reader(pictures, "sketch", target, configuration["longest_side"])
    images = picture_reader(pictures, "image", target, configuration["longest_side"])
    queries = []
    for query, row, values in zip(chosen, found, similarity, strict=True):
        picture, label = sketches(test.query_rows[query])
        if picture.ndim != 3:
            return None
        answers = []
        for item, value in zip(row, values, strict=True):
            shown, shown_label = images(test.gallery_rows[item])
            right = test.gallery_labels[item] == test.query_labels[query]
            answers.append(RetrievedPicture(shown, shown_label, bool(right), float(value)))
        queries.append(QueryResult(picture, label, answers))
    return ResultGrid(method, 0, queries) if queries else None


def picture_reader(
    pictures: Pictures, modality: Modality, target: Target, longest_side: int
) -> Callable[[int], tuple[NDArray[Any], str]]:
    """Function from a row of a modality to its picture and what a person calls it.

    That is its title, or else what must agree: label or group.
    """
    table = pictures.table
    rows = table.rows(modality)
    names = getattr(table, target)

    def read(row: int) -> tuple[NDArray[Any], str]:
        at = rows[row]
        sample = read_sample(pictures.root, table.paths[at], longest_side=longest_side)
        return sample, table.title(at) if table.titles else names[at]

    return read


def learned_features(store: Store, scores: Scores) -> list[LearnedFeatures]:
    """What extractors learned, in the order of the protocols and splits that describe by it."""
    used_in: dict[Reference, list[str]] = {}
    for protocol, methods in scores.items():
        for number, evaluations in enumerate(zip(*methods.values(), strict=True)):
            behind = everything_behind(store, evaluations)
            learned = [a.reference for a in behind if a.reference.stage == "learn"]
            for reference in sorted(learned, key=str):
                used_in.setdefault(reference, []).append(f"{protocol}, split {number + 1}")
    found = []
    for reference, places in used_in.items():
        artifact = store.open(reference)
        drawn = DRAWING in artifact.names
        found.append(
            LearnedFeatures(
                artifact=str(reference),
                extractor=artifact.parameters["extractor"],
                n_pictures=artifact.parameters["n_pictures"],
                used_in=places,
                remarks=remarks_on(artifact),
                picture=artifact.bytes(DRAWING) if drawn else None,
                caption=artifact.text(CAPTION) if drawn else "",
            )
        )
    return found


def one_colour(used: list[Artifact]) -> list[str]:
    """Remarks on pictures in which nothing can be seen."""
    extracted = [artifact for artifact in used if artifact.reference.stage == "extract"]
    return sorted({remark for a in extracted if (remark := one_colour_remark(a))})


def zero_rows(used: list[Artifact]) -> list[str]:
    """Remarks on pictures whose features are all zero, where no other part of them is not."""
    extracted = [artifact for artifact in used if artifact.reference.stage == "extract"]
    inputs = [pair for artifact in extracted for pair in artifact.inputs.items()]
    parts = {reference for role, reference in inputs if role.startswith(PART)}
    remarks = (zero_rows_remark(a) for a in extracted if a.reference not in parts)
    return sorted({remark for remark in remarks if remark})


def stage_times(used: list[Artifact]) -> list[StageTime]:
    """Seconds that each stage took when its artifacts were made."""
    seconds = dict.fromkeys(STAGES, 0.0)
    for artifact in used:
        if artifact.reference.stage in seconds:  # not one that is part of a stage
            seconds[artifact.reference.stage] += artifact.run["seconds"]
    return [StageTime(stage, value, False) for stage, value in seconds.items() if value]


def skipped_pictures(used: list[Artifact]) -> list[tuple[str, str]]:
    """Path and reason of every picture that could not be used."""
    skipped: dict[str, str] = {}
    for artifact in used:
        if artifact.reference.stage == "extract":
            skipped.update(artifact.json("failures.json"))
    return sorted(skipped.items())
