"""The command line ``cppcl``. Heavy imports wait until a command needs them."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deployments.gallery_arguments import add_gallery_commands
from deployments.store_arguments import add_store_commands
from tasks.stages.names import STAGES

DONE, FAILED, WRONG_USE = 0, 1, 2


def build_parser() -> argparse.ArgumentParser:
    """Parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="cppcl",
        description="Sketch-based image retrieval: train, search and report, stage by stage.",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong use.",
    )
    parser.add_argument("--version", action="version", version=f"cppcl {version('cppcl')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, module: str, help_text: str, among: Any = commands
    ) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = among.add_parser(
            name, help=help_text, description=help_text
        )
        sub.set_defaults(module=module)
        sub.add_argument(
            "--workspace",
            type=Path,
            default=Path(os.environ.get("CPPCL_WORKSPACE", ".cppcl")),
            metavar="DIR",
            help="folder of artifacts, data and runs (default: $CPPCL_WORKSPACE or .cppcl)",
        )
        return sub

    def experiment_command(name: str, help_text: str) -> argparse.ArgumentParser:
        sub = command(name, name, help_text)
        sub.add_argument("experiment", help="emoji, folder, cufs, ... or a YAML file")
        sub.add_argument(
            "--set",
            dest="overrides",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="change an option (see: cppcl options); KEY is a dotted path or the end of one "
            "(alpha, cprl.alpha)",
        )
        sub.add_argument("--json", action="store_true", help="last line of stdout is the record")
        sub.add_argument("--verbose", action="store_true", help="show Prefect's log")
        return sub

    run = experiment_command("run", "run an experiment; stages that are stored are reused")
    which = run.add_mutually_exclusive_group()
    which.add_argument("--only", metavar="STAGE", choices=STAGES, help="run this stage alone")
    which.add_argument(
        "--from",
        dest="start",
        metavar="STAGE",
        choices=STAGES,
        help="compute this stage and all after it anew; those before must be stored",
    )
    run.add_argument(
        "--until", metavar="STAGE", choices=STAGES, help="stop after this stage; not with --only"
    )
    run.add_argument(
        "--force",
        action="append",
        default=[],
        metavar="STAGE",
        choices=STAGES,
        help="compute this stage anew although it is stored",
    )

    sweep = experiment_command(
        "sweep", "run an experiment for every combination of values, and plot a score over them"
    )
    sweep.add_argument(
        "options",
        nargs="+",
        metavar="OPTION=VALUES",
        help="one or two options, each with a YAML list of values: n_atoms='[25, 50, 100]'; "
        "OPTION as KEY of --set",
    )
    sweep.add_argument(
        "--score",
        default="rank_1",
        metavar="NAME",
        help="map, or rank_k with k among evaluation.ranks (default rank_1)",
    )

    reproduce = command(
        "reproduce", "reproduce", "rebuild the paper's tables and figures on a data set, a page"
    )
    reproduce.add_argument("dataset", help="cufs, flickr15k, pacs, emoji, ... or a YAML file")
    reproduce.add_argument(
        "--quick", action="store_true", help="few values of every sweep, and one split"
    )
    reproduce.add_argument(
        "--only",
        dest="items",
        action="append",
        default=[],
        metavar="ITEM",
        help="this table or figure alone, such as table1; may be given again",
    )
    reproduce.add_argument(
        "--anew",
        action="store_true",
        help="compute what only a recorded run of an earlier version of the code has",
    )
    reproduce.add_argument(
        "--output", type=Path, metavar="DIR", help="copy the page and its files there"
    )
    reproduce.add_argument("--json", action="store_true", help="last line of stdout is the record")
    reproduce.add_argument("--verbose", action="store_true", help="show Prefect's log")

    command("stages", "stages", "list the stages and what each makes")

    options = command("options", "options", "list options with their values and meanings")
    options.add_argument(
        "experiment",
        nargs="?",
        help="emoji, folder, cufs, ... or a YAML file; without it, all options there are, with "
        "their defaults",
    )

    features = commands.add_parser(
        "features",
        help="list feature extractors, or show what one sees of a picture",
        description="Feature extractors and scores; A+B stands for several as one (lks+cnn).",
    )
    looks = features.add_subparsers(dest="action", required=True, metavar="ACTION")
    known = command(
        "list", "features", "list extractors: values, device, time, licence of weights", looks
    )
    known.add_argument("--no-timing", action="store_true", help="measure no time")
    known.add_argument("--json", action="store_true", help="print one JSON document")
    seen = command("show", "features", "draw what an extractor sees of a picture, a PNG", looks)
    seen.add_argument("name", metavar="NAME", help="extractor, or several joined by '+'")
    seen.add_argument("picture", type=Path, metavar="PICTURE", help="any picture file or SVG")
    seen.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="option of the extractor, such as contours=canny; learned=KEY names what it learned",
    )
    seen.add_argument(
        "--output", type=Path, metavar="FILE", help="PNG file (default: PICTURE-NAME.png here)"
    )

    curriculum = commands.add_parser(
        "curriculum",
        help="show why a picture passes for easy or hard",
        description="Scores of curricula: how easy a picture is to learn from.",
    )
    asked = curriculum.add_subparsers(dest="action", required=True, metavar="ACTION")
    easy = command(
        "show", "curriculum", "draw cues, best windows and score of a picture, a PNG", asked
    )
    easy.add_argument("picture", type=Path, metavar="PICTURE", help="any picture file or SVG")
    easy.add_argument(
        "--score",
        default="objectness",
        metavar="NAME",
        help="objectness (default), edge_boxes or colour_contrast of images, edgeness of sketches",
    )
    easy.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="option of the score, such as n_windows=2000; learned=KEY names what it learned",
    )
    easy.add_argument("--json", action="store_true", help="print one JSON document")
    easy.add_argument(
        "--output", type=Path, metavar="FILE", help="PNG file (default: PICTURE-NAME.png here)"
    )

    data = commands.add_parser(
        "data",
        help="look after data sets: what is here, what is missing, how to get it",
        description="Data sets are kept in $CPPCL_DATA, or in the folder data of the workspace.",
    )
    actions = data.add_subparsers(dest="action", required=True, metavar="ACTION")
    command("list", "data", "list data sets with size, terms and state", actions)
    status = command(
        "status", "data", "say what is here, what is missing and how to get it", actions
    )
    status.add_argument("names", nargs="*", metavar="NAME", help="data sets (default: all)")
    get = command("get", "data", "download data sets", actions)
    get.add_argument("names", nargs="+", metavar="NAME", help="data sets")
    add = command("add", "data", "put archives or folders that you have in place", actions)
    add.add_argument("name", metavar="NAME", help="data set")
    add.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="archives or folders")
    add.add_argument("--link", action="store_true", help="use a folder where it lies, uncopied")
    preview = command("preview", "data", "write a contact sheet, a PNG, of a data set", actions)
    preview.add_argument("name", metavar="NAME", help="data set")
    preview.add_argument("--output", type=Path, metavar="FILE", help="default: NAME.png")
    preview.add_argument("--classes", type=int, default=40, metavar="N", help="default 40")
    preview.add_argument("--per-class", type=int, default=4, metavar="N", help="default 4")
    splits = command("splits", "data", "write the splits of a data set's experiment", actions)
    splits.add_argument("name", metavar="NAME", help="data set")
    splits.add_argument("--output", type=Path, required=True, metavar="DIR", help="where to")

    add_store_commands(commands, command)
    add_gallery_commands(command)

    serve = command("serve", "serve", "a page on which a drawing finds pictures, and a JSON API")
    serve.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="an experiment's name (a newer run of it is taken up), or key of an encode artifact",
    )
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default 127.0.0.1, this machine alone); another needs a token",
    )
    serve.add_argument("--port", type=int, default=8766, help="default 8766; 0: any free one")

    annotate = command(
        "annotate", "annotate", "ask people which of two training pictures is easier, on a page"
    )
    annotate.add_argument("experiment", help="experiment (its latest run) or the name of a run")
    annotate.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default 127.0.0.1, this machine alone); another needs a token",
    )
    annotate.add_argument("--port", type=int, default=8765, help="default 8765; 0: any free one")
    annotate.add_argument(
        "--split", metavar="KEY", help="split whose training pictures are shown (default: first)"
    )
    annotate.add_argument(
        "--database",
        type=Path,
        metavar="FILE",
        help="where answers are kept (default: annotations/EXPERIMENT.sqlite in the workspace)",
    )
    files = annotate.add_mutually_exclusive_group()
    files.add_argument(
        "--export", type=Path, metavar="FILE", help="write answers, .csv or .jsonl, and end"
    )
    files.add_argument(
        "--import", dest="take_in", type=Path, metavar="FILE", help="read answers, and end"
    )
    annotate.add_argument(
        "--modality", choices=("sketch", "image"), help="export answers of this modality alone"
    )

    report = command("report", "report", "say where a run's report is, or copy it")
    report.add_argument("run", help="experiment (its latest run) or the name of a run")
    report.add_argument("--output", type=Path, metavar="DIR", help="copy its files there")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A label that the terminal's encoding lacks must not end a run.
            stream.reconfigure(errors="backslashreplace")
    options = build_parser().parse_args(arguments)
    quieten()
    command = importlib.import_module(f"deployments.commands.{options.module}")
    from cppcl.errors import CppclError, InputError, PictureError, TooManyBadPicturesError
    from storage import StoreError, UnknownReferenceError

    try:
        with stopped_in_order():
            return int(command.main(options))
    except (PictureError, TooManyBadPicturesError) as error:
        print(f"cppcl: {error}", file=sys.stderr)
        return FAILED
    except (InputError, UnknownReferenceError) as error:
        print(f"cppcl: {error}", file=sys.stderr)
        return WRONG_USE
    except (CppclError, StoreError, OSError) as error:
        print(f"cppcl: {error}", file=sys.stderr)
        return FAILED
    except MemoryError as error:
        print(
            f"cppcl: out of memory ({error}); use a smaller model or fewer pictures, or a machine "
            "with more memory",
            file=sys.stderr,
        )
        return FAILED
    except KeyboardInterrupt as error:
        print("cppcl: interrupted; what was finished is kept", file=sys.stderr)
        return 128 + (error.number if isinstance(error, Stopped) else signal.SIGINT)


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stopped_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that its children end too."""

    def stop(number: int, frame: object) -> None:
        raise Stopped(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:  # not under nohup
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def quieten() -> None:
    """Set what Prefect and Dask read when they are imported, unless the user has."""
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    # Files in the current folder, such as a queue.py, must not stand for modules of children.
    os.environ.setdefault("PYTHONSAFEPATH", "1")


if __name__ == "__main__":
    sys.exit(main())
