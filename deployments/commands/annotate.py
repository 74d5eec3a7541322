"""``cppcl annotate``: people say which of two pictures is easier."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from cppcl.errors import InputError
from deployments.annotate.database import AnswerDatabase
from deployments.annotate.samples import gather
from deployments.annotate.session import Session
from deployments.terminal import Terminal
from deployments.web.listening import check_port, serve
from tasks.workspace import Workspace


def main(options: Namespace) -> int:
    """Serve the page until it is stopped; or export or import answers."""
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
            for modality, side in annotated.sides.items():
                terminal.message(
                    f"{len(side.proposals)} pairs of {len(side.samples)} training {modality} "
                    "pictures"
                )
            terminal.message(f"answers are kept in {file.absolute()}")
            serve_session(session, options.host, options.port)
        finally:
            database.close()
    return 0


def take_in(session: Session, path: Path, terminal: Terminal) -> int:
    """Import a file of answers; 1 if lines of it were left out."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--import {path}: cannot be read ({error})") from error
    try:
        report = session.take_in(text, "jsonl" if path.suffix == ".jsonl" else "csv")
    except InputError as error:
        raise InputError(f"--import {path}, {error}") from error
    for number, problem in report.problems:
        terminal.message(f"{path}, line {number}: {problem}")
    print(
        f"{report.n_new} answers are new, {report.n_known} were here, "
        f"{len(report.problems)} lines were left out"
    )
    return 1 if report.problems else 0


def serve_session(session: Session, host: str, port: int) -> None:
    """Answer requests until a signal comes."""
    from deployments.annotate.app import make_app

    serve(lambda access: make_app(session, access), host, port, "annotate")
