"""Twenty plain drawings on the search page, with pointer events: which find what they mean.

    cppcl serve emoji
    python tests/benchmarks/drawings/bench_drawings.py --address http://127.0.0.1:8766/

For each drawing it prints the rank of the first right picture, and what came first; then how many
were right within the first 1, 5 and 10, strictly (the title alone) and with titles that a drawing
this plain does not tell apart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[2]
for folder in (TESTS / "benchmarks/drawings", TESTS / "deployments"):
    sys.path.insert(0, str(folder))

from browsing import launched, opened  # noqa: E402
from plain_drawings import DRAWINGS, Stroke  # noqa: E402


def draw(page: Any, strokes: Iterable[Stroke]) -> None:
    """Draw strokes with the mouse."""
    area = page.locator("#canvas").bounding_box()
    for stroke in strokes:
        places = [
            (area["x"] + x * area["width"], area["y"] + y * area["width"]) for x, y in stroke
        ]
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places[1:]:
            page.mouse.move(*place)
        page.mouse.up()


def rank_of(titles: list[str], right: Iterable[str]) -> int | None:
    """Rank, from 1, of the first title that is right."""
    wanted = set(right)
    return next((rank for rank, title in enumerate(titles, start=1) if title in wanted), None)


def main() -> None:
    """Draw, and print what is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="of the search page")
    options = parser.parse_args()
    strict: list[int | None] = []
    alike: list[int | None] = []
    with launched() as chromium, opened(chromium, "desktop") as page:
        for drawing in DRAWINGS:
            page.goto("about:blank")
            page.goto(options.address)
            page.wait_for_selector("#examples img")
            draw(page, drawing.strokes)
            page.wait_for_selector("#results[aria-busy=false]")
            page.wait_for_selector("#matches li")
            titles = page.evaluate("latest.map((match) => match.title)")
            strict.append(rank_of(titles, [drawing.title]))
            alike.append(rank_of(titles, [drawing.title, *drawing.alike]))
            print(
                f"{drawing.title:16} {strict[-1] or '-':>3} {alike[-1] or '-':>3}  "
                f"{', '.join(titles[:5])}",
                flush=True,
            )
    for name, ranks in (("strictly", strict), ("with those alike", alike)):
        within = [sum(r is not None and r <= k for r in ranks) for k in (1, 5, 10)]
        print(f"{name}: {within[0]}, {within[1]}, {within[2]} of {len(ranks)} within 1, 5, 10")


if __name__ == "__main__":
    main()
