import base64
import io
import subprocess
import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from cppcl.report import MethodResult, ProtocolResult, ResultGrid
from cppcl.report.figures import (
    RIGHT,
    WRONG,
    cumulative_match_png,
    grid_png,
    history_png,
    precision_recall_png,
)
from cppcl.report.thumbnails import THUMBNAIL_SIZE, thumbnail, thumbnail_uri


def pixels(png):
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def near(array, colour):
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int((np.abs(array - wanted).max(axis=2) < 12).sum())


def test_the_curve_is_drawn_where_it_is():
    def height(level):
        methods = {"only": MethodResult([{"map": level}], np.full(101, level))}
        second = {"top": MethodResult([{"map": 1.0}], np.ones(101))}
        array = pixels(precision_recall_png(ProtocolResult("p", "", {}, methods | second)))
        blue = np.abs(array - [0, 0x72, 0xB2]).max(axis=2) < 12
        counts = blue[:, : array.shape[1] // 2].sum(axis=1)
        return counts.argmax() / array.shape[0]

    # Of the axis from 0 to about 1, which takes up some 85 % of the height.
    assert height(0.25) - height(0.75) == pytest.approx(0.4, abs=0.06)


def test_frames_tell_right_from_wrong(protocol):
    def frames(correct):
        queries = [
            replace(query, nearest=[replace(n, correct=correct) for n in query.nearest])
            for query in protocol.grid.queries[:2]
        ]
        blank = [
            replace(
                q, nearest=[replace(n, picture=np.full_like(n.picture, 255)) for n in q.nearest]
            )
            for q in queries
        ]
        array = pixels(grid_png(ResultGrid("m", 0, blank)))
        return near(array, RIGHT), near(array, WRONG)

    green, none = frames(True)
    no_green, red = frames(False)
    assert green > 5000
    assert red > 3000
    assert none < 50
    assert no_green < 50


def test_grid_of_unequal_rows_and_odd_labels(protocol):
    queries = list(protocol.grid.queries[:2])
    queries[0] = replace(queries[0], label="类 $x^$ " + "long " * 10, nearest=())
    assert pixels(grid_png(ResultGrid("m", 0, queries))).shape[2] == 3
    assert pixels(grid_png(ResultGrid("m", 0, []))).shape[2] == 3


@pytest.mark.parametrize("name", ["_hidden", "broken $x^$", "10 $ and 20 $"])
def test_any_name_stands_in_the_legend(name):
    # An unread or hidden name raises, or warns that there is nothing to put into the legend.
    method = MethodResult([{"map": 1.0}], np.ones(101))
    named, unnamed = (
        pixels(precision_recall_png(ProtocolResult("p", "", {}, {text: method})))
        for text in (name, "-")
    )
    assert (named != unnamed).any()


def test_nothing_to_draw():
    protocol = ProtocolResult("p", "", {}, {"a": MethodResult([{"map": 1.0}], np.ones(101))})
    assert cumulative_match_png(protocol) is None
    assert history_png(protocol) is None


def test_a_panel_for_each_kind_of_curve():
    def size(history):
        method = MethodResult([{"map": 1.0}], np.ones(101), history=history)
        return pixels(history_png(ProtocolResult("p", "", {}, {"a": method}))).shape[0]

    one = size({"v/sketch": [1, 2], "v/image": [2, 3]})
    three = size({"objective": [3, 1], "gamma": [1, 2], "v/sketch": [1, 2], "v/image": [2, 3]})
    assert three > 1.5 * one


def test_the_users_style_changes_nothing(protocol):
    plain = precision_recall_png(protocol)
    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30, "savefig.dpi": 20}):
        assert precision_recall_png(protocol) == plain
        assert mpl.rcParams["font.size"] == 30


def test_importing_reports_loads_nothing_heavy_and_rendering_leaves_pyplot_alone():
    code = """if True:
        import sys, cppcl.report
        print([m for m in ("matplotlib", "PIL", "jinja2", "yaml", "scipy") if m in sys.modules])
        import numpy as np
        from cppcl.report.figures import precision_recall_png
        from cppcl.report import MethodResult, ProtocolResult
        method = MethodResult([{"map": 1.0}], np.ones(101))
        precision_recall_png(ProtocolResult("p", "", {}, {"a": method}))
        print("matplotlib.pyplot" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "False"]


def test_proportions_are_kept_on_white():
    picture = np.zeros((50, 200, 3), np.uint8)
    picture[..., 0] = 200
    array = np.asarray(thumbnail(picture))
    assert array.shape == (THUMBNAIL_SIZE, THUMBNAIL_SIZE, 3)
    red = (array == [200, 0, 0]).all(axis=2)
    white = (array == 255).all(axis=2)
    assert red.any(axis=1).sum() == 24
    assert red.any(axis=0).sum() == 96
    assert (red | white).all()


def test_uri_shows_the_picture_within_its_bound():
    picture = np.random.default_rng(0).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    head, _, content = thumbnail_uri(picture).partition(",")
    png = base64.b64decode(content)
    assert head == "data:image/png;base64"
    assert len(png) < 96 * 96 + 1000
    shown = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(float)
    assert np.abs(shown - np.asarray(thumbnail(picture))).mean() < 12


def test_one_pixel_and_a_line():
    for shape in ((1, 1, 3), (1, 500, 3), (700, 1, 3)):
        assert thumbnail(np.zeros(shape, np.uint8)).size == (96, 96)
