"""Items that are tables: scores beside printed ones, differences, binary codes, costs, times."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cppcl.features import make_extractor
from cppcl.learning.departures import PRINTED
from cppcl.methods import make_method
from cppcl.modality import MODALITIES, Modality
from cppcl.report.reproduction.data import (
    Claim,
    Figure,
    Points,
    ResultTable,
    Row,
    Value,
    agreement,
)
from cppcl.report.tables import score_caption, score_title
from cppcl.retrieval.comparison import Difference, Interval
from cppcl.retrieval.hamming import HAMMING_RADIUS
from storage import Artifact, Reference, Store
from tasks.lineage import Lineage, by_modality
from tasks.reporting.reproduction.cells import (
    INTERVAL,
    NOTHING,
    OVER_SPLITS,
    Content,
    claim,
    interval_cell,
    mean_cells,
    percent,
    score_cell,
    signed,
    verdict_of,
    with_intervals,
)
from tasks.reporting.reproduction.series import MeasuredItem, Scores, Series, known_scores
from tasks.workers.extractors import extractor_of

AS_PRINTED = "as printed"
"""Preset of lines whose options are those that are printed."""
PARTS_OF_A_QUERY = ("describe", "encode", "rank")


def scores(store: Store, item: MeasuredItem) -> Content:
    """A table of scores beside printed ones, and what the paper says of them."""
    score, found = item.options["score"], known_scores(store, item)
    forms = {
        place: departures_of(store, series)
        for place, series in enumerate(item.series)
        if series.about["preset"] == AS_PRINTED and place in found
    }
    rows = [
        score_row(score, series, found.get(place), forms.get(place, {}))
        for place, series in enumerate(item.series)
    ]
    columns = ["options", "printed", "ours", "±", INTERVAL, "splits", "difference", "agreement"]
    table = ResultTable(item.name, f"{score_caption(score)}; mean over splits", columns, rows)
    tables = [table]
    if any(forms.values()):
        tables.append(forms_table(item, forms))
    places = {series.about["line"]: place for place, series in enumerate(item.series)}
    claims = []
    for statement in item.options["statements"]:
        first, second = (found.get(places[statement[name]]) for name in ("first", "second"))
        if first and second:
            claims.append(claim_of(score, statement, first, second))
    return {"tables": tables, "claims": claims}


def departures_of(store: Store, series: Series) -> dict[str, str]:
    """What the method behind a line has otherwise than the paper, trained on the first split."""
    lineage = Lineage.of_evaluation(store, series.evaluations[0])
    features = (store.open(lineage.features[modality]) for modality in MODALITIES)
    sketch, image = (int(one.shape("features")[1]) for one in features)
    scores = {}
    if lineage.curricula:
        for modality, reference in by_modality(store.open(lineage.curricula), "scores").items():
            spec = extractor_of(store.open(reference))
            scores[modality] = make_extractor(spec.name, json.loads(spec.options))
    asked = lineage.training.parameters
    return make_method(asked["method"], **asked["options"]).departures((sketch, image), scores)


def forms_table(item: MeasuredItem, forms: Mapping[int, Mapping[str, str]]) -> ResultTable:
    """What lines as printed have otherwise than the paper."""
    rows = [
        Row(
            item.series[place].title,
            [Value.of(words) for words in aspects.values()],
            item.series[place].artifacts,
        )
        for place, aspects in forms.items()
        if aspects
    ]
    columns = list(next(filter(None, forms.values())))
    caption = (
        "What lines as printed have otherwise than the paper; the experiment printed names the "
        "option of each printed form"
    )
    return ResultTable(f"{item.name}_forms", caption, columns, rows)


def score_row(score: str, series: Series, found: Scores | None, forms: Mapping[str, str]) -> Row:
    """One line: what is printed, and ours beside it; forms are those of the method."""
    printed, preset = series.about["printed"], series.about["preset"]
    cells = [Value.of(preset), score_cell(printed), *mean_cells(score, found)]
    beside = [NOTHING] * 3
    remark = series.missing
    if found is not None:
        remark = found.empty_codes()
        beside[0] = Value.of(len(found.evaluations))
        if printed is not None:
            ours = found.interval(score)
            difference = ours.mean - printed
            beside[1:] = [
                Value(difference, signed(difference)),
                Value.of(agreement(printed, ours)),
            ]
    other = [aspect for aspect, words in forms.items() if words != PRINTED]
    differs = f"Not as printed: {', '.join(other)}." if other else ""
    note = " ".join(filter(None, [series.about["note"], remark, differs]))
    return Row(series.title, [*cells, *beside], series.artifacts, series.about["errata"], note)


def claim_of(score: str, statement: Mapping[str, Any], first: Scores, second: Scores) -> Claim:
    """Verdict: one line is ahead of another on the same queries."""
    if not paired(first, second):
        means = (score_cell(one.interval(score).mean).text for one in (first, second))
        return claim(statement, f"{' and '.join(means)}, of different queries", None, ())
    found = first.ahead_of(second, score)
    counts = splits_of(first.minus(second, score))
    return claim(
        statement,
        f"{with_intervals(found)} (splits ahead / level / behind: {counts})",
        found.above(),
        [found],
    )


def paired(first: Scores, second: Scores) -> bool:
    """True if both are scores of the same queries in the same splits."""
    return len(first.queries) == len(second.queries) and all(
        np.array_equal(a, b) for a, b in zip(first.queries, second.queries, strict=True)
    )


def splits_of(found: Difference) -> str:
    """Number of splits in which the first is ahead, level and behind."""
    return f"{found.ahead} / {found.level} / {found.behind}"


def differences(store: Store, item: MeasuredItem) -> Content:
    """The first method minus each other one."""
    score, found = item.options["score"], known_scores(store, item)
    if 0 not in found:
        return {}
    rows = []
    for place, series in enumerate(item.series[1:], start=1):
        if place not in found:
            continue
        difference = found[0].minus(found[place], score)
        finding = found[0].ahead_of(found[place], score)
        cells = [
            score_cell(found[place].interval(score).mean),
            Value(difference.mean, signed(difference.mean)),
            interval_cell(difference),
            interval_cell(finding.over_splits),
            Value.of(splits_of(difference)),
            Value.of(verdict_of(finding)),
        ]
        both = [*item.series[0].artifacts, *series.artifacts]
        rows.append(Row(series.title, cells, both))
    first = item.series[0].title
    mean = score_cell(found[0].interval(score).mean).text
    caption = f"{first} ({mean}) minus each other method: {score_caption(score)}"
    columns = [
        *("its score", "difference", INTERVAL, OVER_SPLITS),
        *("splits ahead / level / behind", "verdict"),
    ]
    return {"tables": [ResultTable(item.name, caption, columns, rows)]}


def binary_codes(store: Store, item: MeasuredItem) -> Content:
    """Scores of binary codes beside the exact ones of the same method."""
    score, found = item.options["score"], known_scores(store, item)
    exact = {
        series.about["method"]: found.get(place)
        for place, series in enumerate(item.series)
        if series.about["bits"] is None
    }
    rows = []
    for place, series in enumerate(item.series):
        bits, here = series.about["bits"], found.get(place)
        length = Value(None, "exact codes") if here and not bits else Value.of(bits)
        beside = [NOTHING, NOTHING]
        whole = exact[series.about["method"]]
        if here and whole and bits:
            lost = here.ahead_of(whole, score)
            beside = [
                Value(lost.mean, with_intervals(lost)),
                Value.of(verdict_of(lost)),
            ]
        cells = [length, *mean_cells(score, here), *beside, within_radius(here)]
        note = series.about["note"] if here else series.missing
        rows.append(Row(series.title, cells, series.artifacts, (), note))
    ball = score_title(f"precision_within_{HAMMING_RADIUS}")
    columns = ["bits", "ours", "±", INTERVAL, "minus exact codes", "verdict", ball]
    caption = f"{score_caption(score)}; by Hamming distance of ITQ codes"
    return {"tables": [ResultTable(item.name, caption, columns, rows)]}


def within_radius(found: Scores | None) -> Value:
    """Mean over splits of the precision within the Hamming radius; a dash for real codes."""
    name = f"precision_within_{HAMMING_RADIUS}"
    scores = [] if found is None else [evaluation.scores for evaluation in found.evaluations]
    if not scores or not all(name in of_split for of_split in scores):
        return NOTHING
    return score_cell(float(np.mean([of_split[name] for of_split in scores])))


def costs(store: Store, item: MeasuredItem) -> Content:
    """Seconds of every step, as noted when its artifact was made, beside printed ones."""
    printed = item.options["printed"]
    behind = [
        (series, [Lineage.of_evaluation(store, reference) for reference in series.evaluations])
        for series in item.series
        if series.evaluations
    ]
    rows: list[Row] = []
    seen: set[Reference] = set()
    for _, (first, *_others) in behind:
        rows += extraction_rows(store, "features", first.features, seen, printed)
        if first.curricula:
            curricula = store.open(first.curricula)
            used = by_modality(curricula, "scores")
            rows += extraction_rows(store, "curriculum", used, seen, printed)
            rows.append(cost_row("curriculum", "pairs of both curricula", [curricula], printed))
    for series, lineages in behind:
        steps = {
            ("training", series.title): [lineage.training for lineage in lineages],
            ("codes of all pictures", f"{series.title}, encode"): [
                lineage.codes for lineage in lineages
            ],
            ("ranking, scores", f"{series.title}, evaluate"): [
                store.open(reference) for reference in series.evaluations
            ],
        }
        rows += [cost_row(*names, made, printed) for names, made in steps.items()]
    columns = ["phase", "mean", "±", "unit", "printed"]
    caption = (
        "Wall seconds on the machine that made the artifacts, which may have had other work; of "
        "pictures, seconds of the workers together divided by the pictures"
    )
    return {"tables": [ResultTable(item.name, caption, columns, rows, first="component")]}


def extraction_rows(
    store: Store,
    phase: str,
    features: Mapping[Modality, Reference],
    seen: set[Reference],
    printed: Mapping[str, str],
) -> Iterator[Row]:
    """A row for each extraction that read pictures itself and was not seen before."""
    for modality, reference in features.items():
        made = store.open(reference)
        n, seconds = extracted_pictures(made)
        if reference not in seen and n and seconds:
            component = f"{made.parameters['extractor']} ({modality})"
            row = cost_row(phase, component, [made], printed, seconds / n, "s a picture")
            yield replace(row, note=f"{n} pictures")
        seen.add(reference)


def extracted_pictures(extracted: Artifact) -> tuple[int, float]:
    """Pictures that an extraction read itself, and the seconds of its workers together."""
    notes = extracted.run["notes"]
    n = extracted.shape("ok")[0] - notes.get("copied_rows", 0)
    return n, notes.get("worker_seconds") or 0.0


def cost_row(
    phase: str,
    component: str,
    made: Sequence[Artifact],
    printed: Mapping[str, str],
    seconds: float | None = None,
    unit: str = "s",
) -> Row:
    """Mean seconds of artifacts, or those that are given, and their deviation."""
    each = [artifact.run["seconds"] for artifact in made] if seconds is None else [seconds]
    mean = float(np.mean(each))
    deviation = float(np.std(each, ddof=1)) if len(each) > 1 else None
    cells = [
        Value.of(phase),
        Value(mean, f"{mean:.3g}"),
        Value(deviation, "–" if deviation is None else f"{deviation:.2g}"),
        Value.of(unit),
        Value.of(printed.get(component)),
    ]
    return Row(component, cells, [str(artifact.reference) for artifact in made])


def retrieval_time(store: Store, item: MeasuredItem) -> Content:
    """Time of a query against the score of a method."""
    score, found = item.options["score"], known_scores(store, item)
    rows, places = [], {}
    for place, series in enumerate(item.series):
        if place not in found or not series.extra:
            rows.append(Row(series.title, [NOTHING] * 7, (), (), series.missing))
            continue
        times = store.open(series.extra[0]).json("times.json")
        ours = found[place].interval(score)
        total = sum(times[part] for part in PARTS_OF_A_QUERY)
        least, most = (1000 * times[end] for end in ("least", "most"))
        low, high = score_cell(ours.low), score_cell(ours.high)
        cells = [
            score_cell(ours.mean),
            Value(f"[{ours.low!r}, {ours.high!r}]", f"[{low.text}, {high.text}]"),
            *(Value(times[p], f"{1000 * times[p]:.2f}") for p in PARTS_OF_A_QUERY),
            Value(total, f"{1000 * total:.1f}"),
            Value(f"[{least!r}, {most!r}]", f"{least:.1f} to {most:.1f}"),
        ]
        rows.append(Row(series.title, cells, series.artifacts, (), series.about.get("note", "")))
        places[series.title] = (Interval(1000 * total, least, most), percent(ours))
    columns = [score_title(score), INTERVAL, *PARTS_OF_A_QUERY, "together", "least to most"]
    caption = (
        "Milliseconds of processor time of a query: describe the sketch, find its code, rank; "
        "medians of a few sketches, and the least and the most of one"
    )
    drawn = Points("milliseconds of processor time", score_title(score), places)
    about = "Time of a query, from the least to the most, against the score with its interval"
    figure = Figure(item.name, about, drawn)
    return {
        "tables": [ResultTable(item.name, caption, columns, rows)],
        "figures": [figure] if places else [],
    }
