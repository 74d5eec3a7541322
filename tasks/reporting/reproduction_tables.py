"""Items that are tables: scores beside printed ones, differences, binary codes, costs, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cppcl.report.reproduction.data import Cell, Claim, Figure, Points, Row, Table, agreement
from cppcl.report.tables import is_percent, score_title
from cppcl.retrieval.comparison import Difference
from storage import Artifact, Reference, Store
from tasks.reporting.reproduction_series import Measured, Scores, Series, model_of

NOTHING = Cell.of(None)

Shown = dict[str, Any]
"""Tables, figures, claims and notes of an item."""


def number(score: str, value: float | None) -> Cell:
    """A score for people: per cent of ranks, four decimals of mAP."""
    if value is None:
        return NOTHING
    return Cell(value, f"{100 * value:.1f}" if is_percent(score) else f"{value:.4f}")


def points(score: str, value: float, low: float, high: float) -> str:
    """A difference with its interval."""
    scale, decimals = (100, 1) if is_percent(score) else (1, 4)
    ends = ", ".join(f"{scale * end:+.{decimals}f}" for end in (low, high))
    return f"{scale * value:+.{decimals}f} [{ends}]"


def interval_cell(score: str, low: float, high: float) -> Cell:
    """Both ends of an interval; the file has them as they are."""
    ends = f"[{number(score, low).text}, {number(score, high).text}]"
    return Cell(f"[{low!r}, {high!r}]", ends)


def known(store: Store, item: Measured) -> dict[int, Scores]:
    """Scores of the series that have any, by their number."""
    return {
        place: Scores.of(store, series)
        for place, series in enumerate(item.series)
        if series.evaluations
    }


def scores(store: Store, item: Measured) -> Shown:
    """A table of scores beside printed ones, and what the paper says of them."""
    score, found = item.options["score"], known(store, item)
    rows = [score_row(score, series, found.get(place)) for place, series in enumerate(item.series)]
    columns = ["options", "printed", "ours", "±", "95 % interval", "splits"]
    columns += ["difference", "agreement"]
    table = Table(item.name, f"{score_title(score)}, mean over splits", columns, rows)
    places = {series.about["line"]: place for place, series in enumerate(item.series)}
    claims = []
    for statement in item.options["statements"]:
        first, second = (found.get(places[statement[name]]) for name in ("first", "second"))
        if first and second:
            claims.append(claim_of(score, statement, first, second))
    return {"tables": [table], "claims": claims}


def score_row(score: str, series: Series, found: Scores | None) -> Row:
    """One line: what is printed, and ours beside it."""
    printed, note = series.about["printed"], series.about["note"]
    preset = series.about["preset"]
    if found is None:
        note = " ".join(filter(None, [note, series.missing]))
        cells = [Cell.of(preset), number(score, printed), *[NOTHING] * 6]
        return Row(series.title, cells, (), series.about["errata"], note)
    ours = found.interval(score)
    zero, n = found.empty()
    if zero:
        note = " ".join(filter(None, [note, f"{zero} of {n} codes are empty."]))
    beside = [NOTHING, NOTHING]
    if printed is not None:
        difference = ours.mean - printed
        scale, decimals = (100, 1) if is_percent(score) else (1, 4)
        beside = [
            Cell(difference, f"{scale * difference:+.{decimals}f}"),
            Cell.of(agreement(printed, ours)),
        ]
    cells = [
        Cell.of(preset),
        number(score, printed),
        number(score, ours.mean),
        number(score, found.deviation(score)),
        interval_cell(score, ours.low, ours.high),
        Cell.of(len(found.evaluations)),
        *beside,
    ]
    return Row(series.title, cells, series.artifacts, series.about["errata"], note)


def claim_of(score: str, statement: Mapping[str, Any], first: Scores, second: Scores) -> Claim:
    """Whether one line is ahead of another on the same queries."""
    if not paired(first, second):
        ours, theirs = first.interval(score), second.interval(score)
        holds = None
        if ours.low > theirs.high or ours.high < theirs.low:
            holds = ours.low > theirs.high
        text = f"{number(score, ours.mean).text} and {number(score, theirs.mean).text}"
        return Claim(
            statement["text"], f"{text}, of different queries", holds, statement["errata"]
        )
    found = first.minus(second, score)
    return Claim(
        statement["text"],
        f"{points(score, found.mean, found.low, found.high)}: {words_of(found)}",
        {"ahead": True, "level": None, "behind": False}[found.verdict],
        statement["errata"],
    )


def paired(first: Scores, second: Scores) -> bool:
    """Whether both are scores of the same queries in the same splits."""
    return len(first.queries) == len(second.queries) and all(
        np.array_equal(a, b) for a, b in zip(first.queries, second.queries, strict=True)
    )


def words_of(found: Difference) -> str:
    """Verdict of a difference, with what splits say."""
    words = {
        "ahead": "ahead beyond chance",
        "behind": "behind beyond chance",
        "level": "level, it could be chance",
    }
    splits = f"{found.ahead} / {found.level} / {found.behind}"
    return f"{words[found.verdict]} (splits ahead / level / behind: {splits})"


def differences(store: Store, item: Measured) -> Shown:
    """The first method minus each other one."""
    score, found = item.options["score"], known(store, item)
    if 0 not in found:
        return {}
    rows = []
    for place, series in enumerate(item.series[1:], start=1):
        if place not in found:
            continue
        difference = found[0].minus(found[place], score)
        scale, decimals = (100, 1) if is_percent(score) else (1, 4)
        cells = [
            number(score, found[place].interval(score).mean),
            Cell(difference.mean, f"{scale * difference.mean:+.{decimals}f}"),
            Cell(
                f"[{difference.low!r}, {difference.high!r}]",
                "[" + points(score, 0, difference.low, difference.high).partition("[")[2],
            ),
            Cell.of(f"{difference.ahead} / {difference.level} / {difference.behind}"),
            Cell.of(difference.verdict),
        ]
        both = [*item.series[0].artifacts, *series.artifacts]
        rows.append(Row(series.title, cells, both))
    first = item.series[0].title
    mean = number(score, found[0].interval(score).mean).text
    caption = f"{first} ({mean}) minus each other method: {score_title(score)}"
    columns = ["its score", "difference", "95 % interval", "splits ahead / level / behind"]
    return {"tables": [Table(item.name, caption, [*columns, "verdict"], rows)]}


def binary_codes(store: Store, item: Measured) -> Shown:
    """Scores of binary codes beside the exact ones of the same method."""
    score, found = item.options["score"], known(store, item)
    rows = []
    for place, series in enumerate(item.series):
        bits = series.about["bits"]
        if place not in found:
            cells = [Cell.of(bits), *[NOTHING] * 5]
            rows.append(Row(series.title, cells, (), (), series.missing))
            continue
        ours = found[place].interval(score)
        exact = next(
            other
            for other, one in enumerate(item.series)
            if one.about["method"] == series.about["method"] and one.about["bits"] is None
        )
        lost = found[place].minus(found[exact], score) if bits else None
        cells = [
            Cell.of(bits) if bits else Cell(None, "exact codes"),
            number(score, ours.mean),
            number(score, found[place].deviation(score)),
            interval_cell(score, ours.low, ours.high),
            Cell(lost.mean, points(score, lost.mean, lost.low, lost.high)) if lost else NOTHING,
            Cell.of(lost.verdict) if lost else NOTHING,
        ]
        rows.append(Row(series.title, cells, series.artifacts, (), series.about["note"]))
    columns = ["bits", "ours", "±", "95 % interval", "minus exact codes", "verdict"]
    caption = f"{score_title(score)} by Hamming distance of ITQ codes"
    return {"tables": [Table(item.name, caption, columns, rows)]}


def costs(store: Store, item: Measured) -> Shown:
    """Seconds of every step, as noted when its artifact was made, beside printed ones."""
    printed = item.options["printed"]
    rows: list[Row] = []
    seen: set[Reference] = set()

    def add(
        phase: str,
        component: str,
        seconds: Sequence[float],
        unit: str,
        made: Sequence[Artifact],
        note: str = "",
    ) -> None:
        mean = float(np.mean(seconds))
        deviation = float(np.std(seconds, ddof=1)) if len(seconds) > 1 else None
        cells = [
            Cell.of(phase),
            Cell(mean, f"{mean:.3g}"),
            Cell(deviation, "–" if deviation is None else f"{deviation:.2g}"),
            Cell.of(unit),
            Cell.of(printed.get(component)),
        ]
        keys = [str(artifact.reference) for artifact in made]
        rows.append(Row(component, cells, keys, (), note))

    for series in item.series:
        models = [model_of(store, evaluation) for evaluation in series.evaluations]
        for model in models[:1]:
            for side in ("sketch", "image"):
                features = store.open(model.inputs[f"{side}_features"])
                add_extraction(add, "features", side, features, seen)
            if "curricula" in model.inputs:
                curricula = store.open(model.inputs["curricula"])
                for side in ("sketch", "image"):
                    made = store.open(curricula.inputs[f"{side}_scores"])
                    add_extraction(add, "curriculum", side, made, seen)
                add(
                    "curriculum",
                    "pairs of both curricula",
                    [curricula.run["seconds"]],
                    "s",
                    [curricula],
                )
    for series in item.series:
        models = [model_of(store, evaluation) for evaluation in series.evaluations]
        if models:
            add("training", series.title, [m.run["seconds"] for m in models], "s", models)
        for name, phase in (("encode", "codes of all pictures"), ("evaluate", "ranking, scores")):
            made = [
                store.open(r) if name == "evaluate" else store.open(store.open(r).inputs["codes"])
                for r in series.evaluations
            ]
            if made:
                add(phase, f"{series.title}, {name}", [a.run["seconds"] for a in made], "s", made)
    columns = ["phase", "mean", "±", "unit", "printed"]
    caption = (
        "Wall seconds on the machine that made the artifacts, which may have had other work; of "
        "pictures, seconds of the workers together divided by the pictures"
    )
    return {"tables": [Table(item.name, caption, columns, rows, first="component")]}


def add_extraction(add: Any, phase: str, side: str, made: Artifact, seen: set[Reference]) -> None:
    """A row of an extraction, once, if it described pictures itself."""
    if made.reference in seen:
        return
    seen.add(made.reference)
    notes = made.run["notes"]
    n = made.shape("ok")[0] - notes.get("copied_rows", 0)
    label = f"{made.parameters['extractor']} ({side})"
    if n and notes.get("worker_seconds"):
        add(phase, label, [notes["worker_seconds"] / n], "s a picture", [made], f"{n} pictures")


def retrieval_time(store: Store, item: Measured) -> Shown:
    """Time of a query against the score of a method."""
    score, found = item.options["score"], known(store, item)
    rows, places = [], {}
    for place, series in enumerate(item.series):
        if place not in found or not series.extra:
            rows.append(Row(series.title, [NOTHING] * 5, (), (), series.missing))
            continue
        times = store.open(series.extra[0]).json("times.json")
        mean = found[place].interval(score).mean
        total = sum(times[part] for part in ("describe", "encode", "rank"))
        cells = [
            number(score, mean),
            *(Cell(times[p], f"{1000 * times[p]:.2f}") for p in ("describe", "encode", "rank")),
            Cell(total, f"{1000 * total:.1f}"),
        ]
        rows.append(Row(series.title, cells, series.artifacts, (), series.about.get("note", "")))
        places[series.title] = (1000 * total, mean)
    columns = [score_title(score), "describe", "encode", "rank", "together"]
    caption = "Milliseconds of processor time of a query: describe the sketch, find its code, rank"
    figures = []
    if places:
        title = score_title(score)
        figures = [
            Figure(
                item.name,
                "Time of a query against the score",
                Points("milliseconds of processor time", title, places),
            )
        ]
    return {"tables": [Table(item.name, caption, columns, rows)], "figures": figures}
