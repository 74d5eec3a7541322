"""The page of a reproduction: what it says, which files it has, that it stays the same."""

import re

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.report import QueryResult, ResultGrid, RetrievedPicture
from cppcl.report.reproduction.data import (
    Bars,
    Claim,
    Curve,
    Figure,
    Item,
    Panel,
    Plots,
    Points,
    Reproduction,
    ResultTable,
    Row,
    Surface,
    Value,
    agreement,
    rounding_of,
)
from cppcl.report.reproduction.errata import ERRATA
from cppcl.report.reproduction.figures import draw
from cppcl.report.reproduction.render import render_reproduction
from cppcl.report.reproduction.verdicts import Finding
from cppcl.retrieval.comparison import Interval
from tests.cppcl.report.pages import rows_of

GREY = np.full((8, 8, 3), 128, np.uint8)


@pytest.fixture(scope="module")
def reproduction() -> Reproduction:
    spread = [Interval(0.2, 0.1, 0.3), Interval(0.4, 0.3, 0.5), Interval(0.3, 0.2, 0.4)]
    curves = [Curve("ours <b>", [0.01, 0.1, 1.0], [0.2, 0.4, 0.3], 0, spread)]
    panel = Panel("alpha", "alpha", "mAP", curves, logarithmic=True, level=("chance", 0.1))
    found = [RetrievedPicture(GREY, "cat", True, 0.9), RetrievedPicture(GREY, "dog", False, 0.8)]
    figures = [
        Figure("curves", "Curves", Plots([panel, panel, panel])),
        Figure("bars", "Bars", Bars(["cat", "dog"], {"a": [0.1, 0.2], "b": [0.3, 0.1]}, "mAP")),
        Figure(
            "surface",
            "Surface",
            Surface("x", "y", [0, 1], [0, 1], [spread[:2], [spread[2], None]], "z"),
        ),
        Figure(
            "points",
            "Points",
            Points(
                "ms",
                "mAP",
                {"a": (Interval(9, 8, 12), spread[0]), "b": (Interval(11, 10, 15), spread[1])},
            ),
        ),
        Figure("grid", "Grid", ResultGrid("a", 0, [QueryResult(GREY, "cat", found)])),
    ]
    rows = [
        Row(
            "CPRL",
            [Value(0.986, "98.6"), Value.of("agrees")],
            ["evaluate/0a", "evaluate/1b"],
            (1,),
            "a note",
        ),
        Row("quoted", [Value(0.81, "81.0"), Value(None, "–")]),
    ]
    table = ResultTable("table1", "Rates & more", ["printed", "agreement"], rows)
    claims = [
        Claim("B is ahead", "+0.1", None, (8,)),
        Claim("It converges", "yes", True),
        Claim("It is flat", "no", None, missing_splits=2),
    ]
    return Reproduction(
        "tiny",
        "A title",
        [
            Item("first", "First", "Table 1", tables=[table], claims=claims, figures=figures),
            Item("second", "Second", "Figure 2", "failed", "x: no space left"),
        ],
        notes=["a note of the whole"],
        convention="as it is",
    )


@pytest.fixture(scope="module")
def files(reproduction: Reproduction) -> dict[str, bytes]:
    return render_reproduction(reproduction)


def test_files(files):
    drawn = ("curves", "bars", "surface", "points")
    expected = {f"{n}{e}" for n in drawn for e in (".svg", "-dark.svg", ".png")}
    assert set(files) == expected | {
        "grid.png",
        "table1.csv",
        "items.csv",
        "claims.csv",
        "index.html",
    }
    assert all(files[n].startswith(b"\x89PNG") for n in files if n.endswith(".png"))
    assert all(b"<svg" in files[n] for n in files if n.endswith(".svg"))


def test_the_same_data_give_the_same_bytes(reproduction, files):
    assert render_reproduction(reproduction) == files
    assert not any(re.search(rb"20\d\d-\d\d-\d\d", content) for content in files.values())


def test_words_begin_at_the_left_and_numbers_end_at_the_right(files):
    page = files["index.html"].decode()
    for shown in ("printed", "98.6", "81.0"):
        assert re.search(rf'class="number"[^>]*>{re.escape(shown)}</t[hd]>', page)
    assert '<th scope="col" class="word">agreement</th>' in page
    assert '<td class="word agrees">agrees</td><td class="words">a note' in page
    assert '<td class="word">–</td><td class="words"></td>' in page


def test_a_page_refers_to_its_own_files_alone(files):
    page = files["index.html"].decode()
    linked = re.findall(r'(?:src|href|srcset)="([^"]*)"', page)
    names = {link for link in linked if not link.startswith("#")}
    assert names == {name for name in files if name != "index.html"}
    assert "://" not in page
    assert "url(" not in page
    anchors = {link[1:] for link in linked if link.startswith("#")}
    assert anchors == set(re.findall(r'id="([^"]*)"', page)) - {"errata"}
    assert "prefers-color-scheme: dark" in page


def test_numbers_trace_to_artifacts(files):
    page = files["index.html"].decode()
    assert 'title="evaluate/0a evaluate/1b"' in page
    assert "<code>evaluate/0a</code>" in page
    first, second = rows_of(files["table1.csv"])
    assert first == {
        "method": "CPRL",
        "printed": "0.986",
        "agreement": "agrees",
        "errata": "1",
        "note": "a note",
        "artifacts": "evaluate/0a evaluate/1b",
    }
    assert second["agreement"] == second["artifacts"] == ""


def test_what_is_said(files):
    page = files["index.html"].decode()
    assert "x: no space left" in page
    assert "1 agrees, 1 not decided, 1 holds, 1 2 splits missing" in page
    assert page.count(ERRATA[1]) == page.count(ERRATA[8].replace("'", "&#39;")) == 1
    assert ERRATA[2] not in page
    items = rows_of(files["items.csv"])
    assert [(i["item"], i["state"]) for i in items] == [("first", "done"), ("second", "failed")]
    claims = rows_of(files["claims.csv"])
    verdicts = ["not decided", "holds", "2 splits missing"]
    assert [claim["verdict"] for claim in claims] == verdicts


@pytest.mark.parametrize(
    ("printed", "half"), [(0.986, 0.0005), (0.1603, 0.00005), (0.81, 0.0005), (0.5, 0.0005)]
)
def test_rounding(printed, half):
    assert rounding_of(printed) == pytest.approx(half)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.95, 0.99, "agrees"),
        (0.986, 0.986, "agrees"),
        (0.9864, 0.99, "agrees"),
        (0.9866, 0.99, "higher"),
        (0.97, 0.9856, "agrees"),
        (0.97, 0.9854, "lower"),
    ],
)
def test_agreement(low, high, word):
    assert agreement(0.986, Interval((low + high) / 2, low, high)) == word


def test_what_is_refused():
    with pytest.raises(InputError, match="has 1 cells; give 2"):
        ResultTable("t", "", ["a", "b"], [Row("r", [Value(1)])])
    with pytest.raises(InputError, match="items are named"):
        Reproduction("r", "", [Item("a", "", ""), Item("a", "", "")])
    table = ResultTable("t", "", [], [])
    with pytest.raises(InputError, match="tables are named"):
        Reproduction(
            "r", "", [Item("a", "", "", tables=[table]), Item("b", "", "", tables=[table])]
        )


@pytest.mark.parametrize(
    ("splits", "queries", "verdict"),
    [
        ([0.1, 0.12, 0.11], (0.05, 0.2), True),
        ([-0.1, -0.12, -0.11], (-0.2, -0.05), False),
        ([0.1, 0.12, 0.11], (-0.05, 0.2), None),  # other queries might say otherwise
        ([0.01, 0.3, 0.02], (0.05, 0.2), None),  # other splits might
        ([0.1, 0.12], (0.05, 0.2), None),
        ([0.1], (0.05, 0.2), None),
        ([0.1, 0.12, 0.11], None, True),
    ],
)
def test_a_verdict_needs_three_splits_other_queries_and_other_splits(splits, queries, verdict):
    found = Finding(splits, queries and Interval(float(np.mean(splits)), *queries))
    assert found.above() is verdict
    assert found.missing_splits == max(0, 3 - len(splits))
    assert found.above(1.0) is (None if len(splits) < 3 else False)


def axes_of(content):
    """The axes and colours of what is drawn, and the texts in it."""
    drawing = draw(content, "light")
    axes = drawing.axes[0]
    return axes, [text.get_text() for text in axes.texts]


def test_noise_is_not_spread_over_axes_and_colours():
    near = [Interval(30 + 0.1 * n, 28, 32) for n in range(4)]
    axes, texts = axes_of(Surface("x", "y", [0, 1], [0, 1], [near[:2], [near[2], None]], "z"))
    assert axes.images[0].get_clim() == (0, near[2].mean)
    assert texts == [f"30.{n}\n28.0 to 32.0" for n in range(3)]
    axes, _ = axes_of(Points("ms", "mAP", {"a": (Interval(9, 8, 12), near[0])}))
    low, high = axes.get_xlim()
    assert high / low == pytest.approx(10)
    assert low < 8 < 12 < high
    assert axes.get_ylim()[0] == 0
    across, upright = (
        [path.vertices.tolist() for path in c.get_paths()] for c in axes.collections
    )
    assert across == [[[8, 30], [12, 30]]]
    assert upright == [[[9, 28], [9, 32]]]


def test_errata_that_are_used_are_listed_in_order(reproduction):
    assert reproduction.errata == [1, 8]
    assert list(ERRATA) == list(range(1, 24))
