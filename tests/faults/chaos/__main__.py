"""Faults by the hundred, put into a store and into a whole chain of stages.

Run from the project's folder::

    python tests/faults/chaos [--store 500] [--stages 50] [--chain 50] [--seed 0] [--share I/N]
                              [--only NUMBER ...] [--json FILE] [--read FILE ...] [--markdown FILE]

``--store`` puts faults into a store, one after the other (`store_faults`); ``--stages`` kills a
process that runs all stages of an experiment (`stage_faults`); ``--chain`` kills what takes part
in runs with Prefect and Dask (`chain_faults`). The same seed gives the same faults;
``--only`` does some of them again, and ``--share 0/4`` every fourth, beginning with the first, so
that four processes do all. ``--json`` appends a line for each; ``--read`` takes the outcomes from
such files instead. ``--markdown docs/reliability.md`` writes the tables of outcomes between the
marks of that page. The exit code is 1 if any outcome is wrong. A process that takes more than two
minutes counts as hung, or ``--patience`` times that on a busy machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import children
from outcomes import FaultOutcome, markdown, write_section


def main() -> int:
    """Run the chosen parts; 1 if any outcome is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--store", type=int, default=0, metavar="N", help="faults in a store")
    parser.add_argument("--stages", type=int, default=0, metavar="N", help="kills of all stages")
    parser.add_argument("--chain", type=int, default=0, metavar="N", help="faults in whole runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", default="0/1", metavar="I/N", help="every N-th fault, from I")
    parser.add_argument("--read", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument(
        "--only", type=int, nargs="+", metavar="NUMBER", help="some of the faults, from 0"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="every fault and its outcome")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="page with the table")
    parser.add_argument("--patience", type=float, default=1, metavar="FACTOR")
    options = parser.parse_args()
    children.TIMEOUT_S *= options.patience
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # children are forked: no threads before
    found: dict[str, list[FaultOutcome]] = read(options.read)
    with tempfile.TemporaryDirectory(prefix="cppcl-chaos-") as folder:
        if options.store and not options.read:
            import zarr  # noqa: F401  imported once here, and not used: children are forked
            from store_faults import Harness

            store = Harness(Path(folder)).faults(options.store, options.seed)
            found["store"] = carry_out("store", store, options)
        if options.stages and not options.read:
            from stage_faults import Stages

            stages = Stages(Path(folder)).faults(options.stages, options.seed)
            found["stages"] = carry_out("stages", stages, options)
        if options.chain and not options.read:
            from chain_faults import Runs

            with Runs(Path(folder)) as runs:
                chain = runs.faults(options.chain, options.seed)
                found["chain"] = carry_out("chain", chain, options)
    if options.markdown:
        for part, outcomes in found.items():
            asked = getattr(options, part) or len(outcomes)
            write_section(options.markdown, part, markdown(part, outcomes, asked, options.seed))
    wrong = sum(bool(outcome.wrong) for outcomes in found.values() for outcome in outcomes)
    print(f"{sum(map(len, found.values()))} faults, {wrong} with a wrong outcome")
    return 1 if wrong else 0


def carry_out(
    part: str, faults: Iterable[Callable[[], FaultOutcome]], options: argparse.Namespace
) -> list[FaultOutcome]:
    """Do the faults one by one; each outcome is printed and written at once."""
    outcomes = []
    started = time.monotonic()
    first, every = map(int, options.share.split("/"))
    for number, fault in enumerate(faults):
        if number % every != first or (options.only and number not in options.only):
            continue
        outcome = fault()
        outcomes.append(outcome)
        if outcome.wrong or part == "chain" or options.only:
            print(f"{part} {number}: {dataclasses.asdict(outcome)}", flush=True)
        if options.json:
            line = json.dumps({"part": part, "number": number, **dataclasses.asdict(outcome)})
            with options.json.open("a") as stream:
                stream.write(line + "\n")
    print(f"{part}: {len(outcomes)} faults in {time.monotonic() - started:.0f} s", flush=True)
    return outcomes


def read(files: list[Path]) -> dict[str, list[FaultOutcome]]:
    """Outcomes that were written before, in the order of their numbers."""
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    found: dict[str, list[FaultOutcome]] = {}
    for line in sorted(lines, key=lambda line: int(line["number"])):
        part, _ = line.pop("part"), line.pop("number")
        found.setdefault(part, []).append(FaultOutcome(**line))
    return found


if __name__ == "__main__":
    sys.exit(main())
