"""The tutorials, run as a reader runs them: what a page prints is what is done.

Fences of a page mean, by what follows the backquotes:

- ``bash``: commands, run in the page's folder; ``bash serve``: the same in a terminal of their
  own, left running until the page ends;
- ``python NAME``, ``yaml NAME`` and so on: a file that the reader saves under that name;
- ``diff NAME``: lines that the reader adds to a file of the clone;
- nothing: a picture in letters, to look at;
- ``text``: what the commands above it print: lines in this order, ``...`` for any lines or any
  part of one; ``text about``: numbers with a point in it may be up to two off.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "tutorials"
TUTORIALS = sorted(page.stem for page in PAGES.glob("*.md"))
IN_THE_CLONE = {"add-a-feature", "add-a-data-set"}
COMMAND_TIMEOUT_S = 600
STOP_TIMEOUT_S = 30
OFF_BY = 2.0
NUMBER = re.compile(r"[-+]?\d+\.\d+")


@dataclass(frozen=True)
class Fence:
    """A fenced block of a page."""

    kind: str
    name: str
    text: str


def fences_of(page: str) -> list[Fence]:
    """Fenced blocks of a page in their order."""
    found = re.findall(r"(?ms)^```(\S*) ?([^\n]*)\n(.*?)^```$", page)
    return [Fence(*parts) for parts in found]


def lines_of(text: str) -> list[str]:
    """Lines that hold something, without what a terminal's width does to them."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def is_line(expected: str, line: str, *, about: bool) -> bool:
    """Whether a line is as a page shows it."""
    if about:
        numbers = [float(number) for number in NUMBER.findall(line)]
        wanted = [float(number) for number in NUMBER.findall(expected)]
        if "..." not in expected and (
            len(numbers) != len(wanted)
            or any(abs(a - b) > OFF_BY for a, b in zip(numbers, wanted, strict=True))
        ):
            return False
        expected, line = NUMBER.sub("#", expected), NUMBER.sub("#", line)
    pattern = ".*".join(map(re.escape, expected.split("...")))
    return re.fullmatch(pattern, line) is not None


def missing_line(expected: str, output: str, *, about: bool = False) -> str | None:
    """First line of what a page shows that did not come in its place; None if all did."""
    lines = iter(lines_of(output))
    anywhere = True  # what a program says before is its own affair
    for wanted in lines_of(expected):
        if wanted == "...":
            anywhere = True
            continue
        for line in lines:
            if is_line(wanted, line, about=about):
                break
            if not anywhere:
                return wanted
        else:
            return wanted
        anywhere = False
    return None


def add_lines(diff: str, text: str) -> str:
    """Text of a file with the lines of a diff added where its other lines stand.

    Hunks are told apart by ``...``; lines that are taken away begin with ``-``.
    """
    for hunk in re.split(r"(?m)^\.\.\.\n", diff):
        marked = [(line[:1], line[1:]) for line in hunk.splitlines()]
        before = "".join(f"{line}\n" for mark, line in marked if mark != "+")
        after = "".join(f"{line}\n" for mark, line in marked if mark != "-")
        assert text.count(before) == 1, f"these lines are not once in the file:\n{before}"
        text = text.replace(before, after)
    return text


@dataclass
class Reader:
    """Does what a page says, in one folder."""

    folder: Path
    environment: dict[str, str]
    log: Path
    serving: list[subprocess.Popen[str]] = field(default_factory=list)
    output: str = ""
    seen: Path | None = None

    def follow(self, fence: Fence) -> None:
        """Do what a block says."""
        if fence.kind == "bash" and fence.name == "serve":
            self.serve(fence.text)
        elif fence.kind == "bash":
            self.run(fence.text)
        elif fence.kind == "text":
            self.compare(fence)
        elif fence.kind == "diff":
            path = self.folder / fence.name
            path.write_text(add_lines(fence.text, path.read_text()))
        elif fence.kind:
            assert fence.name, f"a reader cannot know what to do with\n{fence.text}"
            path = self.folder / fence.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fence.text)

    def start(self, commands: str, output: Path) -> subprocess.Popen[str]:
        # What starts in the background of a shell ignores SIGINT, and so would its children.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with output.open("w") as file:
                return subprocess.Popen(
                    ["bash", "-euo", "pipefail", "-c", commands],
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    text=True,
                )
        finally:
            signal.signal(signal.SIGINT, handler)

    def run(self, commands: str) -> None:
        """Run commands to their end, which must be good."""
        output = self.log.with_name("commands.log")
        self.seen = None
        process = self.start(commands, output)
        try:
            code = process.wait(COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            end(process)
            code = -1
        self.output = output.read_text()
        assert code == 0, f"{commands}ended with {code}:\n{self.output}"

    def serve(self, commands: str) -> None:
        """Start commands that stay."""
        self.seen = self.log.with_name(f"terminal-{len(self.serving)}.log")
        self.serving.append(self.start(commands, self.seen))

    def compare(self, fence: Fence) -> None:
        """Compare what was printed with what the page shows; wait where it is still to come."""
        about = fence.name == "about"
        if self.seen is not None:
            limit = time.monotonic() + COMMAND_TIMEOUT_S
            while time.monotonic() < limit and self.serving[-1].poll() is None:
                if missing_line(fence.text, self.seen.read_text(), about=about) is None:
                    break
                self.wait_a_little()
            self.output = self.seen.read_text()
        line = missing_line(fence.text, self.output, about=about)
        assert line is None, f"the page shows the line\n{line}\nbut this came:\n{self.output}"

    def wait_a_little(self) -> None:
        try:
            self.serving[-1].wait(0.2)
        except subprocess.TimeoutExpired:
            return

    def stop(self) -> None:
        """End what was left running, last first, as Ctrl-C does."""
        for process in reversed(self.serving):
            end(process)


def end(process: subprocess.Popen[str]) -> None:
    """Interrupt a process and all that it started; then by force."""
    if process.poll() is not None:
        return
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    os.killpg(process.pid, signal.SIGINT)
    _, alive = psutil.wait_procs(family, timeout=STOP_TIMEOUT_S)
    for member in alive:
        member.kill()
    psutil.wait_procs(alive, timeout=STOP_TIMEOUT_S)
    process.wait()


def clone(folder: Path) -> None:
    """Copy what a reader has after cloning; with what numba compiled, which goes by dates."""
    for name in ("cppcl", "storage", "tasks", "flows", "deployments", "tests"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)


@pytest.fixture
def reader(request, tmp_path, prefect_server) -> Iterator[Reader]:
    """Reader of the page that a test is about."""
    folder = tmp_path / "reader"
    folder.mkdir()
    # A terminal of its own knows nothing of what commands silenced in this process.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("DASK_")}
    environment = {
        **inherited,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PREFECT_API_URL": prefect_server,
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "300",  # so that no path is broken
        "PYTHONPATH": str(folder if request.param in IN_THE_CLONE else ROOT),
    }
    if request.param in IN_THE_CLONE:
        clone(folder)
    made = Reader(folder, environment, tmp_path / "log")
    yield made
    made.stop()


@pytest.mark.flow
@pytest.mark.parametrize(("name", "reader"), [(n, n) for n in TUTORIALS], indirect=["reader"])
def test_a_tutorial_does_what_it_says(name, reader):
    page = (PAGES / f"{name}.md").read_text()
    for fence in fences_of(page):
        reader.follow(fence)


@pytest.mark.parametrize(
    ("expected", "output", "missing"),
    [
        ("one\ntwo", "zero\none\ntwo\nthree", None),
        ("one\nthree", "one\ntwo\nthree", "three"),
        ("one\n...\nthree", "one\ntwo\nthree", None),
        ("took ... s", "took 12 s", None),
        ("took ... s", "took 12 min", "took ... s"),
        ("a  b", "a b", None),
        ("ap.le", "apple", "ap.le"),
        ("map 31.0", "map 32.0", "map 31.0"),
    ],
)
def test_output_is_compared_line_by_line(expected, output, missing):
    assert missing_line(expected, output) == missing


def test_numbers_may_be_said_to_be_about():
    assert missing_line("map 31.0", "map 32.9", about=True) is None
    assert missing_line("map 31.0", "map 33.1", about=True) == "map 31.0"
    assert missing_line("map 31.0 2", "map 31.0 3", about=True) == "map 31.0 2"


def test_lines_are_added_where_a_diff_says():
    assert add_lines(" b\n+c\n...\n-d\n+e\n", "a\nb\nd\n") == "a\nb\nc\ne\n"
    with pytest.raises(AssertionError, match="not once"):
        add_lines(" x\n+c\n", "a\nb\n")
