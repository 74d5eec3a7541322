"""Items that are sweeps: a score over the values of one option, or of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cppcl.modality import Modality
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
from cppcl.report.reproduction.verdicts import Finding
from cppcl.report.sweep import Axis, value_text
from cppcl.report.tables import score_caption, score_title
from cppcl.retrieval.comparison import Interval
from storage import Store
from tasks.lineage import scores_behind
from tasks.reporting.reproduction.cells import (
    INTERVAL,
    NOTHING,
    Content,
    claim,
    mean_cells,
    percent,
    score_cell,
    with_intervals,
)
from tasks.reporting.reproduction.series import MeasuredItem, Scores, Series, known_scores
from tasks.reporting.score_time import TIMES

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
            columns += ["ms a picture", "least to most"]
        name = f"{item.name}_{axis['option'].rpartition('.')[2]}"
        caption = f"{score_caption(score)}; over {axis['title']}"
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
    if found is not None:
        note = found.empty_codes()
    if timed:
        cells += time_cells(store, timed, series)
    empty = found is not None and note
    return Row(series.title, cells, keys, series.about["errata"] if empty else (), note)


def time_cells(store: Store, modality: Modality, series: Series) -> list[Value]:
    """What the scores of the curriculum take, measured in one go with those of other values."""
    scored = scores_behind(store, series.evaluations, modality)
    if scored is None or not series.extra:
        return [NOTHING, NOTHING]
    times = store.open(series.extra[0]).json(TIMES)[str(scored)]
    least, most = times["least"], times["most"]
    return [
        Value(times["median"], f"{1000 * times['median']:.2f}"),
        Value(f"[{least!r}, {most!r}]", f"{1000 * least:.2f} to {1000 * most:.2f}"),
    ]


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
        intervals = [percent(found[p].interval(score)) for p in here]
        curves.append(
            Curve(
                method,
                [float(item.series[p].about["value"]) for p in here],
                [one.mean for one in intervals],
                number,
                intervals,
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
        level=None if chance is None else ("chance", 100 * chance),
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
        difference = found[best].ahead_of(found[worst], score)
        lost = lost_share(difference, found[best].means(score), means[best])
        values = {p: value_text(item.series[p].about["value"]) for p in (best, worst)}
        matters = lost.above(FLAT)
        holds = matters if axis["expected"] == "sensitive" or matters is None else not matters
        measured = (
            f"{method}: from {score_cell(means[worst]).text} at {values[worst]} to "
            f"{score_cell(means[best]).text} at {values[best]}, "
            f"{with_intervals(difference)}; {100 * lost.mean:.0f} % of the best is lost "
            f"({100 * FLAT:.0f} % or less is flat)"
        )
        claims.append(claim(axis, measured, holds, [lost]))
    return claims


def lost_share(difference: Finding, best: Sequence[float], mean: float) -> Finding:
    """Share of the best score that the worst one loses, from their difference."""
    shares = [a / b if b else 0.0 for a, b in zip(difference.splits, best, strict=True)]
    over = difference.over_queries
    queries = (
        None if over is None else Interval(*(e / mean for e in (over.mean, over.low, over.high)))
    )
    return Finding(shares, queries)


def surface(store: Store, item: MeasuredItem) -> Content:
    """A score over the values of two options, and whether curricula help."""
    score, found = item.options["score"], known_scores(store, item)
    x, y = item.options["x"], item.options["y"]
    place_of = {
        (series.about["x"], series.about["y"]): place for place, series in enumerate(item.series)
    }
    intervals = {place: scores.interval(score) for place, scores in found.items()}
    if not intervals:
        return {}
    shown = {place: percent(interval) for place, interval in intervals.items()}
    values = [[shown.get(place_of[a, b]) for a in x["chosen"]] for b in y["chosen"]]
    rows = []
    for (a, b), place in place_of.items():
        series = item.series[place]
        cells = [Value.of(a), Value.of(b), *mean_cells(score, found.get(place))]
        rows.append(Row(series.title, cells, series.artifacts, (), series.missing))
    claims = []
    none = place_of.get((0, 0))
    if (said := item.options["claims"].get("ahead")) and none in found and len(found) > 1:
        best = max(intervals, key=lambda place: intervals[place].mean)
        gain = found[best].ahead_of(found[none], score)
        at = item.series[best].about
        measured = (
            f"best at {x['title']} {at['x']:g}, {y['title']} {at['y']:g}: "
            f"{with_intervals(gain)} over none, the largest of {len(found)} places on the "
            "same test queries"
        )
        claims.append(claim(said, measured, gain.above(), [gain]))
    columns = [x["title"], y["title"], "ours", "±", INTERVAL]
    caption = (
        f"{score_title(score)} with its {INTERVAL} over shares of admissible pairs; 0 is no "
        "curriculum"
    )
    described = f"{caption}. {score_caption(score)}"
    drawn = Surface(x["title"], y["title"], x["chosen"], y["chosen"], values, score_title(score))
    return {
        "tables": [ResultTable(item.name, described, columns, rows, first="place")],
        "figures": [Figure(item.name, caption, drawn)],
        "claims": claims,
    }
