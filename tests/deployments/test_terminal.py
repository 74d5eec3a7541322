"""What a terminal shows."""

from __future__ import annotations

import io
import threading

import pytest

import deployments.terminal
from deployments.commands.listing import shorten
from deployments.terminal import MISSING, Terminal
from tasks.progress import Progress, tell


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_a_remark_is_shown_once(stream):
    terminal = Terminal(stream)
    for text in ("dashboard", "skipped", "dashboard"):
        terminal.message(text)
    assert stream.getvalue() == "dashboard\nskipped\n"


def test_numbers_are_aligned_at_their_end(stream):
    Terminal(stream).table("", ["similarity", "label"], [["0.25", "a"], ["-0.0251", "b"]])
    lines = [line.rstrip() for line in stream.getvalue().splitlines() if "0." in line]
    assert lines == ["        0.25   a", "     -0.0251   b"]


class NarrowTerminal(io.StringIO):
    """A terminal, as wide as COLUMNS says."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", ["20", "60"])
def test_the_last_column_stays_whole(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "dumb")
    path = "/pictures of mine/" + "a-long-folder/" * 12 + "fox.png"
    rows = [["1", "0.25", "mammal", path], ["2", "0.2", "", "/short.png"]]
    header = ["rank", "similarity", "label", "picture"]
    shown = NarrowTerminal()
    Terminal(shown).table("nearest to " + path, header, rows, last_whole=True)
    lines = [line.rstrip() for line in shown.getvalue().splitlines()]
    assert f"     1         0.25   mammal   {path}" in lines
    folded = NarrowTerminal()
    Terminal(folded).table("", header, rows)
    assert path not in folded.getvalue()


def test_parameters_are_cut_to_a_width():
    parameters = {"method": "cprl", "alpha": 0.01}
    assert shorten(parameters, 60) == "method=cprl, alpha=0.01"
    assert shorten(parameters, 20) == "method=cprl, alph..."


def test_signed_and_missing_numbers_are_aligned_too(stream):
    rows = [["+1.25", MISSING, MISSING], ["-10.50", "7", MISSING]]
    Terminal(stream).table("", ["difference", "published", "nothing"], rows)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert lines[-3:-1] == ["       +1.25           –   –", "      -10.50           7   –"]


def test_a_bar_shows_how_fast_it_goes(stream):
    with Terminal(stream) as terminal:
        tell(Progress("extract", "image hog", 3, 10, detail="61 a second, 0:30 to go"))
        (bar,) = terminal.bars.tasks
        assert (bar.completed, bar.total) == (3, 10)
        with terminal.console.capture() as shown:
            terminal.console.print(terminal.bars.get_renderable())
        assert "61 a second, 0:30 to go" in shown.get()
        tell(Progress("extract", "image hog", 1, 1, seconds=2.0))
    assert "extract: image hog: 2.0 s" in stream.getvalue()


def test_a_stream_that_is_no_terminal_is_told_what_goes_on_when_nothing_was_printed(stream):
    with Terminal(stream) as terminal:
        tell(Progress("tune", "all methods", 0, 64))
        terminal.message("64 combinations")
        terminal.tell_what_goes_on()
        assert stream.getvalue() == "64 combinations\n"
        terminal.tell_what_goes_on()
        tell(Progress("tune", "all methods", 40, 64, detail="1:10 to go"))
        for number in range(4):
            tell(Progress("train", f"split {number}", 0, 1))
        terminal.tell_what_goes_on()
        tell(Progress("tune", "all methods", 64, 64, seconds=2.0))
        terminal.tell_what_goes_on()
    assert stream.getvalue().splitlines()[1:-1] == [
        "tune: all methods: under way",
        "tune: all methods: 40 of 64 done, 1:10 to go",
        *(f"train: split {number}: under way" for number in range(3)),
        "and 1 more under way",
        "tune: all methods: 2.0 s",
    ]


def test_what_goes_on_is_told_while_nothing_happens(stream, monkeypatch):
    told = threading.Event()
    monkeypatch.setattr(deployments.terminal, "QUIET_S", 0.001)
    monkeypatch.setattr(Terminal, "tell_what_goes_on", lambda self: told.set())
    with Terminal(NarrowTerminal()):
        assert not told.is_set()  # a terminal shows bars
    with Terminal(stream):
        assert told.wait(10)
