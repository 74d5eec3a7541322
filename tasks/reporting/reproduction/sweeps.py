"""Items that are sweeps: a score over the values of one option, or of two."""

from __future__ import annotations

from typing import Any

from cppcl.report.reproduction.data import (
    Claim,
    Curve,
    Figure,
    Panel,
    Plots,
    ResultTable,
    Row,
    Surface,
    Value,
)
from cppcl.report.sweep import Axis, value_text
from cppcl.report.tables import score_title
from storage import Store
from tasks.lineage import Lineage, by_modality
from tasks.reporting.reproduction.cells import (
    HOLDS,
    INTERVAL,
    NOTHING,
    Content,
    mean_cells,
    score_cell,
    with_interval,
)
from tasks.reporting.reproduction.series import MeasuredItem, Scores, Series, known_scores
from tasks.reporting.reproduction.tables import extracted_pictures

FLAT = 0.1
"""Share of the best score that may be lost over the values of an option that does not matter."""


def sensitivity(store: Store, item: MeasuredItem) -> Content:
    """A score over the values of options, one at a time."""
    score, found = item.options["score"], known_scores(store, item)
    panels, tables, claims = [], [], []
    for axis in item.options["axes"]:
        places = [p for p, s in enumerate(item.series) if s.about["option"] == axis["option"]]
        rows = [sweep_row(store, score, item.series[p], found.get(p)) for p in places]
        columns = ["value", "ours", "±", INTERVAL, "splits"]
        if axis["seconds"]:
            columns.append("ms a picture")
        name = f"{item.name}_{axis['option'].rpartition('.')[2]}"
        caption = f"{score_title(score)} over {axis['title']}"
        tables.append(ResultTable(name, caption, columns, rows))
        panels.append(sweep_panel(score, item, axis, places, found))
        if axis["expected"]:
            claims += sweep_claims(score, item, axis, places, found)
    figures = [Figure(item.name, f"{score_title(score)} over one option at a time", Plots(panels))]
    return {"tables": tables, "figures": figures, "claims": claims}


def sweep_row(store: Store, score: str, series: Series, found: Scores | None) -> Row:
    """One value of one option."""
    timed = series.about["seconds"]
    n_splits = NOTHING if found is None else Value.of(len(found.evaluations))
    cells = [Value.of(value_text(series.about["value"])), *mean_cells(score, found), n_splits]
    keys, note = series.artifacts, series.missing
    if timed:
        cells.append(NOTHING)
    if found is not None:
        note = found.empty_codes()
        curricula = Lineage.of_evaluation(store, series.evaluations[0]).curricula
        if timed and curricula:
            made = store.open(by_modality(store.open(curricula), "scores")[timed])
            n, together = extracted_pictures(made)
            if n:
                cells[-1] = Value(together / n, f"{1000 * together / n:.2f}")
            keys = [*keys, str(made.reference)]
    empty = found is not None and note
    return Row(series.title, cells, keys, series.about["errata"] if empty else (), note)


def sweep_panel(
    score: str,
    item: MeasuredItem,
    axis: dict[str, Any],
    places: list[int],
    found: dict[int, Scores],
) -> Panel:
    """The same as curves, one a method."""
    methods = list(dict.fromkeys(item.series[place].title for place in places))
    curves = []
    for number, method in enumerate(methods):
        here = [p for p in places if item.series[p].title == method and p in found]
        deviations = [found[p].deviation(score) for p in here]
        curves.append(
            Curve(
                method,
                [float(item.series[p].about["value"]) for p in here],
                [found[p].interval(score).mean for p in here],
                number,
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


def sweep_claims(
    score: str,
    item: MeasuredItem,
    axis: dict[str, Any],
    places: list[int],
    found: dict[int, Scores],
) -> list[Claim]:
    """Verdict: a score changes as much, or as little, as is stated."""
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
                f"{method}: from {score_cell(score, means[worst]).text} at {values[worst]} to "
                f"{score_cell(score, means[best]).text} at {values[best]}, "
                f"{with_interval(score, difference)}; "
                f"{100 * lost:.0f} % of the best is lost ({100 * FLAT:.0f} % or less is flat)",
                flat if axis["expected"] == "flat" else not flat,
                axis["errata"],
            )
        )
    return claims


def surface(store: Store, item: MeasuredItem) -> Content:
    """A score over the values of two options, and whether curricula help."""
    score, found = item.options["score"], known_scores(store, item)
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
        cells = [Value.of(a), Value.of(b), *mean_cells(score, found.get(place))]
        rows.append(Row(series.title, cells, series.artifacts, (), series.missing))
    claims = []
    none = place_of.get((0, 0))
    if (said := item.options["claims"].get("ahead")) and none in found and len(found) > 1:
        best = max(means, key=means.__getitem__)
        gain = found[best].minus(found[none], score)
        at = item.series[best].about
        claims.append(
            Claim(
                said["text"],
                f"best at {x['title']} {at['x']:g}, {y['title']} {at['y']:g}: "
                f"{with_interval(score, gain)} over none, the largest of "
                f"{len(found)} places on the same test queries",
                HOLDS[gain.verdict],
                said["errata"],
            )
        )
    columns = [x["title"], y["title"], "ours", "±", INTERVAL]
    caption = f"{score_title(score)} over shares of admissible pairs; 0 is no curriculum"
    drawn = Surface(x["title"], y["title"], x["chosen"], y["chosen"], values, score_title(score))
    return {
        "tables": [ResultTable(item.name, caption, columns, rows, first="place")],
        "figures": [Figure(item.name, caption, drawn)],
        "claims": claims,
    }
