"""``cppcl annotate``: people say which of two pictures is easier."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from cppcl.errors import InputError
from cppcl.regular_files import read_text
from deployments.commands.arguments import PORTS, add_listening, add_workspace
from deployments.terminal import Terminal
from tasks.workspace import Workspace

if TYPE_CHECKING:
    from deployments.annotate.session import Session


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", help="experiment (its latest run) or the name of a run"
    )
    add_listening(parser, PORTS["annotate"])
    parser.add_argument(
        "--split", metavar="KEY", help="split whose training pictures are shown (default: first)"
    )
    parser.add_argument(
        "--database",
        type=Path,
        metavar="FILE",
        help="where answers are kept (default: annotations/EXPERIMENT.sqlite in the workspace)",
    )
    files = parser.add_mutually_exclusive_group()
    files.add_argument(
        "--export",
        type=Path,
        metavar="FILE",
        help="write the answers to a .csv or .jsonl file and exit",
    )
    files.add_argument(
        "--import",
        dest="take_in",
        type=Path,
        metavar="FILE",
        help="add the answers of such a file and exit",
    )
    parser.add_argument(
        "--modality", choices=("sketch", "image"), help="export only answers of this modality"
    )


def run(options: Namespace) -> int:
    """Serve the page until it is stopped; or export or import answers."""
    from deployments.annotate.database import AnswerDatabase
    from deployments.annotate.samples import gather
    from deployments.annotate.session import Session
    from deployments.web.listening import check_port

    check_port(options.port)
    workspace = Workspace(options.workspace)
    for name in ("export", "take_in"):
        if (path := getattr(options, name)) and path.suffix not in (".csv", ".jsonl"):
            shown = f"--{name.replace('take_in', 'import')}"
            raise InputError(f"{shown} {path}: give a .csv or .jsonl file")
    with Terminal(sys.stderr) as terminal:
        with workspace.store.in_use():
            annotated = gather(workspace, options.experiment, options.split)
        file = (
            options.database or workspace.root / "annotations" / f"{annotated.experiment}.sqlite"
        )
        database = AnswerDatabase(file, annotated.experiment, annotated.modality_of)
        session = Session(annotated, database)
        try:
            if options.take_in:
                return take_in(session, options.take_in, terminal)
            if options.export:
                text = session.export(options.export.suffix[1:], options.modality)
                options.export.write_text(text, encoding="utf-8", newline="")
                print(options.export.absolute())
                return 0
            for modality, pictures in annotated.modalities.items():
                terminal.message(
                    f"{len(pictures.proposals)} pairs of {len(pictures.samples)} training "
                    f"{modality} pictures"
                )
            terminal.message(f"answers are kept in {file.absolute()}")
            serve_session(session, options.host, options.port)
        finally:
            database.close()
    return 0


def take_in(session: Session, path: Path, terminal: Terminal) -> int:
    """Import a file of answers; 1 if lines of it were left out."""
    try:
        text = read_text(path, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--import {path}: cannot be read ({error})") from error
    try:
        report = session.take_in(text, "jsonl" if path.suffix == ".jsonl" else "csv")
    except InputError as error:
        raise InputError(f"--import {path}: {error}") from error
    for number, problem in report.problems:
        terminal.message(f"{path}, line {number}: {problem}")
    print(
        f"{report.n_new} answers are new, {report.n_known} were here, "
        f"{report.n_wrong} lines were left out"
    )
    return 1 if report.n_wrong else 0


def serve_session(session: Session, host: str, port: int) -> None:
    """Answer requests until a signal comes."""
    from deployments.annotate.app import make_app
    from deployments.web.listening import serve

    serve(lambda access: make_app(session, access), host, port, "annotate")
