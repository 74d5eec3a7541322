"""Items that are figures: curves, bars, pictures, convergence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.report.reproduction.data import (
    Bars,
    Claim,
    Curve,
    Figure,
    Panel,
    Plots,
    ResultTable,
    Row,
    Value,
)
from cppcl.retrieval.metrics import RECALL_LEVELS
from storage import Store
from tasks.lineage import Lineage
from tasks.reporting.report import result_grid
from tasks.reporting.reproduction.cells import Content
from tasks.reporting.reproduction.series import MeasuredItem, Series, known_scores
from tasks.samples import open_pictures, targets

ELEVEN = RECALL_LEVELS[::10]


def precision_recall(store: Store, item: MeasuredItem) -> Content:
    """Precision over recall at eleven and at all levels."""
    found = known_scores(store, item)
    curves = {
        place: np.mean([e.precision_recall for e in scores.evaluations], axis=0)
        for place, scores in found.items()
    }
    if not curves:
        return {}
    panels = [
        Panel(
            title,
            "recall",
            "precision",
            [
                Curve(item.series[place].title, levels.tolist(), curve[::step].tolist(), place)
                for place, curve in curves.items()
            ],
            y_from_zero=True,
        )
        for title, levels, step in (
            ("eleven levels", ELEVEN, 10),
            ("all 101 levels", RECALL_LEVELS, 1),
        )
    ]
    rows = [
        Row(
            item.series[place].title,
            [Value(float(value), f"{value:.3f}") for value in curve[::10]],
            item.series[place].artifacts,
        )
        for place, curve in curves.items()
    ]
    caption = "Interpolated precision at eleven levels of recall, averaged over queries and splits"
    return {
        "tables": [ResultTable(item.name, caption, [f"{level:g}" for level in ELEVEN], rows)],
        "figures": [Figure(item.name, "Precision over recall", Plots(panels))],
    }


def per_category(store: Store, item: MeasuredItem) -> Content:
    """Mean average precision of each category."""
    found = known_scores(store, item)
    values = {place: by_category(store, item.series[place]) for place in found}
    if not values:
        return {}
    names = sorted(next(iter(values.values())))
    rows = [
        Row(
            item.series[place].title,
            [Value(one[name], f"{one[name]:.3f}") for name in names],
            item.series[place].artifacts,
        )
        for place, one in values.items()
    ]
    first, rivals = next(iter(values)), list(values)[1:]
    best = [n for n in names if all(values[first][n] >= values[other][n] for other in rivals)]
    claims = []
    if rivals and (said := item.options["claims"].get("ahead")):
        claims.append(
            Claim(
                said["text"],
                f"{item.series[first].title} is in {len(best)} of {len(names)}; "
                f"not in {listed([n for n in names if n not in best])}",
                len(best) > len(names) / 2,
                said["errata"],
            )
        )
    bars = Bars(
        names,
        {item.series[p].title: [one[name] for name in names] for p, one in values.items()},
        "mAP",
    )
    caption = "mAP of the queries of each category, mean over splits"
    return {
        "tables": [ResultTable(item.name, caption, names, rows)],
        "figures": [Figure(item.name, caption, bars)],
        "claims": claims,
    }


def listed(names: list[str], most: int = 8) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def by_category(store: Store, series: Series) -> dict[str, float]:
    """Mean over splits of the mean average precision of the queries of each label."""
    sums: dict[str, list[float]] = {}
    for reference in series.evaluations:
        artifact = store.open(reference)
        table = open_pictures(store, artifact.inputs["table"]).table
        labels = targets(table, "sketch", "labels", artifact.array("query_rows"))
        average: NDArray[np.float64] = artifact.array("average_precision")
        for label in np.unique(labels):
            here = average[labels == label]
            if np.isfinite(here).any():
                sums.setdefault(str(label), []).append(float(np.nanmean(here)))
    return {label: float(np.mean(found)) for label, found in sums.items()}


def grid(store: Store, item: MeasuredItem) -> Content:
    """Queries with their nearest pictures; false positives have a dashed red frame."""
    series = item.series[0]
    if not series.evaluations:
        return {}
    evaluation = series.evaluations[0]
    pictures = open_pictures(store, store.open(evaluation).inputs["table"])
    shown = result_grid(store, series.title, evaluation, pictures, item.options["configuration"])
    if shown is None:
        return {"notes": ["samples are no pictures"]}
    right = [found.correct for query in shown.queries for found in query.nearest]
    n = len(shown.queries[0].nearest)
    rows = [
        Row(
            f"{number} {query.label}",
            [
                Value.of(
                    ", ".join(f.label + ("" if f.correct else " (false)") for f in query.nearest)
                ),
                Value.of(sum(f.correct for f in query.nearest)),
            ],
            series.artifacts[:1],
        )
        for number, query in enumerate(shown.queries, start=1)
    ]
    caption = (
        f"{series.title}: {len(shown.queries)} query sketches of the first split, drawn by a "
        f"seed, and their {n} nearest pictures; {sum(right)} of {len(right)} are right, false "
        "positives have a dashed red frame"
    )
    return {
        "tables": [ResultTable(item.name, caption, ["nearest", "right"], rows, first="query")],
        "figures": [Figure(item.name, caption, shown)],
    }


def convergence(store: Store, item: MeasuredItem) -> Content:
    """Objective over rounds: each on its own, and a common one."""
    common = "reconstruction_objective"
    parts = {
        "its own objective, at its gamma": "objective",
        "common: reconstruction, every sample fully": common,
    }
    models = {
        place: Lineage.of_evaluation(store, series.evaluations[0]).training
        for place, series in enumerate(item.series)
        if series.evaluations
    }
    if not models:
        return {}
    panels, rows = [], []
    ends: dict[str, float] = {}
    stable: dict[str, int] = {}
    for title, name in parts.items():
        curves = []
        for place, model in models.items():
            series = item.series[place]
            values = model.array(f"history.{name}")
            rounds = np.arange(1, len(values) + 1)
            curves.append(Curve(series.title, rounds.tolist(), values.tolist(), place))
            cells = [
                Value.of(name.replace("_", " ")),
                Value(float(values[0]), f"{values[0]:.4g}"),
                Value(float(values[-1]), f"{values[-1]:.4g}"),
                Value.of(len(values)),
                Value.of(stable_from(values)),
            ]
            rows.append(Row(series.title, cells, [str(model.reference)]))
            if name == common:
                ends[series.title] = float(values[-1])
                stable[series.title] = stable_from(values)
        panels.append(Panel(title, "round", "objective", curves))
    columns = ["objective", "first round", "last round", "rounds", "within 1 % from round"]
    caption = "Objectives in training on the first split"
    return {
        "tables": [ResultTable(item.name, caption, columns, rows)],
        "figures": [Figure(item.name, "Objective over rounds", Plots(panels))],
        "claims": convergence_claims(item.options["claims"], ends, stable),
    }


def stable_from(values: NDArray[np.floating]) -> int:
    """Round, from 1, from which on a curve stays within 1 % of its last value."""
    far = np.flatnonzero(np.abs(values - values[-1]) > 0.01 * abs(values[-1]))
    return int(far[-1]) + 2 if len(far) else 1


def convergence_claims(
    said: Mapping[str, Any], ends: Mapping[str, float], stable: Mapping[str, int]
) -> list[Claim]:
    """Verdict: training is soon stable, and ends lower than that of the last method."""
    claims = []
    if claim := said.get("stable"):
        text = ", ".join(f"{name} {rounds}" for name, rounds in stable.items())
        claims.append(
            Claim(
                claim["text"],
                f"common objective within 1 % of its last value from round: {text}",
                max(stable.values()) < claim["limit"],
                claim["errata"],
            )
        )
    if (claim := said.get("lower")) and len(ends) > 1:
        *others, last = ends.values()
        text = ", ".join(f"{name} {value:.4g}" for name, value in ends.items())
        lower = all(value < min(last, claim["limit"] * last) for value in others)
        claims.append(
            Claim(claim["text"], f"common objective at the end: {text}", lower, claim["errata"])
        )
    return claims
