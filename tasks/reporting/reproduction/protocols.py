"""Published scores of a protocol beside ours; unlike conventions are never called equal."""

from __future__ import annotations

from collections.abc import Sequence

from cppcl.report.reproduction.data import BESIDE, ResultTable, Row, Value, agreement
from cppcl.report.tables import score_name, score_title
from cppcl.retrieval.cutoffs import convention_line, family
from storage import Store
from tasks.reporting.reproduction.cells import NOTHING, Content, score_cell
from tasks.reporting.reproduction.series import MeasuredItem, Scores, Series, known_scores

UNLIKE = "not comparable"
OTHERS = "not comparable, other pictures"


def protocol(store: Store, item: MeasuredItem) -> Content:
    """A table with a column for each score and convention, and one that compares like ones."""
    found = known_scores(store, item)
    published = [series for series in item.series if series.about["printed"]]
    printed = list(dict.fromkeys(name for row in published for name in row.about["printed"]))
    ours = {
        name: None
        for scores in found.values()
        for name in scores.evaluations[0].scores
        if any(family(name) == family(one) for one in printed)
    }
    columns = list(dict.fromkeys([*printed, *ours]))
    rows = [row_of(series, columns, found.get(place)) for place, series in enumerate(item.series)]
    caption = f"Per cent, each under the convention of its column. {convention_line(columns)}"
    tables = [ResultTable(item.name, caption, [score_title(c) for c in columns], rows)]
    mine = [(item.series[place].title, scores) for place, scores in found.items()]
    tables.append(beside_table(item, published, mine))
    return {"tables": tables}


def row_of(series: Series, columns: Sequence[str], found: Scores | None) -> Row:
    """Scores of one method, published or ours."""
    cells = []
    for name in columns:
        value = series.about["printed"].get(name)
        if found is not None and name in found.evaluations[0].scores:
            value = found.interval(name).mean
        cells.append(score_cell(value))
    note = " ".join(filter(None, (series.about["note"], series.missing)))
    return Row(series.title, cells, series.artifacts, (), note)


def beside_table(
    item: MeasuredItem, published: Sequence[Series], mine: Sequence[tuple[str, Scores]]
) -> ResultTable:
    """Every published score, and what each method of ours has under the same convention."""
    rows = [
        Row(
            row.title,
            [
                Value.of(score_name(name)),
                score_cell(value),
                *(beside(name, value, scores, item.options["sizes"]) for _, scores in mine),
            ],
        )
        for row in published
        for name, value in row.about["printed"].items()
    ]
    caption = (
        f"Published, {item.source}, and ours. Higher, lower, agrees: the 95 % interval of ours "
        f"beside the published number; {UNLIKE} where conventions differ or one is not stated, or "
        "where other numbers of sketches or photos than the published ones were asked or searched"
    )
    columns = ["score", "published", *(title for title, _ in mine)]
    return ResultTable(f"{item.name}{BESIDE}", caption, columns, rows)


def beside(
    name: str, printed: float, found: Scores, sizes: tuple[int, int] | None = None
) -> Value:
    """Ours beside a published score: compared under the same convention, on as many pictures."""
    scores = found.evaluations[0].scores
    if name in scores:
        ours = found.interval(name)
        if sizes and any((e.n_queries, e.n_gallery) != tuple(sizes) for e in found.evaluations):
            return Value.of(f"{OTHERS}: {100 * ours.mean:.1f}")
        return Value.of(f"{100 * ours.mean:.1f}, {agreement(printed, ours)}")
    others = [
        f"{score_name(one)} {100 * found.interval(one).mean:.1f}"
        for one in scores
        if family(one) == family(name)
    ]
    return Value.of(f"{UNLIKE}: {'; '.join(others)}") if others else NOTHING
