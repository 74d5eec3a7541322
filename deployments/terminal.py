"""Progress and tables in a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Self, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from deployments.escaping import escaped
from tasks.progress import Progress, listening

PLAIN_WIDTH = 140
"""Characters in a line where the stream is no terminal."""

QUIET_S = 30.0
"""A stream that is no terminal is told what goes on where nothing was printed for so long."""

MOST_PIECES = 4
"""Pieces of work under way that are named then."""

MISSING = "–"
"""Cell of a table whose value is not known."""


def size_text(n_bytes: int | None) -> str:
    """Bytes in the unit that people would use."""
    if n_bytes is None:
        return MISSING
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes / 1e3:.1f} kB"


def so_far(progress: Progress) -> str:
    """How far a piece of work is, in words."""
    if progress.finished or not progress.done:
        return "under way"
    detail = f", {progress.detail}" if progress.detail else ""
    return f"{progress.done} of {progress.total} done{detail}"


class PipeConsole(Console):
    """Leaves it to the command to end where nobody reads any more."""

    def on_broken_pipe(self) -> None:
        """Raise what was caught; called while it is handled."""
        raise


class Terminal:
    """Shows one line for every piece of work that is done, and a bar for each under way.

    Parameters
    ----------
    stream : text file
        Where to. Where it is no terminal, lines are plain, and in place of bars a line says what
        is under way whenever nothing was printed for `QUIET_S`.
    """

    def __init__(self, stream: TextIO) -> None:
        stream = getattr(stream, "stream", stream)  # texts are escaped here
        width = None if stream.isatty() else PLAIN_WIDTH
        self.console = PipeConsole(file=stream, soft_wrap=True, width=width)
        self.bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}"),
            console=self.console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._under_way: dict[str, Progress] = {}
        self._shown: set[str] = set()
        self._is_plain = not stream.isatty()
        self._is_quiet = False
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        self._exit.enter_context(self.bars)
        self._exit.enter_context(listening(self.progress, self.message))
        if self._is_plain:
            ended = threading.Event()
            threading.Thread(target=self._watch, args=(ended,), daemon=True).start()
            self._exit.callback(ended.set)
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def progress(self, progress: Progress) -> None:
        """Show the progress of a piece of work."""
        name = escaped(f"{progress.stage}: {progress.label}")
        if name not in self._tasks:
            self._tasks[name] = self.bars.add_task(name, total=progress.total, detail="")
        self.bars.update(
            self._tasks[name],
            completed=progress.done,
            total=progress.total,
            detail=progress.detail,
        )
        self._under_way[name] = progress
        if progress.finished and (progress.cached or progress.seconds):
            self.bars.remove_task(self._tasks.pop(name))
            del self._under_way[name]
            how = "stored" if progress.cached else f"{progress.seconds:.1f} s"
            self._print(Text(f"{name}: {how}"))

    def tell_what_goes_on(self) -> None:
        """Name what is under way, unless something was printed since the last call."""
        if self._is_quiet:
            pieces = list(self._under_way.items())
            for name, progress in pieces[:MOST_PIECES]:
                self.console.print(Text(f"{name}: {so_far(progress)}"))
            if more := len(pieces[MOST_PIECES:]):
                self.console.print(Text(f"and {more} more under way"))
        self._is_quiet = True

    def _watch(self, ended: threading.Event) -> None:
        with suppress(OSError):  # where nobody reads any more, the command finds out itself
            while not ended.wait(QUIET_S):
                self.tell_what_goes_on()

    def _print(self, *lines: Text | Table, crop: bool = True) -> None:
        self._is_quiet = False
        self.console.print(*lines, crop=crop)

    def message(self, text: str) -> None:
        """Show a message; the same one again is not repeated."""
        text = escaped(text)
        if text not in self._shown:
            self._shown.add(text)
            self._print(Text(text))

    def table(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        last_whole: bool = False,
    ) -> None:
        """Show a table.

        Parameters
        ----------
        title : str
            Line above it.
        header : sequence of str
            Names of the columns.
        rows : sequence of sequences of str
            Cells; what a narrow terminal has no room for is folded.
        last_whole : bool
            Keep cells of the last column, such as paths to be copied, on one line. In a
            terminal that is narrower than the table, the terminal itself then breaks the lines.
        """
        table = Table(title=escaped(title), title_justify="left", box=SIMPLE_HEAD)
        for name, values in zip(header, zip(*rows, strict=True), strict=True) if rows else ():
            known = [value for value in values if value != MISSING]
            numeric = bool(known) and all(v.lstrip("+-")[:1].isdigit() for v in known)
            table.add_column(
                escaped(name), justify="right" if numeric else "left", overflow="fold"
            )
        for row in rows:
            table.add_row(*(Text(escaped(cell)) for cell in row))
        if last_whole:
            unlimited = self.console.options.update(width=sys.maxsize)
            needed = Measurement.get(self.console, unlimited, table).maximum
            table.width = needed if needed > self.console.width else None
        self._print(table, crop=not last_whole)
