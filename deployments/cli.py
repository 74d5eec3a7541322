"""The command line ``cppcl``: its commands, and what they have in common when they end."""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import io
import keyword
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from types import FrameType
from typing import Any, NoReturn, TextIO, cast

from deployments.escaping import EscapedStream, escaped

COMMANDS = {
    "run": "run an experiment; stored results are reused",
    "try": "two folders, sketches and pictures: train, score, and serve a page to draw on",
    "sweep": "run an experiment for every combination of values and plot the scores",
    "reproduce": "rebuild the paper's tables and figures on a data set, on one page",
    "doctor": "look at this machine: what would fail, and how to mend it",
    "stages": "list the stages and what each makes",
    "options": "list options with their values and meanings",
    "features": "list feature extractors, or show what one sees in a picture",
    "curriculum": "show why a picture counts as easy or hard",
    "data": "look after data sets: what is here, what is missing, how to get it",
    "store": "look after the stored artifacts",
    "index": "encode a folder of pictures as a new gallery of a model",
    "export": "write the codes of a model as .npy, and the list of their pictures as .csv",
    "promote": "choose which model of an experiment is served",
    "search": "find the pictures that a sketch means",
    "serve": "serve a page to draw on and search with, and a JSON API",
    "annotate": "serve a page that asks people which of two pictures is easier",
    "audit": "find the pairs or labels that most likely are wrong, and ask people about them",
    "report": "print the path of a run's report, or copy the report",
}
"""Modules of `deployments.commands`, imported when they are asked for, and what each does."""

DONE, FAILED, WRONG_USE = 0, 1, 2

STANDARD_OUTPUT, STANDARD_ERROR = 1, 2

IMPORTING = "<frozen importlib._bootstrap>"
"""File of Python's functions that find, lock and load modules."""

AGAIN_S = 0.01
"""A signal that comes while one of them runs is sent again so much later."""


class CommandParser(argparse.ArgumentParser):
    """Parser of one command, whose module is imported when its arguments are read."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read arguments, those that the module adds among them."""
        name = self.prog.split()[-1]
        name += "_" if keyword.iskeyword(name) else ""
        module = importlib.import_module(f"deployments.commands.{name}")
        module.add_arguments(self)
        self.set_defaults(call=module.run)
        return super().parse_known_args(args, namespace)


class MainParser(argparse.ArgumentParser):
    """Parser of the whole command line, which knows what an unknown command may have meant."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and end; of an unknown command, the nearest one."""
        if found := re.search(r"COMMAND: invalid choice: '(.*?)'", message):
            from cppcl.validation import did_you_mean

            near = did_you_mean(found[1], COMMANDS)
            mark = " " if near else "; "
            message = f"unknown command {found[1]!r}{near}{mark}cppcl --help lists all"
        super().error(message)


def build_parser() -> argparse.ArgumentParser:
    """Parser of the whole command line."""
    parser = MainParser(
        prog="cppcl",
        description="Sketch-based image retrieval: train, search and report, stage by stage.",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong use.",
    )
    parser.add_argument("--version", action="version", version=f"cppcl {version('cppcl')}")
    parser.add_argument(
        "--plugin",
        action="append",
        metavar="MODULE",
        help="module or .py file with features, methods or data sets of your own; at any place",
    )
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=CommandParser
    )
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, description=text)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A label that the terminal's encoding lacks must not end a run.
            stream.reconfigure(errors="backslashreplace")
    quieten()
    # Python searches all that is left for cycles when it ends: more than a second after a run.
    atexit.register(gc.freeze)
    try:
        with escaping():
            code = call(arguments)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        # Whoever read this has enough, as `head` has. Nothing is left to be flushed at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def open_streams() -> None:
    """Give a stream that was closed, as by ``2>&-``, a place that takes everything.

    The next file that is opened would get its number, and what others write there.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        os.set_inheritable(number, True)
    os.close(number)
    for name, number in (("stdout", STANDARD_OUTPUT), ("stderr", STANDARD_ERROR)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


@contextmanager
def escaping() -> Iterator[None]:
    """Let no name that is printed to a terminal be a command to it."""
    before = sys.stdout
    if before is not None and before.isatty():
        sys.stdout = cast(TextIO, EscapedStream(before))
    try:
        yield
    finally:
        sys.stdout = before


def call(arguments: Sequence[str] | None) -> int:
    """Run one command and tell what goes wrong; returns its exit code."""
    with stopped_in_order() as received:
        try:
            code = run_command(arguments)
            if not (code and received):
                return code
        except BaseException as error:
            # What a signal interrupts may make another error of it.
            if not (received or isinstance(error, KeyboardInterrupt)):
                raise
        print("cppcl: interrupted; what was finished is kept", file=sys.stderr)
        return 128 + (received or [signal.SIGINT])[0]


def run_command(arguments: Sequence[str] | None) -> int:
    """Run one command and tell what goes wrong, unless it is stopped; returns its exit code."""
    given, plugins = without_plugins(sys.argv[1:] if arguments is None else arguments)
    options = build_parser().parse_args(given)
    from cppcl.errors import CppclError, InputError, PictureError, TooManyBadPicturesError
    from storage import StoreError, UnknownReferenceError

    try:
        with named(plugins):
            return int(options.call(options))
    except (PictureError, TooManyBadPicturesError) as error:
        print(escaped(f"cppcl: {error}"), file=sys.stderr)
        return FAILED
    except (InputError, UnknownReferenceError) as error:
        print(escaped(f"cppcl: {error}"), file=sys.stderr)
        return WRONG_USE
    except BrokenPipeError:
        raise
    except (CppclError, StoreError, OSError) as error:
        print(escaped(f"cppcl: {error}"), file=sys.stderr)
        return FAILED
    except MemoryError as error:
        print(
            f"cppcl: out of memory ({error}); use a smaller model or fewer pictures, or a machine "
            "with more memory",
            file=sys.stderr,
        )
        return FAILED


def without_plugins(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Arguments without ``--plugin MODULE``, which may stand anywhere, and these modules."""
    rest, plugins = list[str](), list[str]()
    waiting = iter(arguments)
    for argument in waiting:
        name, equals, value = argument.partition("=")
        if name != "--plugin":
            rest.append(argument)
        elif equals:
            plugins.append(value)
        elif (value := next(waiting, "")) == "":
            rest.append(argument)  # argparse says what it lacks
        else:
            plugins.append(value)
    return rest, plugins


@contextmanager
def named(plugins: Sequence[str]) -> Iterator[None]:
    """Load plugins, those of the environment and of installed packages too, for one command."""
    from cppcl.plugin_modules import VARIABLE, load_plugins, name_plugins

    before = os.environ.get(VARIABLE)
    try:
        if plugins:
            name_plugins(plugins)
            load_plugins()
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


@contextmanager
def stopped_in_order() -> Iterator[list[int]]:
    """Let SIGTERM, SIGHUP and Ctrl-C end a command alike, so that its children end too.

    After one of them, another ends at once what is still being closed.

    Yields
    ------
    received : list of int
        Takes the numbers of the signals that came.
    """
    received = list[int]()

    def stop(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_filename == IMPORTING:
            # Python may not have noted yet that it holds the lock of all imports. It would hold
            # it for ever, and the next import, in any thread, would never end.
            again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return
        received.append(number)
        raise KeyboardInterrupt

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            # Not what is ignored, as under nohup.
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, stop)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if received else handler)


def quieten() -> None:
    """Set what Prefect and Dask read when they are imported, unless the user has set it."""
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    # A file in the current folder, such as queue.py, must not replace a module in a child process.
    os.environ.setdefault("PYTHONSAFEPATH", "1")


if __name__ == "__main__":
    sys.exit(main())
