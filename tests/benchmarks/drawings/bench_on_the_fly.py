"""Drawings of emoji, stroke by stroke on the search page: how soon, how steadily, what is found.

    cppcl run emoji-live && cppcl serve emoji-live
    python tests/benchmarks/drawings/bench_on_the_fly.py --address http://127.0.0.1:8766/
    python tests/benchmarks/drawings/bench_on_the_fly.py --run emoji-live --workspace DIR

Concepts are drawn from those that the first published split of `emoji` does not train on. Some are
drawn by the mouse, a stroke of it for each of the SVG; the one at which 60 % of the ink is reached
is parted there. Of all it is asked what is found at 60 % of the ink, and at the end.
Times count from the moment at which the mouse is lifted, and by the server from the head of the
request. The load of the machine is printed beside them.

With ``--run`` no page is asked: what test drawings find among the test pictures of every split is
read from a run whose protocols are on the fly, with 95 % intervals of a bootstrap over concepts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "deployments"))

from browsing import launched, opened

from cppcl.datasets.emoji import Emoji
from cppcl.datasets.splits import published_split
from cppcl.datasets.unfinished import drawn_shares
from cppcl.pictures.svg_strokes import strokes_of_svg
from cppcl.pictures.timed_sketch import TimedSketch
from cppcl.retrieval.exact import nearest
from storage import Reference
from tasks.samples import open_pictures
from tasks.stages.evaluate import open_test_set
from tasks.workspace import Workspace

SHARE = 0.6
WITHIN = 10
SIDE = 72
"""Of the view box of the drawings."""
N_DRAWS = 2000
"""Of the bootstrap."""
SERVER_TIMES = """
window.serverTimes = [];
const plainFetch = window.fetch;
window.fetch = async (...asked) => {
  const response = await plainFetch(...asked);
  if (String(asked[0]).endsWith("/api/search") && response.ok) {
    response.clone().json().then(({ seconds }) => window.serverTimes.push(1000 * seconds));
  }
  return response;
};
"""
# Milliseconds from the end of the next stroke until results are listed, and painted.
WATCH = """() => {
  const results = document.getElementById("results");
  let lifted = 0;
  document.addEventListener("pointerup", () => { lifted = performance.now(); },
    { capture: true, once: true });
  window.timed = new Promise((resolve) => {
    new MutationObserver(async (_, observer) => {
      if (!lifted || results.getAttribute("aria-busy") !== "false") return;
      observer.disconnect();
      const listed = performance.now() - lifted;
      const images = [...document.querySelectorAll("#matches img")];
      await Promise.all(images.map((image) => image.decode().catch(() => null)));
      requestAnimationFrame(() => setTimeout(() =>
        resolve([listed, performance.now() - lifted, latest.map(({ name }) => name)])));
    }).observe(results, { attributeFilter: ["aria-busy"] });
  });
}"""


# Files of what is found once strokes are there, too.
ADD = """async (strokes) => {
  drawing.set({ strokes: [...drawing.state.strokes, ...strokes.map(densified)], base: null });
  await search();
  return latest.map(({ name }) => name);
}"""


def parted(sketch: TimedSketch) -> tuple[list[Any], int]:
    """Strokes to draw, one of them parted where the share is reached, and how many come first."""
    before = [*sketch.first(SHARE).strokes]
    after = [*sketch.strokes[len(before) :]]
    last, whole = before[-1], sketch.strokes[len(before) - 1]
    # The last point of a parted stroke lies between two of its own.
    if len(last) and not np.array_equal(last, whole):
        after.insert(0, np.concatenate([last[-1:], whole[len(last) - 1 :]]))
    return before + after, len(before)


def added(page: Any, strokes: list[Any]) -> list[str]:
    """Add strokes to the drawing all at once; files of what is shown for it then."""
    points = [[{"x": x / SIDE, "y": y / SIDE, "p": 1} for x, y in s.tolist()] for s in strokes]
    names: list[str] = page.evaluate(ADD, points)
    return names


def draw(page: Any, stroke: Any, area: dict[str, float]) -> tuple[float, float, list[str]]:
    """Draw one stroke with the mouse; milliseconds until results, and their files."""
    places = np.array([area["x"], area["y"]]) + stroke / SIDE * area["width"]
    page.evaluate(WATCH)
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place)
    page.mouse.up()
    listed, painted, names = page.evaluate("window.timed")
    return listed, painted, names


def told(name: str, values: list[float]) -> str:
    """Median and 95th percentile of milliseconds."""
    middle, high = np.percentile(values, [50, 95])
    return f"{name}: median {middle:.0f} ms, p95 {high:.0f} ms ({len(values)})"


def found_early(workspace: Workspace, scored: Any) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Concepts of a split, and which have their picture within ten at 60 % and at the end."""
    inputs = scored.inputs
    test = open_test_set(
        workspace.store, inputs["codes"], inputs["split"], inputs["table"], "groups"
    )
    table = open_pictures(workspace.store, inputs["table"]).table
    shares = drawn_shares(table.column("ids", "sketch"))[test.query_rows]
    rows, _ = nearest(
        test.query_codes, test.gallery_codes, WITHIN, metric=scored.parameters["metric"]
    )
    right = (test.gallery_labels[rows] == test.query_labels[:, None]).any(axis=1)
    concepts = np.unique(test.query_labels).tolist()
    at = [
        dict(zip(test.query_labels[which].tolist(), right[which].tolist(), strict=True))
        for which in (np.isclose(shares, SHARE), shares == 1)
    ]
    return concepts, *(np.array([found[c] for c in concepts]) for found in at)


def tell_run(workspace: Workspace, run: str) -> None:
    """Print what is found early for every method of a run that was asked on the fly."""
    _, record = workspace.find_run(run, "evaluate")
    for protocol, methods in record["evaluations"].items():
        for method, evaluations in methods.items():
            by_concept: dict[Any, list[tuple[bool, bool]]] = {}
            for text in evaluations:
                scored = workspace.store.open(Reference.parse(text))
                for concept, *found in zip(*found_early(workspace, scored), strict=True):
                    by_concept.setdefault(concept, []).append(tuple(found))
            # Of each concept: asked, found early, found at the end, found both times.
            sums = np.array(
                [
                    [len(all_), *np.sum(all_, axis=0), sum(a and b for a, b in all_)]
                    for all_ in by_concept.values()
                ],
                dtype=float,
            )
            n, early, late, both = sums.sum(axis=0)
            draws = np.random.default_rng(0).integers(len(sums), size=(N_DRAWS, len(sums)))
            drawn = sums[draws].sum(axis=1)
            low, high = np.percentile(100 * drawn[:, 3] / drawn[:, 2], [2.5, 97.5])
            of_found = f"{100 * both / late:.1f} % [{low:.1f}, {high:.1f}]"
            print(
                f"{protocol} {method}: right picture within {WITHIN}: {100 * early / n:.1f} % at "
                f"{100 * SHARE:.0f} % of the ink, {100 * late / n:.1f} % at the end; of those "
                f"found at the end {of_found} were found before ({n:.0f} drawings)"
            )


def main() -> None:
    """Draw, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--address", help="of the search page")
    asked.add_argument("--run", help="an experiment that was run on the fly; no page is asked")
    parser.add_argument("--workspace", type=Path, default=Path(".cppcl"))
    parser.add_argument("--n", type=int, default=120, help="drawings")
    parser.add_argument("--timed", type=int, default=12, help="of them drawn with the mouse")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.run:
        tell_run(Workspace(options.workspace), options.run)
        return
    listed, painted, served, kept, loads = [], [], [], [], []
    early, late = [], []
    with tempfile.TemporaryDirectory() as folder:
        root = Emoji().fetch(Path(folder))
        table = Emoji().table(root)
        test = published_split("emoji-instance-0", table).test_sketches
        chosen = np.random.default_rng(options.seed).choice(test, options.n, replace=False)
        rows = table.rows("sketch")[chosen]
        drawings = [
            (
                f"images/{table.groups[row]}.svg",
                strokes_of_svg((root / table.paths[row]).read_text()),
            )
            for row in rows.tolist()
        ]
    with launched() as chromium, opened(chromium, "desktop") as page:
        page.add_init_script(SERVER_TIMES)
        page.goto(options.address)
        page.wait_for_selector("#examples img")
        for _, sketch in drawings[: options.timed]:
            page.evaluate("drawing.clear()")
            page.wait_for_selector("#results[aria-busy=false]")
            area = page.locator("#canvas").bounding_box()
            before: list[str] = []
            for stroke in parted(sketch)[0]:
                first, second, names = draw(page, stroke, area)
                listed.append(first)
                painted.append(second)
                if before:
                    kept.append(np.mean([a == b for a, b in zip(before, names, strict=False)]))
                before = names
            loads.append(os.getloadavg()[0])
        served = page.evaluate("window.serverTimes")
        for right, sketch in drawings:
            page.evaluate("drawing.clear()")
            strokes, n_first = parted(sketch)
            early.append(right in added(page, strokes[:n_first])[:WITHIN])
            late.append(right in added(page, strokes[n_first:])[:WITHIN])
    load = f"load {np.median(loads):.1f} on {os.cpu_count()} cores"
    print(f"{options.timed} drawings by the mouse, {load}")
    for name, values in (("listed", listed), ("painted", painted), ("server", served)):
        print(told(name, values))
    found, n = np.array(late), len(drawings)
    before_end = np.array(early)[found]
    shares = [np.mean(early), found.mean(), before_end.mean()]
    at, end, of_found = (f"{100 * share:.0f} %" for share in shares)
    of_found += f" ± {100 * before_end.std() / max(1, found.sum()) ** 0.5:.0f}"
    print(f"{n} drawings, right picture within {WITHIN}: {at} at {100 * SHARE:.0f} % of the ink")
    print(f"{end} at the end; of those found at the end {of_found} were found before")
    print(f"places that keep their picture from stroke to stroke: {100 * np.mean(kept):.0f} %")


if __name__ == "__main__":
    main()
