"""Photographs made of a drawing, light, shadow, paper and noise; what was drawn must come back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.ndimage import binary_dilation, rotate

from cppcl.errors import PictureError
from cppcl.pictures.photographs import clean_photograph, darkness_on_paper
from cppcl.pictures.ruled_lines import common_slope, ruled_rows, without_ruled_lines

HEIGHT, WIDTH = 768, 1024
Gray = NDArray[np.floating]


def drawn(pen: int = 7) -> NDArray[np.bool_]:
    """A house with a sun, as strokes."""
    page = Image.new("L", (WIDTH, HEIGHT), 0)
    draw = ImageDraw.Draw(page)
    draw.rectangle((300, 330, 640, 620), outline=255, width=pen)
    draw.line((280, 340, 470, 170, 660, 340), fill=255, width=pen, joint="curve")
    draw.rectangle((430, 470, 510, 620), outline=255, width=pen)
    draw.ellipse((690, 130, 790, 230), outline=255, width=pen)
    return np.asarray(page) > 0


def ruled(
    distance: int = 60, thickness: int = 3, degrees: float = 0.0, *, squared: bool = False
) -> NDArray[np.bool_]:
    """Lines over the whole page."""
    big = np.zeros((2 * HEIGHT, 2 * WIDTH))
    for first in range(distance // 2, 2 * WIDTH, distance):
        big[first : first + thickness] = 1
        if squared:
            big[:, first : first + thickness] = 1
    turned = rotate(big, degrees, reshape=False, order=1)
    top, left = HEIGHT // 2, WIDTH // 2
    return turned[top : top + HEIGHT, left : left + WIDTH] > 0.5


def photograph(
    strokes: NDArray[np.bool_],
    *,
    lines: NDArray[np.bool_] | None = None,
    light: Gray | float = 0.85,
    pencil: float = 0.5,
    noise: float = 0.01,
) -> Any:
    """Grey pencil on paper in some light, as a camera sees it."""
    paper = np.ones((HEIGHT, WIDTH))
    if lines is not None:
        paper[lines] *= 0.72
    paper[strokes] *= 1 - pencil
    seen = paper * light + noise * np.random.default_rng(0).standard_normal(paper.shape)
    return np.repeat((255 * np.clip(seen, 0, 1)).astype(np.uint8)[:, :, None], 3, axis=2)


def gradient() -> Gray:
    """Light from one corner, a third of it at the other."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    return 0.95 - 0.6 * (rows / HEIGHT + columns / WIDTH) / 2


def shadow() -> Gray:
    """The hard edge of a hand's shadow across the drawing."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    return np.where(columns + 0.5 * rows > 800, 0.45, 0.9)


def agreement(found: Any, wanted: Any) -> tuple[float, float]:
    """Shares of the strokes found that were drawn, and of the drawn that were found."""
    here, there = found[:, :, 0] < 128, wanted[:, :, 0] < 128
    reach = np.ones((5, 5))
    precision = (here & binary_dilation(there, reach)).sum() / here.sum()
    recall = (there & binary_dilation(here, reach)).sum() / there.sum()
    return float(precision), float(recall)


@pytest.fixture(scope="module")
def wanted() -> Any:
    """The drawing scanned: black on white, even light, no noise."""
    return clean_photograph(photograph(drawn(), light=1.0, pencil=1.0, noise=0.0))


LIGHTS: dict[str, Callable[[], Gray | float]] = {
    "even": lambda: 0.85,
    "gradient": gradient,
    "shadow": shadow,
    "both": lambda: gradient() * shadow(),
}


def test_a_scan_is_cut_out_and_centred(wanted: Any) -> None:
    assert wanted.shape == (256, 256, 3)
    assert wanted.dtype == np.uint8
    dark = wanted[:, :, 0] < 128
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    # 510 by 490 pixels were drawn, with a margin of 6 per cent on each side.
    assert columns[-1] - columns[0] == pytest.approx(256 / 1.12, abs=3)
    assert abs(columns[0] - (255 - columns[-1])) <= 2
    assert abs(rows[0] - (255 - rows[-1])) <= 2
    assert (wanted[:8] == 255).all()


@pytest.mark.parametrize("light", LIGHTS)
def test_light_and_shadow_are_divided_out(light: str, wanted: Any) -> None:
    found = clean_photograph(photograph(drawn(), light=LIGHTS[light]()))
    precision, recall = agreement(found, wanted)
    assert precision > 0.99
    assert recall > 0.99


def test_faint_pencil_in_noise(wanted: Any) -> None:
    seen = photograph(drawn(), light=gradient(), pencil=0.3, noise=0.02)
    precision, recall = agreement(clean_photograph(seen), wanted)
    assert precision > 0.98
    assert recall > 0.98


@pytest.mark.parametrize("degrees", [0.0, 1.7, -5.0])
@pytest.mark.parametrize("squared", [False, True], ids=["ruled", "squared"])
def test_lines_of_the_paper_are_taken_away(degrees: float, squared: bool, wanted: Any) -> None:
    lines = ruled(degrees=degrees, squared=squared)
    seen = photograph(drawn(), lines=lines, light=gradient(), pencil=0.55)
    precision, recall = agreement(clean_photograph(seen), wanted)
    assert precision > 0.95
    assert recall > 0.9


def test_lines_are_taken_away_and_what_crosses_them_stays() -> None:
    lines, strokes = ruled(), drawn()
    left = without_ruled_lines(lines | strokes)
    assert (left & ~strokes).sum() < 0.02 * lines.sum()
    assert (left & strokes).sum() > 0.9 * strokes.sum()
    assert (ruled_rows(lines) == lines).all()


@pytest.mark.parametrize("degrees", [-6.0, -1.0, 0.0, 3.0])
def test_the_slope_of_lines(degrees: float) -> None:
    slope = common_slope(ruled(degrees=degrees))
    assert slope == pytest.approx(-np.tan(np.deg2rad(degrees)), abs=0.004)


@pytest.mark.parametrize(
    "rows",
    [(300,), (300, 500), (100, 200, 450), (100, 108, 116, 124)],
    ids=["horizon", "table", "uneven", "hatching"],
)
def test_lines_that_were_drawn_stay(rows: tuple[int, ...]) -> None:
    strokes = drawn()
    for row in rows:
        strokes[row : row + 5] = True
    assert (without_ruled_lines(strokes) == strokes).all()


def test_short_lines_are_not_the_papers() -> None:
    strokes = np.zeros((HEIGHT, WIDTH), np.bool_)
    for row in range(100, 700, 100):
        strokes[row : row + 4, 300:700] = True
    assert (without_ruled_lines(strokes) == strokes).all()


def test_darkness_is_a_share_of_the_papers_light() -> None:
    seen = photograph(drawn(15), light=gradient(), pencil=0.4, noise=0.0)
    inside = ~binary_dilation(~drawn(15), np.ones((9, 9)))
    assert darkness_on_paper(seen)[inside].mean() == pytest.approx(0.4, abs=0.02)


def blackboard() -> Any:
    return 255 - photograph(drawn(), light=0.9, pencil=0.9)


def scribble() -> Any:
    page = np.zeros((HEIGHT, WIDTH), np.bool_)
    for column in range(0, WIDTH, 16):
        page[:, column : column + 8] = True
    return photograph(page)


REFUSED = {
    "empty": (lambda: photograph(np.zeros((HEIGHT, WIDTH), np.bool_)), "no strokes on the paper"),
    "empty, in shadow": (
        lambda: photograph(np.zeros((HEIGHT, WIDTH), np.bool_), light=gradient(), noise=0.03),
        "no strokes on the paper",
    ),
    "ruled, empty": (
        lambda: photograph(np.zeros((HEIGHT, WIDTH), np.bool_), lines=ruled()),
        "no strokes on the paper",
    ),
    "a dot": (
        lambda: photograph(np.pad(np.ones((4, 4), np.bool_), ((300, 464), (500, 520)))),
        "no strokes on the paper",
    ),
    "one value": (lambda: np.full((64, 64, 3), 200, np.uint8), "no strokes on the paper"),
    "night": (lambda: photograph(drawn(), light=0.1), "mostly dark"),
    "blackboard": (blackboard, "mostly dark"),
    "all dark": (scribble, "per cent of it is dark, more than strokes cover"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_and_why(what: str) -> None:
    make, reason = REFUSED[what]
    with pytest.raises(PictureError, match=rf"page\.jpg: .*{reason}"):
        clean_photograph(make(), name="page.jpg")


def test_a_search_by_a_photograph_finds_what_the_sketch_finds(
    finished_run: Any, tmp_path: Path, cppcl: Callable[..., Any]
) -> None:
    sketch = finished_run.shapes / "sketches/square/0.png"
    with Image.open(sketch) as opened:
        page = np.asarray(opened.convert("L").resize((HEIGHT, HEIGHT), Image.Resampling.NEAREST))
    strokes = np.zeros((HEIGHT, WIDTH), np.bool_)
    strokes[:, 128 : 128 + HEIGHT] = page < 128
    photo = tmp_path / "page.jpg"
    Image.fromarray(photograph(strokes, light=gradient())).save(photo, quality=90)
    command = ("--json", "--workspace", finished_run.workspace.root)
    by_sketch = cppcl("search", "tiny", sketch, *command).json()
    by_photo = cppcl("search", "tiny", photo, "--photo", *command).json()
    assert by_sketch[0]["label"] == by_photo[0]["label"] == "square"
    Image.fromarray(photograph(np.zeros_like(strokes))).save(photo)
    refused = cppcl("search", "tiny", photo, "--photo", *command)
    assert refused.code == 1
    assert f"{photo}: there are no strokes on the paper" in refused.stderr
