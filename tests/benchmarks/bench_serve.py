"""The search page under load: time of answers, refusals, memory.

Run from the project's folder::

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_serve.py [--rate 10] [--seconds 60]

A model of the embedded pictures by HOG is made in a workspace of its own (or in ``--workspace``,
where it stays), and served by ``cppcl serve`` as a process. Drawings of 256 x 256 pixels, each
another one, are sent over the loopback at a fixed rate, whether or not earlier ones were answered,
and a time counts from the moment at which the drawing was due. Then 50 are sent at once. With
``--model`` any stored model of the workspace is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
import psutil
from PIL import Image, ImageDraw

ROOT = Path(__file__).parents[2]
EXPERIMENT = """
name: serve-hog
dataset: {name: emoji}
features:
  sketch: {name: hog}
  image: {name: hog}
protocols:
  instance:
    split: {rule: instance, n_train: 457, seeds: [0]}
    methods:
      ridge_cca: {n_directions: 100, ridge: 0.3}
"""
GOAL = 0.5
"""Seconds that 95 of 100 answers may take."""


def drawing(rng: np.random.Generator) -> dict[str, str]:
    """A question with a picture of random strokes."""
    picture = Image.new("RGB", (256, 256), "white")
    pen = ImageDraw.Draw(picture)
    for _ in range(8):
        pen.line([tuple(p) for p in rng.integers(20, 236, (4, 2)).tolist()], "black", 5)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return {"picture": base64.b64encode(file.getvalue()).decode()}


async def timed(client: httpx.AsyncClient, asked: dict[str, str], due: float) -> tuple[float, int]:
    """Seconds from `due` to the answer, and its status; 0 for none."""
    try:
        response = await client.post("/api/search", json=asked)
        status = response.status_code
    except httpx.HTTPError:
        status = 0
    return time.perf_counter() - due, status


async def at_a_rate(
    client: httpx.AsyncClient, questions: list[dict[str, str]], rate: float
) -> list[tuple[float, int]]:
    """Send questions at a fixed rate."""
    begun, tasks = time.perf_counter(), []
    for number, asked in enumerate(questions):
        due = begun + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(timed(client, asked, due)))
    return await asyncio.gather(*tasks)


async def at_once(
    client: httpx.AsyncClient, questions: list[dict[str, str]]
) -> list[tuple[float, int]]:
    """Send questions all at once."""
    now = time.perf_counter()
    return await asyncio.gather(*(timed(client, asked, now) for asked in questions))


def told(results: list[tuple[float, int]]) -> str:
    """Statuses, and times of the answers with status 200."""
    good = [1000 * seconds for seconds, status in results if status == 200]
    counts = Counter(str(status) for _, status in results)
    middle, high = np.percentile(good, [50, 95]) if good else (np.nan, np.nan)
    statuses = ", ".join(f"{n} x {status}" for status, n in sorted(counts.items()))
    return f"{statuses}; p50 {middle:.0f} ms, p95 {high:.0f} ms, longest {max(good):.0f} ms"


def command(*arguments: object) -> list[str]:
    """Command line of ``cppcl``."""
    return [sys.executable, "-m", "deployments.cli", *map(str, arguments)]


def measure(address: str, process: psutil.Process, rate: float, seconds: float) -> bool:
    """Print what is measured; whether the goal is met."""
    rng = np.random.default_rng(0)

    async def run() -> bool:
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
            await at_a_rate(client, [drawing(rng) for _ in range(20)], rate)
            before = process.memory_info().rss
            steady = await at_a_rate(
                client, [drawing(rng) for _ in range(round(rate * seconds))], rate
            )
            print(f"{rate:g} a second for {seconds:g} s: {told(steady)}")
            after = process.memory_info().rss
            print(f"50 at once: {told(await at_once(client, [drawing(rng) for _ in range(50)]))}")
            last = process.memory_info().rss
            sizes = " -> ".join(f"{n / 2**20:.0f}" for n in (before, after, last))
            print(f"resident memory: {sizes} MiB (before, after the first, after the second)")
        good = [s for s, status in steady if status == 200]
        return len(good) == len(steady) and float(np.percentile(good, 95)) <= GOAL

    return asyncio.run(run())


def main() -> int:
    """Make the model, serve it, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=10.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--model", default="serve-hog", help="a stored model (default: made here)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = (options.workspace or Path(folder)).absolute()
        if options.model == "serve-hog" and not list(place.glob("runs/serve-hog-*.json")):
            experiment = Path(folder) / "serve-hog.yaml"
            experiment.write_text(EXPERIMENT)
            run = command("run", experiment, "--workspace", place)
            subprocess.run(run, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        begun = time.perf_counter()
        with subprocess.Popen(
            command("serve", options.model, "--port", 0, "--workspace", place),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            try:
                assert server.stdout
                address = server.stdout.readline().strip()
                print(f"{options.model}: ready after {time.perf_counter() - begun:.1f} s")
                met = measure(address, psutil.Process(server.pid), options.rate, options.seconds)
            finally:
                server.terminate()
    print(f"goal, p95 of at most {1000 * GOAL:.0f} ms without an error: {'yes' if met else 'NO'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
