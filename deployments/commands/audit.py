"""``cppcl audit``: the pairs or labels that most likely are wrong."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from cppcl.errors import InputError
from deployments.commands.arguments import PORTS, add_listening, add_method, add_workspace
from deployments.terminal import Terminal
from tasks.workspace import Workspace

if TYPE_CHECKING:
    from deployments.audit.database import VerdictDatabase
    from tasks.audit import Audit

LEAST_SHOWN, MOST_SHOWN = 20, 200


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", help="experiment (its latest run) or the name of a run"
    )
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help="protocol whose pairs or labels are judged (default: first)",
    )
    parser.add_argument(
        "--split", metavar="KEY", help="split whose training pictures are judged (default: first)"
    )
    add_method(parser)
    parser.add_argument(
        "--shown",
        type=int,
        metavar="N",
        help="number of suspects on the page (default: as many as are expected to be wrong, but "
        f"at least {LEAST_SHOWN} and at most {MOST_SHOWN})",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder of audit.html and audit.csv (default: EXPERIMENT-audit, in this folder)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--serve", action="store_true", help="serve a page where people say right or wrong"
    )
    add_listening(parser, PORTS["audit"])
    parser.add_argument(
        "--database",
        type=Path,
        metavar="FILE",
        help="where verdicts are kept (default: audits/EXPERIMENT.sqlite in the workspace)",
    )
    parser.add_argument(
        "--export", type=Path, metavar="FILE", help="write the verdicts to a .csv file and exit"
    )


def run(options: Namespace) -> int:
    """Judge what a run was trained with: write the page and the table, or serve; or export."""
    from deployments.web.listening import check_port
    from tasks.audit import audit_experiment

    if options.shown is not None and options.shown < 1:
        raise InputError(f"--shown {options.shown} must be at least 1")
    check_port(options.port)
    workspace = Workspace(options.workspace)
    if options.export is not None:
        return export(options, workspace)
    with workspace.store.in_use(), Terminal(sys.stderr):
        audit = audit_experiment(
            workspace,
            options.experiment,
            protocol=options.protocol,
            split=options.split,
            method=options.method,
        )
    n_shown = options.shown or min(max(audit.n_expected, LEAST_SHOWN), MOST_SHOWN)
    if options.serve:
        return serve_audit(options, workspace, audit, n_shown)
    return write_audit(options, audit, n_shown)


def write_audit(options: Namespace, audit: Audit, n_shown: int) -> int:
    """Write the page and the table, and print where they are and what is expected."""
    from cppcl.report.audit import audit_csv, render_audit
    from tasks.audit import shown_suspects, suspect_rows

    folder: Path = options.output or Path(f"{audit.experiment}-audit")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output {str(folder)!r} is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    page, table = (folder.absolute() / name for name in ("audit.html", "audit.csv"))
    text = render_audit(
        experiment=audit.experiment,
        protocol=audit.protocol,
        kind=audit.kind,
        shown=shown_suspects(audit, n_shown),
        n_judged=len(audit.suspects),
        wrong_share=audit.wrong_share,
    )
    page.write_text(text, encoding="utf-8")
    table.write_text(audit_csv(suspect_rows(audit)), encoding="utf-8", newline="")
    if options.json:
        document = {
            "experiment": audit.experiment,
            "protocol": audit.protocol,
            "kind": audit.kind,
            "judged": len(audit.suspects),
            "wrong_share": audit.wrong_share,
            "page": str(page),
            "table": str(table),
        }
        print(json.dumps(document))
        return 0
    print(
        f"{audit.protocol}: of {len(audit.suspects)} {audit.kind} about {audit.n_expected} "
        f"({100 * audit.wrong_share:.1f} %) are expected to be wrong"
    )
    print(page)
    print(table)
    return 0


def serve_audit(options: Namespace, workspace: Workspace, audit: Audit, n_asked: int) -> int:
    """Ask people about the most suspect until a signal comes."""
    from deployments.audit.app import make_app
    from deployments.audit.session import AuditSession
    from deployments.web.listening import serve

    database = open_database(options, workspace, audit.experiment)
    try:
        session = AuditSession(audit, database, n_asked)
        print(f"verdicts are kept in {database.path.absolute()}", file=sys.stderr)
        serve(lambda access: make_app(session, access), options.host, options.port, "audit")
    finally:
        database.close()
    return 0


def export(options: Namespace, workspace: Workspace) -> int:
    """Write the verdicts on an experiment as the option `audit` of a split reads them."""
    from cppcl.audit.verdicts import write_verdicts

    if options.export.suffix != ".csv":
        raise InputError(f"--export {options.export}: give a .csv file")
    _, record = workspace.find_run(options.experiment)
    database = open_database(options, workspace, record["experiment"])
    try:
        options.export.write_text(
            write_verdicts(database.verdicts()), encoding="utf-8", newline=""
        )
    finally:
        database.close()
    print(options.export.absolute())
    return 0


def open_database(options: Namespace, workspace: Workspace, experiment: str) -> VerdictDatabase:
    """Open the file of verdicts on an experiment."""
    from deployments.audit.database import VerdictDatabase

    file = options.database or workspace.root / "audits" / f"{experiment}.sqlite"
    return VerdictDatabase(file, experiment)
