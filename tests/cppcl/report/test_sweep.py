import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cppcl.errors import InputError
from cppcl.report.style import defaults
from cppcl.report.sweep import (
    Axis,
    SweepData,
    SweepScores,
    draw,
    render_sweep,
    sweep_csv,
    sweep_png,
    value_text,
)
from tests.cppcl.report.pages import rows_of

CROP = Axis("crop", (None, [30, 50, 170, 225]))
SIZE = Axis("size", ([8, 10], [16, 20], [40, 50]))
ATOMS = Axis("n_atoms", (100, 25, 50))


def make(axes, *, protocols=("random",), methods=("cprl", "pls"), n_splits=3, missing=()):
    """Scores that differ everywhere; combinations whose numbers are missing are left out."""
    random = np.random.default_rng(0)
    blank = SweepData("faces", "rank_1", axes, [SweepScores((), "", "", (0.0,), 0.0)])
    rows = [
        SweepScores(values, protocol, method, tuple(random.uniform(0.4, 0.8, n_splits)), 0.01)
        for number, values in enumerate(blank.combinations)
        if number not in missing
        for protocol in protocols
        for method in methods
    ]
    return replace(blank, rows=rows)


def curve(axes, number):
    """Where the markers of one method stand, and the ends of its bars, (k, 2) both."""
    container = axes.containers[number]
    points = np.column_stack(container.lines[0].get_data())
    bars = container.lines[2]
    if not bars:
        return points, None
    return points, np.array([ends[:, 1] for ends in bars[0].get_segments() if len(ends)])


@pytest.fixture
def drawn():
    def draw_in_style(data):
        with defaults():
            figure = draw(data)
            figure.canvas.draw()
        return figure

    return draw_in_style


@pytest.mark.parametrize(
    ("values", "numeric", "logarithmic"),
    [
        ((25, 50, 100), True, False),
        ((0.1, 0.01, 0.03), True, True),
        ((0.07, 0.7), True, True),
        ((0.1, 0.99), True, False),
        ((0, 0.01, 1), True, False),
        ((-1, 100), True, False),
        ((7,), True, False),
        ((1, None), False, False),
        ((True, False), False, False),
        (("B", "A"), False, False),
        (([1], [2]), False, False),
    ],
)
def test_kinds_of_axes(values, numeric, logarithmic):
    axis = Axis("option", values)
    assert (axis.numeric, axis.logarithmic) == (numeric, logarithmic)


@pytest.mark.parametrize("values", [(), (1, 1), ([1, 2], [1, 2])])
def test_an_axis_has_values_each_once(values):
    with pytest.raises(InputError, match=r"n_atoms takes the values .*, each once"):
        Axis("n_atoms", values)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ([30, 50], "[30, 50]"),
        (0.001, "0.001"),
        ("é #", "é #"),
        ({"name": "hög"}, '{"name": "hög"}'),
    ],
)
def test_values_read_as_in_yaml(value, text):
    assert value_text(value) == text


@pytest.mark.parametrize("axes", [(), (CROP, SIZE, ATOMS)])
def test_one_option_or_two(axes):
    with pytest.raises(InputError, match="one or two options, not"):
        SweepData("faces", "rank_1", axes, make([ATOMS]).rows)
    with pytest.raises(InputError, match="'faces' has no scores"):
        SweepData("faces", "rank_1", [ATOMS], [])


def test_the_table_has_a_line_for_each_combination_and_method():
    data = make([CROP, SIZE], protocols=("random", "official"), missing=[1])
    lines = rows_of(sweep_csv(data))
    assert len(lines) == 5 * 2 * 2
    columns = "crop size protocol method splits score mean std chance"
    assert list(lines[0]) == columns.split()
    for line, row in zip(lines, data.rows, strict=True):
        assert (line["protocol"], line["method"]) == (row.protocol, row.method)
        assert [line["crop"], line["size"]] == [value_text(value) for value in row.values]
        assert float(line["mean"]) == np.mean(row.scores)
        assert float(line["std"]) == pytest.approx(np.std(row.scores, ddof=1))
        assert (line["splits"], line["score"], line["chance"]) == ("3", "rank_1", "0.01")
    single = rows_of(sweep_csv(make([ATOMS], n_splits=1)))
    assert {line["std"] for line in single} == {""}


def test_an_option_may_be_called_as_a_column_is():
    lines = sweep_csv(make([Axis("score", ("rank_1", "map"))])).splitlines()
    assert lines[0].startswith("option score,protocol,method,splits,score,")
    assert lines[-1].startswith("map,random,pls,3,rank_1,")


def test_the_document_holds_every_split_and_what_is_missing():
    data = make([CROP, SIZE], missing=[1, 5])
    document = json.loads(render_sweep(data)["sweep.json"])
    assert document["axes"] == [
        {"option": "crop", "values": [None, [30, 50, 170, 225]]},
        {"option": "size", "values": [[8, 10], [16, 20], [40, 50]]},
    ]
    assert document["missing"] == [
        {"crop": None, "size": [16, 20]},
        {"crop": [30, 50, 170, 225], "size": [40, 50]},
    ]
    assert [tuple(row["scores"]) for row in document["rows"]] == [r.scores for r in data.rows]
    assert document["rows"][0]["values"] == {"crop": None, "size": [8, 10]}
    assert (document["experiment"], document["score"]) == ("faces", "rank_1")


def test_curves_show_means_and_deviations_in_per_cent(drawn):
    data = make([ATOMS])
    (axes,) = drawn(data).axes
    for number, method in enumerate(("cprl", "pls")):
        found = {row.values[0]: row for row in data.rows if row.method == method}
        rows = [found[n_atoms] for n_atoms in (25, 50, 100)]
        means = [100 * np.mean(row.scores) for row in rows]
        deviations = [100 * np.std(row.scores, ddof=1) for row in rows]
        points, ends = curve(axes, number)
        np.testing.assert_allclose(points, np.column_stack([[25, 50, 100], means]))
        np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2 * np.array(deviations))
        np.testing.assert_allclose(ends.mean(axis=1), means)
        assert (axes.get_ylim()[0] < ends).all()
        assert (axes.get_ylim()[1] > ends).all()
    assert axes.get_ylabel() == "rank-1 (%)"
    assert axes.get_xlabel() == "n_atoms"
    assert axes.get_xscale() == "linear"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["25", "50", "100"]


def test_scores_are_in_per_cent_and_one_split_has_no_deviation(drawn):
    data = replace(make([ATOMS], n_splits=1), score="map")
    (axes,) = drawn(data).axes
    points, ends = curve(axes, 0)
    assert ends is None
    assert points[0, 1] == 100 * data.find("random", "cprl", (25,)).scores[0]
    assert axes.get_ylabel() == "mAP (%)"


def test_decades_are_drawn_on_a_logarithmic_axis(drawn):
    (axes,) = drawn(make([Axis("alpha", (0.1, 0.001, 0.01))])).axes
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.001", "0.01", "0.1"]
    assert len(axes.get_xticks(minor=True)) == 0
    low, high = axes.get_xlim()
    assert low < 0.001 < 0.1 < high < 1


def test_ticks_that_would_hide_one_another_are_left_to_matplotlib(drawn):
    (axes,) = drawn(make([Axis("alpha", (0.0, 0.0001, 1.0))])).axes
    assert list(axes.get_xticks()) != [0.0, 0.0001, 1.0]


def test_other_values_are_drawn_in_the_order_given(drawn):
    (axes,) = drawn(make([SIZE])).axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["[8, 10]", "[16, 20]", "[40, 50]"]
    assert curve(axes, 0)[0][:, 0].tolist() == [0, 1, 2]
    assert axes.get_xticklabels()[0].get_rotation() == 0
    long = Axis("features", tuple({"name": "pixels", "size": [n, n]} for n in range(8)))
    (axes,) = drawn(make([long])).axes
    assert axes.get_xticklabels()[0].get_rotation() == 30
    assert max(len(label.get_text()) for label in axes.get_xticklabels()) == 28


def test_a_panel_for_each_first_value_and_a_row_for_each_protocol(drawn):
    figure = drawn(make([CROP, SIZE], protocols=("random", "official")))
    first, second, third, fourth = figure.axes
    assert first.get_title() == "crop: null"
    assert second.get_title() == "crop: [30, 50, 170, 225]"
    assert third.get_title() == ""
    assert first.get_ylim() == second.get_ylim() != third.get_ylim() == fourth.get_ylim()
    assert first.get_ylabel() == "random\nrank-1 (%)"
    assert third.get_ylabel() == "official\nrank-1 (%)"
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "size", "size"]
    assert [axes.get_legend() is None for axes in figure.axes] == [True, False, True, False]


def test_a_combination_that_is_missing_leaves_a_gap(drawn):
    first, _ = drawn(make([CROP, SIZE], missing=[1, 3, 4, 5])).axes
    points, _ = curve(first, 0)
    assert np.isnan(points[:, 1]).tolist() == [False, True, False]
    # The last panel, empty, names the methods all the same.
    figure = drawn(make([CROP, SIZE], missing=[3, 4, 5]))
    legend = figure.axes[-1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["cprl", "pls"]
    assert legend.get_title().get_text() == "chance: 1.0"


def test_methods_keep_their_look_under_every_protocol(drawn):
    rows = [
        SweepScores((n,), protocol, method, (0.5 + n / 1000,), chance)
        for n in ATOMS.values
        for protocol, methods, chance in (("a", ["x", "y"], 0.02), ("b", ["y", "z"], n / 1000))
        for method in methods
    ]
    upper, lower = drawn(SweepData("faces", "rank_1", [ATOMS], rows)).axes
    look = {
        (axes is upper, container.get_label()): container.lines[0].get_color()
        for axes in (upper, lower)
        for container in axes.containers
    }
    assert look[True, "y"] == look[False, "y"]
    assert len(set(look.values())) == 3
    assert upper.get_legend().get_title().get_text() == "chance: 2.0"
    assert lower.get_legend().get_title().get_text() == "chance: 2.5 to 10.0"


def test_methods_stand_apart_at_one_value(drawn):
    """At equal scores too, each has a place of its own, within the values beside it."""
    rows = [
        SweepScores((size,), "random", method, (0.5, 0.6), 0.01)
        for size in SIZE.values
        for method in "abcd"
    ]
    (axes,) = drawn(SweepData("faces", "rank_1", [SIZE], rows)).axes
    at = [
        container.lines[0].get_transform().transform(curve(axes, number)[0])[:, 0]
        for number, container in enumerate(axes.containers)
    ]
    steps = np.diff(at, axis=0)
    assert (steps > 1).all()
    assert (np.ptp(at, axis=0) < 0.1 * np.diff(at[0]).min()).all()
    centre = axes.transData.transform([[0, 50], [1, 50], [2, 50]])[:, 0]
    np.testing.assert_allclose(np.mean(at, axis=0), centre)


@pytest.mark.parametrize("name", ["_hidden", "broken $x^$"])
def test_any_name_is_drawn(name):
    data = make([Axis(name, (name, "b")), Axis("n", (name, "c"))], methods=[name])
    data = replace(data, experiment=name)
    assert sweep_png(data) != sweep_png(replace(data, experiment="-"))


def test_the_same_bytes_for_the_same_data():
    first, second = (render_sweep(make([CROP, SIZE], missing=[2])) for _ in range(2))
    assert list(first) == ["sweep.csv", "sweep.json", "sweep.png", "sweep.html"]
    assert first == second
    with Image.open(io.BytesIO(first["sweep.png"])) as image:
        assert image.format == "PNG"
        one = image.width
    with Image.open(io.BytesIO(render_sweep(make([SIZE]))["sweep.png"])) as image:
        assert image.width < one


def test_the_page_holds_plot_and_numbers_and_needs_nothing_else():
    data = make([CROP, SIZE], methods=["<b>", "pls"], missing=[4])
    page = render_sweep(data)["sweep.html"].decode()
    assert "<b>" not in page
    assert page.count("<tr>") == 1 + 6
    row = data.find("random", "pls", (None, [16, 20]))
    shown = f"{100 * np.mean(row.scores):.1f} ± {100 * np.std(row.scores, ddof=1):.1f}"
    assert f"<td>{shown}</td>" in page
    assert "1 of 6 combinations are missing" in page
    assert page.count("<td>–</td>") == 3
    assert not re.search(r'(src|href)="(?!data:)', page)
