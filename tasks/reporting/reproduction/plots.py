"""Items that are figures: curves, bars, pictures, convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from cppcl.report.reproduction.verdicts import Finding
from cppcl.report.tables import score_title
from cppcl.retrieval.comparison import Interval
from cppcl.retrieval.metrics import RECALL_LEVELS
from storage import Store
from tasks.lineage import Lineage
from tasks.reporting.report import result_grid
from tasks.reporting.reproduction.cells import Content, claim, score_cell
from tasks.reporting.reproduction.series import MeasuredItem, Series, known_scores
from tasks.samples import open_pictures, targets

MAP = "map"
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
    splits = {place: by_category(store, item.series[place]) for place in found}
    values = {place: mean_of(of_splits) for place, of_splits in splits.items()}
    if not values:
        return {}
    names = sorted(next(iter(values.values())))
    rows = [
        Row(
            item.series[place].title,
            [score_cell(one[name]) for name in names],
            item.series[place].artifacts,
        )
        for place, one in values.items()
    ]
    first, rivals = next(iter(values)), list(values)[1:]
    best = [n for n in names if all(values[first][n] >= values[other][n] for other in rivals)]
    claims = []
    if rivals and (said := item.options["claims"].get("ahead")):
        share = Finding(shares_ahead(splits[first], [splits[other] for other in rivals]))
        over = share.over_splits
        interval = f" [{100 * over.low:.0f}, {100 * over.high:.0f}]" if over else ""
        measured = (
            f"{item.series[first].title} is in {len(best)} of {len(names)}, not in "
            f"{listed([n for n in names if n not in best])}; over splits "
            f"{100 * share.mean:.0f} %{interval}"
        )
        claims.append(claim(said, measured, share.above(0.5), [share]))
    bars = Bars(
        names,
        {item.series[p].title: [100 * one[name] for name in names] for p, one in values.items()},
        score_title(MAP),
    )
    caption = f"{score_title(MAP)} of the queries of each category, mean over splits"
    return {
        "tables": [ResultTable(item.name, caption, names, rows)],
        "figures": [Figure(item.name, caption, bars)],
        "claims": claims,
    }


def listed(names: list[str], most: int = 8) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def by_category(store: Store, series: Series) -> list[dict[str, float]]:
    """Mean average precision of the queries of each label, in each split."""
    splits = []
    for reference in series.evaluations:
        artifact = store.open(reference)
        table = open_pictures(store, artifact.inputs["table"]).table
        labels = targets(table, "sketch", "labels", artifact.array("query_rows"))
        average: NDArray[np.float64] = artifact.array("average_precision")
        known = np.isfinite(average)
        means = {n: average[known & (labels == n)].mean() for n in np.unique(labels[known])}
        splits.append({str(label): float(mean) for label, mean in means.items()})
    return splits


def mean_of(splits: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean over the splits in which a category occurs, of each category."""
    names = sorted({name for split in splits for name in split})
    return {n: float(np.mean([split[n] for split in splits if n in split])) for n in names}


def shares_ahead(
    first: Sequence[Mapping[str, float]], rivals: Sequence[Sequence[Mapping[str, float]]]
) -> list[float]:
    """Share of the categories in which no other method is better, in each split."""
    return [
        float(np.mean([all(ours[n] >= rival[n] for rival in theirs) for n in ours]))
        for ours, *theirs in zip(first, *rivals, strict=True)
    ]


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
        series.title: [Lineage.of_evaluation(store, one).training for one in series.evaluations]
        for series in item.series
        if series.evaluations
    }
    if not models:
        return {}
    panels, rows = [], []
    for title, name in parts.items():
        curves = []
        for number, (method, (model, *_others)) in enumerate(models.items()):
            values = model.array(f"history.{name}")
            rounds = np.arange(1, len(values) + 1)
            curves.append(Curve(method, rounds.tolist(), values.tolist(), number))
            cells = [
                Value.of(name.replace("_", " ")),
                Value(float(values[0]), f"{values[0]:.4g}"),
                Value(float(values[-1]), f"{values[-1]:.4g}"),
                Value.of(len(values)),
                Value.of(stable_from(values)),
            ]
            rows.append(Row(method, cells, [str(model.reference)]))
        panels.append(Panel(title, "round", "objective", curves))
    common_curves = {
        method: [model.array(f"history.{common}") for model in trained]
        for method, trained in models.items()
    }
    columns = ["objective", "first round", "last round", "rounds", "within 1 % from round"]
    caption = "Objectives in training on the first split"
    return {
        "tables": [ResultTable(item.name, caption, columns, rows)],
        "figures": [Figure(item.name, "Objective over rounds", Plots(panels))],
        "claims": convergence_claims(item.options["claims"], common_curves),
    }


def stable_from(values: NDArray[np.floating]) -> int:
    """Round, from 1, from which on a curve stays within 1 % of its last value."""
    far = np.flatnonzero(np.abs(values - values[-1]) > 0.01 * abs(values[-1]))
    return int(far[-1]) + 2 if len(far) else 1


def convergence_claims(
    said: Mapping[str, Any], curves: Mapping[str, Sequence[NDArray[np.floating]]]
) -> list[Claim]:
    """Verdict: training is soon stable, and ends lower than that of the last method.

    Curves are of the common objective, one a split of each method.
    """
    claims = []
    if one := said.get("stable"):
        stable = {
            name: Finding([float(stable_from(c)) for c in of_splits])
            for name, of_splits in curves.items()
        }
        text = ", ".join(f"{name} {most_text(found)}" for name, found in stable.items())
        late = [found.above(one["limit"] - 0.5) for found in stable.values()]
        measured = f"common objective within 1 % of its last value from round: {text}"
        claims.append(claim(one, measured, none_is(late), stable.values()))
    if (one := said.get("lower")) and len(curves) > 1:
        *others, last = curves
        ends = {name: [float(c[-1]) for c in of_splits] for name, of_splits in curves.items()}
        shares = [
            Finding([a / b for a, b in zip(ends[name], ends[last], strict=True)])
            for name in others
        ]
        text = ", ".join(
            f"{name} {100 * share.mean:.0f} % {percent_text(share.over_splits)}"
            for name, share in zip(others, shares, strict=True)
        )
        measured = f"common objective at the end, over that of {last}: {text}"
        high = [share.above(one["limit"]) for share in shares]
        claims.append(claim(one, measured, none_is(high), shares))
    return claims


def none_is(above: Sequence[bool | None]) -> bool | None:
    """True if all are known to be below, False if one is known to be above, else None."""
    if any(above):
        return False
    return None if None in above else True


def most_text(found: Finding) -> str:
    """Mean over splits, and the largest."""
    return f"{found.mean:.0f} (most {max(found.splits):.0f})"


def percent_text(found: Interval | None) -> str:
    """An interval in per cent, of splits."""
    return f"[{100 * found.low:.0f}, {100 * found.high:.0f}]" if found else "(one split)"
