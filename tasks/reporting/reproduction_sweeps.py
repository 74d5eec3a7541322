"""Items that are sweeps: a score over the values of one option, or of two."""

from __future__ import annotations

from typing import Any

from cppcl.report.reproduction.data import (
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
from cppcl.report.sweep.data import Axis, value_text
from cppcl.report.tables import score_title
from storage import Store
from tasks.reporting.reproduction_series import Measured, Scores, Series, model_of
from tasks.reporting.reproduction_tables import (
    NOTHING,
    Shown,
    interval_cell,
    known,
    number,
    points,
)


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
        return Row(series.title, [value, *[NOTHING] * n], (), (), series.missing)
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
            cells = [Cell.of(a), Cell.of(b), *[NOTHING] * 3]
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
