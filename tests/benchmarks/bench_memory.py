"""Memory of the pages under load: at the start, after a minute, and at the end.

Run from the project's folder::

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_memory.py [--seconds 300] [--others 120]

The model of `bench_serve.py` is made in a workspace of its own (or in ``--workspace``, where it
stays). Each page is served by its command as a process, and four clients ask it one thing after
the other, as fast as it answers: the search page for new drawings, broken ones, more like a
picture, pictures and pages; the map; the annotation and the audit page for questions of ever new
names, answers that are taken back again, pictures and tables. It fails where a page has grown by
more than 5 % and 8 MiB after the first minute, or where a request that is right is not answered.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from bench_serve import EXPERIMENT, ROOT, command, drawing

CLIENTS = 4
MINUTE = 60.0
GROWTH, SLACK = 0.05, 8 * 2**20
Client = Callable[[httpx.Client, int], Iterator[httpx.Response]]
"""Asks for ever; a broken request that is refused as it should be is not given."""


def right(response: httpx.Response, *statuses: int) -> httpx.Response:
    """The response, marked as an error unless its status is one of these (2xx by default)."""
    expected = response.status_code in statuses if statuses else response.is_success
    response.extensions["right"] = expected
    return response


def searching(client: httpx.Client, number: int) -> Iterator[httpx.Response]:
    """Drawings, and all that people do with what is found."""
    rng = np.random.default_rng(number)
    for turn in itertools.count():
        found = right(client.post("/api/search", json=drawing(rng)))
        yield found
        if found.is_success and (matches := found.json()["matches"]):
            some = matches[turn % len(matches)]
            yield right(client.get(some["thumbnail"]))
            yield right(client.get(some["original"]))
            yield right(client.post("/api/search", json={"image": some["row"], "k": 5}))
        yield right(client.post("/api/search", json={"picture": "bm8gcGljdHVyZQ=="}), 415, 422)
        yield right(client.get(f"/made-up/{number}/{turn}"), 404)
        yield right(client.get("/"))
        yield right(client.get("/metrics"))


def looking_at_the_map(client: httpx.Client, number: int) -> Iterator[httpx.Response]:
    """The map of the collection, and its pictures."""
    key = client.get("/api/models").json()["models"][0]["key"]
    while client.get(f"/api/map/{key}").status_code == 503:
        time.sleep(0.5)  # it is laid out once
    for turn in itertools.count():
        yield right(client.get("/map"))
        found = right(client.get(f"/api/map/{key}"))
        yield found
        if found.is_success:
            rows = found.json()["images"]["row"]
            row = rows[(7 * turn + number) % len(rows)]
            yield right(client.get(f"/pictures/{key}/image/{row}"))
            yield right(client.get(f"/originals/{key}/image/{row}"))


def fields_of(page: str) -> dict[str, str]:
    """Hidden fields of the first form of a page that asks, and addresses of its pictures."""
    form = page.split('<form id="answer"')[1].split("</form>")[0]
    parts = form.split('<input type="hidden" name="')[1:]
    return {p.split('"')[0]: unescape(p.split('value="')[1].split('"')[0]) for p in parts}


def answering(choice: str, value: str, table: str, query: str) -> Client:
    """A client that answers what a page asks, and takes the answer back."""

    def run(client: httpx.Client, number: int) -> Iterator[httpx.Response]:
        for turn in itertools.count():
            yield right(client.get(f"/ask?annotator=passer-by-{number}-{turn}{query}"))
            asked = right(client.get(f"/ask?annotator=person-{number}{query}"))
            yield asked
            fields = fields_of(asked.text)
            for picture in asked.text.split("<img")[1:3]:
                yield right(client.get(unescape(picture.split('src="')[1].split('"')[0])))
            fields |= {"annotator": f"person-{number}", choice: value, "seconds": "1.5"}
            yield right(client.post("/answer", data=fields), 200, 303)
            yield right(client.post("/undo", data=fields), 200, 303)
            yield right(client.post("/answer", data=fields | {choice: "purple"}), 422)
            yield right(client.get(table))
            yield right(client.get("/"))

    return run


PAGES: dict[str, tuple[tuple[Any, ...], Client]] = {
    "search": (("serve",), searching),
    "map": (("serve",), looking_at_the_map),
    "annotate": (
        ("annotate",),
        answering("easier", "a", "/answers.csv", "&modality=sketch"),
    ),
    "audit": (("audit", "--serve"), answering("verdict", "wrong", "/verdicts.csv", "")),
}


def measure(name: str, address: str, process: psutil.Process, seconds: float) -> bool:
    """Ask one page, print what it takes, and say whether that stays as it is."""
    ask, stop = PAGES[name][1], threading.Event()
    asked: Counter[bool] = Counter()
    wrong: Counter[str] = Counter()
    sizes = [process.memory_info().rss]

    def run(number: int) -> None:
        with httpx.Client(base_url=address, timeout=120) as client:
            for response in ask(client, number):
                good = bool(response.extensions["right"])
                asked[good] += 1
                if not good:
                    wrong[f"{response.request.url.path} {response.status_code}"] += 1
                if stop.is_set():
                    return

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    first = min(MINUTE, seconds / 2)
    for pause in (first, seconds - first):
        time.sleep(pause)
        sizes.append(process.memory_info().rss)
    stop.set()
    for thread in threads:
        thread.join()
    shown = " -> ".join(f"{size / 2**20:.0f}" for size in sizes)
    print(
        f"{name}: {shown} MiB (start, after {first:.0f} s, after "
        f"{seconds:.0f} s), {asked.total()} requests, {asked[False]} errors",
        flush=True,
    )
    for what, n in wrong.most_common(5):
        print(f"    {n} x {what}")
    grown = sizes[2] - sizes[1]
    return not asked[False] and grown <= max(GROWTH * sizes[1], SLACK)


def main() -> int:
    """Make the model, serve each page, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="of the search page")
    parser.add_argument("--others", type=float, default=120.0, help="of each other page")
    parser.add_argument("--pages", nargs="+", choices=PAGES, default=list(PAGES))
    parser.add_argument("--workspace", type=Path)
    options = parser.parse_args()
    steady = True
    with tempfile.TemporaryDirectory() as folder:
        place = (options.workspace or Path(folder)).absolute()
        if not list(place.glob("runs/serve-hog-*.json")):
            experiment = Path(folder) / "serve-hog.yaml"
            experiment.write_text(EXPERIMENT)
            run = command("run", experiment, "--workspace", place)
            subprocess.run(run, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for name in options.pages:
            words = (*PAGES[name][0], "serve-hog", "--port", 0, "--workspace", place)
            more = () if name in ("search", "map") else ("--database", f"{folder}/{name}.sqlite")
            with subprocess.Popen(
                command(*words, *more), cwd=ROOT, stdout=subprocess.PIPE, text=True
            ) as server:
                try:
                    address = server.stdout.readline().strip()
                    seconds = options.seconds if name == "search" else options.others
                    steady &= measure(name, address, psutil.Process(server.pid), seconds)
                finally:
                    server.terminate()
    print(f"no page grows after its first minute, without an error: {'yes' if steady else 'NO'}")
    return 0 if steady else 1


if __name__ == "__main__":
    sys.exit(main())
