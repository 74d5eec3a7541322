"""Items that are figures: curves, bars, pictures, convergence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cppcl.report.reproduction.data import (
    Bars,
    Cell,
    Claim,
    Curve,
    Figure,
    Panel,
    Plots,
    Row,
    Table,
)
from cppcl.retrieval.metrics import RECALL_LEVELS
from storage import Store
from tasks.reporting.report import result_grid
from tasks.reporting.reproduction_series import Measured, Series, model_of
from tasks.reporting.reproduction_tables import Shown, known
from tasks.stages.build_curricula import targets
from tasks.stages.fetch import open_pictures

ELEVEN = RECALL_LEVELS[::10]


def precision_recall(store: Store, item: Measured) -> Shown:
    """Precision over recall at eleven and at all levels."""
    found = known(store, item)
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
            [Cell(float(value), f"{value:.3f}") for value in curve[::10]],
            item.series[place].artifacts,
        )
        for place, curve in curves.items()
    ]
    caption = "Interpolated precision at eleven levels of recall, averaged over queries and splits"
    return {
        "tables": [Table(item.name, caption, [f"{level:g}" for level in ELEVEN], rows)],
        "figures": [Figure(item.name, "Precision over recall", Plots(panels))],
    }


def per_category(store: Store, item: Measured) -> Shown:
    """Mean average precision of each category."""
    found = known(store, item)
    values = {place: by_category(store, item.series[place]) for place in found}
    if not values:
        return {}
    names = sorted(next(iter(values.values())))
    rows = [
        Row(
            item.series[place].title,
            [Cell(one[name], f"{one[name]:.3f}") for name in names],
            item.series[place].artifacts,
        )
        for place, one in values.items()
    ]
    first, rivals = next(iter(values)), list(values)[1:]
    best = [n for n in names if all(values[first][n] >= values[other][n] for other in rivals)]
    claims = (
        [
            Claim(
                "The method is ahead of all others in most categories",
                f"{item.series[first].title} is in {len(best)} of {len(names)}"
                + (f"; not in {listed([n for n in names if n not in best])}" if rivals else ""),
                len(best) > len(names) / 2,
            )
        ]
        if rivals
        else []
    )
    bars = Bars(
        names,
        {item.series[p].title: [one[name] for name in names] for p, one in values.items()},
        "mAP",
    )
    caption = "mAP of the queries of each category, mean over splits"
    return {
        "tables": [Table(item.name, caption, names, rows)],
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


def grid(store: Store, item: Measured) -> Shown:
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
                Cell.of(
                    ", ".join(f.label + ("" if f.correct else " (false)") for f in query.nearest)
                ),
                Cell.of(sum(f.correct for f in query.nearest)),
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
        "tables": [Table(item.name, caption, ["nearest", "right"], rows, first="query")],
        "figures": [Figure(item.name, caption, shown)],
    }


def convergence(store: Store, item: Measured) -> Shown:
    """Objective over rounds: each on its own, and a common one."""
    parts = {
        "its own objective, at its gamma": "objective",
        "common: reconstruction, every sample fully": "reconstruction_objective",
    }
    panels, rows, ends, settled = [], [], {}, {}
    for title, name in parts.items():
        curves = []
        for place, series in enumerate(item.series):
            if not series.evaluations:
                continue
            model = model_of(store, series.evaluations[0])
            values = model.array(f"history.{name}")
            rounds = np.arange(1, len(values) + 1)
            curves.append(Curve(series.title, rounds.tolist(), values.tolist(), place))
            # The round from which on it stays within 1 % of its last value.
            far = np.flatnonzero(np.abs(values - values[-1]) > 0.01 * abs(values[-1]))
            calm = int(far[-1]) + 2 if len(far) else 1
            cells = [
                Cell.of(name.replace("_", " ")),
                Cell(float(values[0]), f"{values[0]:.4g}"),
                Cell(float(values[-1]), f"{values[-1]:.4g}"),
                Cell.of(len(values)),
                Cell.of(calm),
            ]
            rows.append(Row(series.title, cells, [str(model.reference)]))
            if name == "reconstruction_objective":
                ends[series.title], settled[series.title] = float(values[-1]), calm
        panels.append(Panel(title, "round", "objective", curves))
    if not ends:
        return {}
    *paced, plain = ends
    lower = [name for name in paced if ends[name] < ends[plain]]
    settled_text = ", ".join(f"{name} {rounds}" for name, rounds in settled.items())
    claims = [
        Claim(
            "All settings are stable within less than 40 iterations",
            f"common objective within 1 % of its last value from round: {settled_text}",
            max(settled.values()) < 40,
        ),
        Claim(
            f"Pacing ends in much lower minima than {plain}",
            "common objective at the end: "
            + ", ".join(f"{name} {value:.4g}" for name, value in ends.items()),
            len(lower) == len(paced) and max(ends[n] for n in paced) < 0.9 * ends[plain],
            (20,),
        ),
    ]
    columns = ["objective", "first round", "last round", "rounds", "within 1 % from round"]
    caption = "Objectives in training on the first split"
    return {
        "tables": [Table(item.name, caption, columns, rows)],
        "figures": [Figure(item.name, "Objective over rounds", Plots(panels))],
        "claims": claims,
    }
