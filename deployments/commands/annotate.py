"""``cppcl annotate``: people say which of two pictures is easier."""

from __future__ import annotations

import socket
import sys
from argparse import Namespace
from pathlib import Path

from cppcl.errors import CppclError, InputError
from deployments.annotate.database import AnswerDatabase
from deployments.annotate.samples import gather
from deployments.annotate.session import Session
from deployments.terminal import Terminal
from tasks.workspace import Workspace

BACKLOG = 128


def main(options: Namespace) -> int:
    """Serve the page until it is stopped; or export or import answers."""
    if not 0 <= options.port < 2**16:
        raise InputError(f"--port {options.port} must be a number from 0 to 65535")
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
            serve(session, options.host, options.port)
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


def serve(session: Session, host: str, port: int) -> None:
    """Answer requests until a signal comes.

    Raises
    ------
    CppclError
        If the port is taken, or the address is none of this machine.
    """
    import uvicorn

    from deployments.annotate.app import make_app
    from deployments.annotate.security import access_for

    with listening_socket(host, port) as listener:
        port = listener.getsockname()[1]
        access = access_for(host, port)
        config = uvicorn.Config(
            make_app(session, access),
            log_level="warning",
            # It would hold the token.
            access_log=False,
            server_header=False,
            limit_concurrency=256,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=5,
        )
        print(address(host, port, access.token), flush=True)
        uvicorn.Server(config).run(sockets=[listener])


def listening_socket(host: str, port: int) -> socket.socket:
    """Bind an address now, so that one that cannot be had is told in a sentence."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"--host {host}: no address of this machine ({error})") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CppclError(
            f"--host {host} --port {port}: cannot be had ({error.strerror}); is cppcl annotate "
            "running already? Give another --port, or 0 for any that is free"
        ) from error
    return listener


def address(host: str, port: int, token: str | None) -> str:
    """What to open in a browser."""
    name = host
    if host in ("0.0.0.0", "::", ""):
        name = socket.gethostname()
    elif ":" in host:
        name = f"[{host}]"
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
