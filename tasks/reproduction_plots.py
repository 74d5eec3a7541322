"""Items that are figures: curves, bars, pictures, sweeps, convergence, surfaces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.metrics import RECALL_LEVELS
from cppcl.report.reproduction import (
    Bars,
    Cell,
    Claim,
    Curve,
    Figure,
    Panel,
    Plots,
    Row,
    Surface,
    Table,
)
from cppcl.report.sweep import Axis, value_text
from cppcl.report.tables import score_title
from storage import Store
from tasks.build_curricula import targets
from tasks.fetch import open_pictures
from tasks.render_report import result_grid
from tasks.reproduction_series import Measured, Scores, Series, model_of
from tasks.reproduction_tables import Shown, interval_cell, known, number, points

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


def sensitivity(store: Store, item: Measured) -> Shown:
    """A score over the values of options, one at a time."""
    score, found = item.options["score"], known(store, item)
    panels, tables, claims = [], [], []
    for axis in item.options["axes"]:
        places = [p for p, s in enumerate(item.series) if s.about["option"] == axis["option"]]
        rows = [sweep_row(store, score, item.series[p], found.get(p)) for p in places]
        columns = ["value", "ours", "±", "95 % interval", "splits"]
        if axis["seconds"]:
            columns.append("ms a picture")
        name = f"{item.name}_{axis['option'].rpartition('.')[2]}"
        caption = f"{score_title(score)} over {axis['title']}"
        tables.append(Table(name, caption, columns, rows))
        panels.append(sweep_panel(score, item, axis, places, found))
        if axis["expected"]:
            claims += sweep_claims(score, item, axis, places, found)
    figures = [Figure(item.name, f"{score_title(score)} over one option at a time", Plots(panels))]
    return {"tables": tables, "figures": figures, "claims": claims}


def sweep_row(store: Store, score: str, series: Series, found: Scores | None) -> Row:
    """One value of one option."""
    timed = series.about["seconds"]
    value = Cell.of(value_text(series.about["value"]))
    if found is None:
        n = 5 if timed else 4
        return Row(series.title, [value, *[Cell(None, "–")] * n], (), (), series.missing)
    ours = found.interval(score)
    zero, n = found.empty()
    cells = [
        value,
        number(score, ours.mean),
        number(score, found.deviation(score)),
        interval_cell(score, ours.low, ours.high),
        Cell.of(len(found.evaluations)),
    ]
    keys = series.artifacts
    if timed:
        curricula = store.open(model_of(store, series.evaluations[0]).inputs["curricula"])
        made = store.open(curricula.inputs[f"{timed}_scores"])
        pictures = made.shape("ok")[0] - made.run["notes"]["copied_rows"]
        seconds = made.run["notes"]["worker_seconds"] / pictures if pictures else None
        cells.append(Cell(seconds, "–" if seconds is None else f"{1000 * seconds:.2f}"))
        keys = [*keys, str(made.reference)]
    note = f"{zero} of {n} codes are empty." if zero else ""
    return Row(series.title, cells, keys, series.about["errata"] if zero else (), note)


def sweep_panel(
    score: str, item: Measured, axis: dict[str, Any], places: list[int], found: dict[int, Scores]
) -> Panel:
    """The same as curves, one a method."""
    methods = list(dict.fromkeys(item.series[place].title for place in places))
    curves = []
    for number_, method in enumerate(methods):
        here = [p for p in places if item.series[p].title == method and p in found]
        deviations = [found[p].deviation(score) for p in here]
        curves.append(
            Curve(
                method,
                [float(item.series[p].about["value"]) for p in here],
                [found[p].interval(score).mean for p in here],
                number_,
                [d or 0.0 for d in deviations] if any(deviations) else None,
            )
        )
    spread = Axis(
        axis["option"], tuple(item.series[p].about["value"] for p in places[:: len(methods)])
    )
    chance = next((found[p].chance(score) for p in places if p in found), None)
    return Panel(
        axis["title"],
        axis["title"],
        score_title(score),
        curves,
        logarithmic=spread.logarithmic,
        y_from_zero=True,
        level=None if chance is None else ("chance", chance),
    )


FLAT = 0.1
"""Share of the best score that may be lost over the values of an option that does not matter."""


def sweep_claims(
    score: str, item: Measured, axis: dict[str, Any], places: list[int], found: dict[int, Scores]
) -> list[Claim]:
    """Whether a score changes as much, or as little, as is said."""
    claims = []
    for method in dict.fromkeys(item.series[place].title for place in places):
        here = [p for p in places if item.series[p].title == method and p in found]
        if len(here) < 2:
            continue
        means = {p: found[p].interval(score).mean for p in here}
        best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
        lost = 1 - means[worst] / means[best]
        difference = found[best].minus(found[worst], score)
        values = {p: value_text(item.series[p].about["value"]) for p in (best, worst)}
        flat = lost <= FLAT
        claims.append(
            Claim(
                axis["statement"],
                f"{method}: from {number(score, means[worst]).text} at {values[worst]} to "
                f"{number(score, means[best]).text} at {values[best]}, "
                f"{points(score, difference.mean, difference.low, difference.high)}; "
                f"{100 * lost:.0f} % of the best is lost ({100 * FLAT:.0f} % or less is flat)",
                flat if axis["expected"] == "flat" else not flat,
                axis["errata"],
            )
        )
    return claims


def surface(store: Store, item: Measured) -> Shown:
    """A score over the values of two options, and whether curricula help."""
    score, found = item.options["score"], known(store, item)
    x, y = item.options["x"], item.options["y"]
    place_of = {
        (series.about["x"], series.about["y"]): place for place, series in enumerate(item.series)
    }
    means = {place: scores.interval(score).mean for place, scores in found.items()}
    if not means:
        return {}
    values = [[means.get(place_of[a, b], float("nan")) for a in x["chosen"]] for b in y["chosen"]]
    rows = []
    for (a, b), place in place_of.items():
        series = item.series[place]
        if place in found:
            ours = found[place].interval(score)
            cells = [
                Cell.of(a),
                Cell.of(b),
                number(score, ours.mean),
                number(score, found[place].deviation(score)),
                interval_cell(score, ours.low, ours.high),
            ]
        else:
            cells = [Cell.of(a), Cell.of(b), *[Cell(None, "–")] * 3]
        rows.append(Row(series.title, cells, series.artifacts, (), series.missing))
    claims = []
    none = place_of.get((0, 0), place_of.get((0.0, 0.0)))
    if none in found and len(found) > 1:
        best = max(means, key=means.__getitem__)
        gain = found[best].minus(found[none], score)
        at = item.series[best].about
        claims.append(
            Claim(
                "Curricula of both modalities help, and an excess of constraints slightly less",
                f"best at {x['title']} {at['x']:g}, {y['title']} {at['y']:g}: "
                f"{points(score, gain.mean, gain.low, gain.high)} over none, the largest of "
                f"{len(found)} places on the same test queries",
                {"ahead": True, "level": None, "behind": False}[gain.verdict],
                (22, 23),
            )
        )
    columns = [x["title"], y["title"], "ours", "±", "95 % interval"]
    caption = f"{score_title(score)} over shares of admissible pairs; 0 is no curriculum"
    drawn = Surface(x["title"], y["title"], x["chosen"], y["chosen"], values, score_title(score))
    return {
        "tables": [Table(item.name, caption, columns, rows, first="place")],
        "figures": [Figure(item.name, caption, drawn)],
        "claims": claims,
    }
