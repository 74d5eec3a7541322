"""A moving picture of the search page while one of the twenty plain drawings is made.

cppcl serve emoji
python tests/benchmarks/drawings/moving_picture.py --address http://127.0.0.1:8766/
    [--title fish] [--file docs/page.gif]
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

from PIL import Image

TESTS = Path(__file__).parents[2]
for folder in (TESTS / "benchmarks/drawings", TESTS / "deployments"):
    sys.path.insert(0, str(folder))

from browsing import launched, opened  # noqa: E402
from plain_drawings import DRAWINGS, Stroke  # noqa: E402

WIDTH = 720
N_COLOURS = 64
FRAMES_A_STROKE = 3
DRAWING_MS, FOUND_MS, LAST_MS = 140, 700, 2500


def frame(page: Any) -> Image.Image:
    """The upper part of the page, reduced."""
    shot = Image.open(
        io.BytesIO(page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": 800}))
    )
    small = shot.convert("RGB").resize((WIDTH, WIDTH * 800 // 1280), Image.Resampling.LANCZOS)
    return small.quantize(N_COLOURS, dither=Image.Dither.NONE)


def made(page: Any, strokes: list[Stroke]) -> tuple[list[Image.Image], list[int]]:
    """Frames and milliseconds of each."""
    area = page.locator("#canvas").bounding_box()
    frames, durations = [frame(page)], [FOUND_MS]
    for stroke in strokes:
        places = [
            (area["x"] + x * area["width"], area["y"] + y * area["width"]) for x, y in stroke
        ]
        page.mouse.move(*places[0])
        page.mouse.down()
        step = max(1, len(places) // FRAMES_A_STROKE)
        for number, place in enumerate(places[1:], start=1):
            page.mouse.move(*place)
            if number % step == 0 and number + 1 < len(places):
                frames.append(frame(page))
                durations.append(DRAWING_MS)
        page.mouse.up()
        page.wait_for_selector("#results[aria-busy=false]")
        page.wait_for_selector("#matches li")
        page.wait_for_timeout(400)
        frames.append(frame(page))
        durations.append(FOUND_MS)
    durations[-1] = LAST_MS
    return frames, durations


def main() -> None:
    """Draw and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="of the search page")
    parser.add_argument("--title", default="fish", help="of a drawing in plain_drawings.py")
    parser.add_argument("--file", type=Path, default=Path("docs/page.gif"))
    options = parser.parse_args()
    drawing = next(d for d in DRAWINGS if d.title == options.title)
    with launched() as chromium, opened(chromium, "desktop") as page:
        page.goto(options.address)
        page.wait_for_selector("#examples img")
        frames, durations = made(page, drawing.strokes)
    frames[0].save(
        options.file, save_all=True, append_images=frames[1:], duration=durations, loop=0
    )
    print(f"{options.file}: {len(frames)} frames, {options.file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
