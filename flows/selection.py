"""Which stages of the chain run, and which must have run before."""

from __future__ import annotations

from dataclasses import dataclass

from cppcl.errors import InputError
from tasks.stages.contract import Mode
from tasks.stages.names import STAGES


@dataclass(frozen=True)
class Selection:
    """Stages to run.

    Parameters
    ----------
    only : str or None
        Run this stage alone; those before it must be stored.
    start : str or None
        Start here; those before must be stored, this one and all after it are computed anew.
    force : tuple of str
        Compute these anew although they are stored.
    until : str or None
        Stop after this stage; those before it run too.

    Raises
    ------
    InputError
        If a stage does not exist or the options exclude each other.
    """

    only: str | None = None
    start: str | None = None
    force: tuple[str, ...] = ()
    until: str | None = None

    def __post_init__(self) -> None:
        for stage in (self.only, self.start, self.until, *self.force):
            if stage is not None and stage not in STAGES:
                raise InputError(f"stage {stage!r} is not one of {', '.join(STAGES)}")
        if self.only and self.start:
            raise InputError(f"--only {self.only} and --from {self.start} exclude each other")
        if self.only and self.until:
            raise InputError(f"--only {self.only} and --until {self.until} exclude each other")
        if self.start and not self.runs(self.start):
            raise InputError(f"--from {self.start} comes after --until {self.until}; swap them")
        for stage in self.force:
            if self.mode(stage) == "require" or not self.runs(stage):
                given = {"only": self.only, "from": self.start, "until": self.until}
                chosen = " ".join(f"--{name} {value}" for name, value in given.items() if value)
                raise InputError(f"--force {stage} has no effect with {chosen}; leave out one")

    def mode(self, stage: str) -> Mode:
        """How a stage is run."""
        first = STAGES.index(self.only or self.start or STAGES[0])
        here = STAGES.index(stage)
        if here < first:
            return "require"
        if stage in self.force or (self.start and here >= first):
            return "force"
        return "reuse"

    def runs(self, stage: str) -> bool:
        """True if the chain goes as far as this stage."""
        last = self.only or self.until or STAGES[-1]
        return STAGES.index(stage) <= STAGES.index(last)
