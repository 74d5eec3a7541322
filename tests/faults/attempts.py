"""What was tried to break, by area, and how often it survived: the table of docs/reliability.md.

Run from the project's folder::

    python tests/faults/attempts.py [--area NAME ...] [--faults SHARE] [--json FILE]
                                    [--read FILE ...] [--markdown docs/reliability.md]

It runs the tests that hand over what is hostile or damaged, and properties of what Hypothesis and
Schemathesis draw, and counts what each tries (`attempts_plugin`); and the faults of
``python tests/faults/chaos``, which it counts too. ``--json`` appends a line for each test and
fault; ``--read`` takes the lines of such files, or of the chaos, instead, so that areas may be
run apart. ``--faults 0.1`` leaves nine faults of ten out, and ``--faults 0`` all.
The exit code is 1 if anything broke.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FAULTS = Path(__file__).parent
ROOT = FAULTS.parents[1]
sys.path.insert(0, str(FAULTS / "chaos"))

from outcomes import write_section  # noqa: E402


@dataclass(frozen=True)
class Area:
    """Where something is tried: tests, and parts of the chaos with their number of faults."""

    what: str
    tests: tuple[str, ...]
    chaos: tuple[tuple[str, int], ...] = ()


AREAS = {
    "files": Area(
        "pictures, drawings, folders, tables, archives, weights, YAML",
        (
            "tests/cppcl/pictures/test_decoding.py",
            "tests/cppcl/pictures/test_raster.py",
            "tests/cppcl/pictures/test_svg_limits.py",
            "tests/cppcl/pictures/test_svg_styles.py",
            "tests/cppcl/test_regular_files.py",
            "tests/cppcl/datasets/test_folder.py",
            "tests/cppcl/datasets/test_matrices.py",
            "tests/cppcl/datasets/test_table.py",
            "tests/cppcl/audit/test_verdicts.py",
            "tests/cppcl/features/networks/test_weights.py",
            "tests/cppcl/features/networks/test_caffemodel.py",
            "tests/cppcl/features/test_precomputed.py",
            "tests/flows/configuration/test_load.py",
        ),
    ),
    "store": Area(
        "kills, full disks, errors, damage, hostile artifacts, several at once",
        (
            "tests/storage/test_at_once.py",
            "tests/storage/test_hostile.py",
            "tests/storage/test_special_files.py",
            "tests/storage/test_reading.py",
            "tests/storage/test_repair.py",
            "tests/storage/test_surroundings.py",
        ),
        (("store", 500),),
    ),
    "pages": Area(
        "requests of strangers, of other sites and of what the description allows",
        (
            "tests/deployments/serve/test_serve_interface.py",
            "tests/deployments/serve/test_serve_refusals.py",
            "tests/deployments/annotate/test_annotate_refusals.py",
            "tests/deployments/web",
        ),
    ),
    "workflow": Area(
        "kills, stops and cut networks of runs, flows, workers and hosts",
        (
            "tests/deployments/commands/test_early_refusals.py",
            "tests/faults/test_kills.py",
            "tests/faults/test_signals.py",
        ),
        (("stages", 50), ("chain", 50)),
    ),
    "library": Area(
        "hostile arguments of every public function, and properties of drawn ones",
        (
            "tests/cppcl/test_hostile_arguments.py",
            "tests/cppcl/curriculum/test_orders.py",
            "tests/cppcl/curriculum/test_pairs.py",
            "tests/cppcl/curriculum/test_scores.py",
            "tests/cppcl/learning/test_preparation.py",
            "tests/cppcl/retrieval",
        ),
    ),
}
CHAOS = {part: name for name, area in AREAS.items() for part, _ in area.chaos}
"""Area of each part of the chaos."""


@dataclass(frozen=True)
class Tried:
    """Attempts of one test, or one fault of the chaos."""

    area: str
    by: str
    tried: int
    broken: int


def main() -> int:
    """Run or read the areas; 1 if anything broke."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--area", choices=AREAS, nargs="+", default=list(AREAS))
    parser.add_argument("--faults", type=float, default=1.0, metavar="SHARE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every test and fault")
    parser.add_argument("--read", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="page with the table")
    options = parser.parse_args()
    found = read(options.read) if options.read else []
    with tempfile.TemporaryDirectory(prefix="cppcl-attempts-") as folder:
        for name in () if options.read else options.area:
            of_area = list(carried_out(name, AREAS[name], Path(folder), options.faults))
            found += of_area
            print(f"{name}: {summary(of_area)}", flush=True)
            if options.json:
                with options.json.open("a") as stream:
                    stream.writelines(json.dumps(vars(one)) + "\n" for one in of_area)
    if options.markdown:
        write_section(options.markdown, "attempts", markdown(found))
    print(summary(found))
    for one in found:
        if one.broken:
            print(f"broken: {one.by}")
    return int(any(one.broken for one in found))


def carried_out(name: str, area: Area, folder: Path, share: float) -> Iterator[Tried]:
    """Run what belongs to an area, and this share of its faults."""
    counted = folder / f"{name}.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "attempts_plugin"]
    run([*command, "-p", "no:cacheprovider", "--attempts", str(counted), *area.tests])
    for line in counted.read_text().splitlines():
        test = json.loads(line)
        yield Tried(name, test["test"], test["tried"], test["broken"])
    for part, number in area.chaos if share else ():
        outcomes, asked = folder / f"{part}.json", max(1, round(share * number))
        run([sys.executable, str(FAULTS / "chaos"), f"--{part}", str(asked), "--json", outcomes])
        yield from faults(outcomes.read_text().splitlines())


def run(command: list[str | Path]) -> None:
    """Run a command that tells of failures in its file, not by its exit code alone."""
    paths = f"{FAULTS}{os.pathsep}{ROOT}"
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=False)


def faults(lines: Iterable[str]) -> Iterator[Tried]:
    """Faults of the chaos, as it writes them."""
    for line in lines:
        one = json.loads(line)
        by = f"chaos, {one['part']} {one['number']}"
        yield Tried(CHAOS[one["part"]], by, 1, int(bool(one["wrong"])))


def read(files: Iterable[Path]) -> list[Tried]:
    """What was written before, here or by the chaos; a later file replaces what it has again."""
    found: dict[tuple[str, str], list[Tried]] = {}
    for file in files:
        lines = file.read_text().splitlines()
        here = [Tried(**json.loads(line)) for line in lines if '"part"' not in line]
        here += faults(line for line in lines if '"part"' in line)
        of_file: dict[tuple[str, str], list[Tried]] = {}
        for one in here:  # a test of several operations is there several times
            of_file.setdefault((one.area, one.by), []).append(one)
        found |= of_file
    return [one for again in found.values() for one in again]


def summary(found: Iterable[Tried]) -> str:
    """Tried, survived and broken, in words."""
    found = list(found)
    tried, broken = (sum(getattr(one, name) for one in found) for name in ("tried", "broken"))
    return f"{tried:,} tried, {tried - broken:,} survived, {broken} broken"


def markdown(found: list[Tried]) -> str:
    """Table of the areas."""
    lines = [
        f"`python tests/faults/attempts.py`: {summary(found)}.",
        "",
        "| area | what is tried | tests | faults | tried | survived | broken |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, area in AREAS.items():
        here = [one for one in found if one.area == name]
        n_faults = sum(one.by.startswith("chaos, ") for one in here)
        tried, broken = sum(one.tried for one in here), sum(one.broken for one in here)
        lines.append(
            f"| {name} | {area.what} | {len(here) - n_faults} | {n_faults} | {tried:,} | "
            f"{tried - broken:,} | {broken} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
