"""Outcomes of faults: as objects, and as the table of a page."""

from __future__ import annotations

import collections
import statistics
from dataclasses import dataclass, field
from pathlib import Path

TITLES = {
    "store": ("fault", "while, or to", "pieces of work left to do, of 13"),
    "stages": ("fault", "during", "seconds of the next run"),
    "chain": ("fault", "when", "seconds from the fault to the end of the run, or of the next one"),
}


@dataclass
class FaultOutcome:
    """The outcome of one fault.

    Attributes
    ----------
    kind : str
        Kind of fault.
    where : str
        Phase of the job, or kind of file that was damaged.
    detail : str
        The fault in full, with its call or file.
    wrong : list of str
        Whatever is not as after an undisturbed job; empty if all is well.
    cost : float
        Pieces of work (artifacts, blocks, rounds) left to do; of a chain, seconds.
    seconds : float
        Duration of everything.
    """

    kind: str
    where: str
    detail: str
    wrong: list[str] = field(default_factory=list)
    cost: float = 0.0
    seconds: float = 0.0


def markdown(part: str, outcomes: list[FaultOutcome], asked: int, seed: int) -> str:
    """Table of outcomes by kind and place."""
    groups = collections.defaultdict(list)
    for outcome in outcomes:
        groups[outcome.kind, outcome.where].append(outcome)
    fault, place, cost = TITLES[part]
    lines = [
        f"| {fault} | {place} | faults | as undisturbed | {cost}: median, most | longest, s |",
        "|---|---|---|---|---|---|",
    ]
    kinds = list(dict.fromkeys(kind for kind, _ in groups))
    for (kind, where), members in sorted(groups.items(), key=lambda row: kinds.index(row[0][0])):
        costs = [member.cost for member in members]
        good = sum(not member.wrong for member in members)
        longest = max(member.seconds for member in members)
        lines.append(
            f"| {kind} | {where} | {len(members)} | {good} | {statistics.median(costs):.0f}, "
            f"{max(costs):.0f} | {longest:.1f} |"
        )
    good = sum(not outcome.wrong for outcome in outcomes)
    command = f"python tests/faults/chaos --{part} {asked} --seed {seed}"
    return "\n".join([f"`{command}`: {good} of {len(outcomes)} ended as undisturbed.", "", *lines])


def write_section(page: Path, part: str, text: str) -> None:
    """Replace the text between the marks of a page."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{page} has no lines {begin!r} and {end!r}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
