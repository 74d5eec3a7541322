"""``cppcl store ls|show|verify|gc``: look after the stored artifacts."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from cppcl.errors import InputError
from deployments.commands import remote
from deployments.commands.arguments import add_actions
from deployments.commands.listing import check_stages, check_there, room, shorten
from deployments.terminal import MISSING, Terminal, size_text
from storage import Artifact, DamagedArtifactError, Reference, Repair
from tasks.promotion import promoted_runs
from tasks.workspace import Workspace, source_of


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Stored results of stages (artifacts), by stage and key."
    parsers = add_actions(
        parser,
        {
            "ls": "list artifacts, one a line",
            "show": "show how artifacts were made",
            "verify": "read artifacts back and check them; by default all",
            "push": "send artifacts, and what they were made from, to an object store",
            "pull": "fetch artifacts, and what they were made from, from an object store",
            "gc": "remove artifacts that no gallery and no latest or promoted run uses",
        },
    )
    for name, added in parsers.items():
        added.set_defaults(repair=False, dry_run=False, remote=None)
        added.add_argument(
            "keys",
            nargs="+" if name == "pull" else "*",
            metavar="STAGE" if name == "ls" else "KEY",
            help="name of a stage"
            if name == "ls"
            else "key of an artifact, its beginning, or stage/key",
        )
    parsers["verify"].add_argument(
        "--repair",
        action="store_true",
        help="keep the undamaged parts of an artifact, so that a run makes only the rest",
    )
    urls = "s3://BUCKET/PREFIX or file:///FOLDER (default: $CPPCL_REMOTE)"
    for name in ("push", "pull"):
        parsers[name].add_argument("--remote", metavar="URL", help=urls)
    for name in ("ls", "verify"):
        parsers[name].add_argument(
            "--remote",
            metavar="URL",
            nargs="?",
            const="",
            help=f"look into this object store instead of the workspace: {urls}",
        )
    parsers["push"].add_argument(
        "--replace",
        action="store_true",
        help="send the artifacts again even if the object store has them",
    )
    parsers["gc"].add_argument(
        "--dry-run", action="store_true", help="only print what would be removed"
    )


def run(options: Namespace) -> int:
    """Run one action on the store of a workspace, or on a remote."""
    if options.action in ("push", "pull") or options.remote is not None:
        return remote.run(options)
    workspace = Workspace(options.workspace)
    check_there(workspace)
    return int(ACTIONS[options.action](workspace, options))


def list_artifacts(workspace: Workspace, options: Namespace) -> int:
    """Print one line for each artifact; KEY arguments name stages."""
    check_stages(options.keys)
    terminal = Terminal(sys.stdout)
    digits, width = room(terminal)
    rows = [
        [
            f"{artifact.reference.stage}/{artifact.reference.key[:digits]}",
            size_text(artifact.n_bytes),
            *made(artifact, width),
        ]
        for artifact in workspace.store.artifacts()
        if not options.keys or artifact.reference.stage in options.keys
    ]
    terminal.table("artifacts", ["artifact", "size", "made (UTC)", "parameters"], rows)
    return 0


def made(artifact: Artifact, width: int) -> tuple[str, str]:
    """Return when an artifact was made, and its parameters; of a damaged one, how to repair it."""
    try:
        started, parameters = artifact.run["started"], artifact.parameters
    except DamagedArtifactError:
        return MISSING, "damaged: see cppcl store verify"
    return started[:16].replace("T", " "), shorten(parameters, width)


def show(workspace: Workspace, options: Namespace) -> int:
    """Print the manifest and the run of artifacts."""
    if not options.keys:
        raise InputError("store show needs the KEY of an artifact; see: cppcl store ls")
    for text in options.keys:
        artifact = workspace.store.open(workspace.store.resolve(text))
        document = {"path": str(artifact.path), "manifest": artifact.manifest, "run": artifact.run}
        print(json.dumps(document, indent=1, sort_keys=True))
    return 0


def verify(workspace: Workspace, options: Namespace) -> int:
    """Read everything back; 1 if something is damaged and stays so."""
    store = workspace.store
    chosen = [store.resolve(text, here=True) for text in options.keys] or None
    problems = store.verify(chosen)
    for problem in problems:
        print(f"{problem.reference}: {problem.name}: {problem.message}")
    n = len(chosen) if chosen else sum(1 for _ in store.artifacts())
    print(f"{n} artifacts read, {len(problems)} problems")
    if not options.repair:
        return 1 if problems else 0
    # In the order in which they were found, each once.
    repairs = store.repair(dict.fromkeys(problem.reference for problem in problems))
    for repair in repairs:
        print(f"{repair.reference}: {repair_text(repair)}")
    unfinished = [str(repair.reference) for repair in repairs if not repair.whole]
    if unfinished:
        print(
            f"{len(unfinished)} artifacts are to be finished: {finishing(workspace, unfinished)}"
        )
    return 0


def repair_text(repair: Repair) -> str:
    """Return how a damaged artifact was repaired."""
    if repair.whole:
        return "repaired; it is whole"
    if repair.blocks is None:
        return "removed; the next run makes it again"
    blocks = {name: numbers for name, numbers in repair.blocks.items() if numbers}
    if not blocks:
        return "unfinished now; the next run writes its files again and computes no block"
    listed = ", ".join(
        f"{'block' if len(numbers) == 1 else 'blocks'} {shorten_list(numbers)} of {name}"
        for name, numbers in blocks.items()
    )
    return f"unfinished now; the next run makes {listed} again, and no other"


def shorten_list(numbers: list[int]) -> str:
    """Return numbers as text, at most ten of them."""
    more = f" and {len(numbers) - 10} more" if len(numbers) > 10 else ""
    return ", ".join(map(str, numbers[:10])) + more


def finishing(workspace: Workspace, unfinished: list[str]) -> str:
    """Return the commands that make what is missing, as far as the records of runs say."""
    users = {
        record["experiment"]: (record.get("index"), source_of(record))
        for record in workspace.run_records().values()
        if not set(unfinished).isdisjoint(record["all_artifacts"])
    }
    commands = []
    for name, (index, source) in sorted(users.items(), key=lambda user: user[0]):
        command = shlex.join(["run", source])
        if index:
            command = shlex.join(["index", index["model"], index["folder"], "--name", name])
        commands.append(f"cppcl {command} --workspace {workspace.root}")
    return "; ".join(commands) or "run the experiments that used them again"


def collect(workspace: Workspace, options: Namespace) -> int:
    """Remove all that the latest run of no experiment uses."""
    if options.keys:
        raise InputError(
            f"store gc takes no KEY (got {', '.join(options.keys)}): it removes everything that "
            "the latest runs do not use; see what that is with --dry-run"
        )
    keep = set(latest(workspace))
    # What searches found out about a model is in no run; it stays as long as the model.
    keep |= {
        found.reference
        for found in workspace.store.artifacts("drawings")
        if found.inputs["model"] in keep
    }
    removed = workspace.store.gc(keep, dry_run=options.dry_run)
    verb = "would remove" if options.dry_run else "removed"
    for folder in removed:
        print(f"{verb} {folder.parent.name}/{folder.name}")
    print(f"{verb} {len(removed)} artifacts")
    return 0


def latest(workspace: Workspace) -> Iterator[Reference]:
    """Iterate over the artifacts of the latest run of each experiment or gallery, stage by stage.

    So a run of one stage alone does not cost what the whole run before it made. Models that are
    or were promoted stay.
    """
    records = workspace.run_records()
    newest = {
        (record["experiment"], stage): record
        for record in records.values()
        for stage in record["artifacts"]
    }
    promoted = [records[name] for name in promoted_runs(workspace) if name in records]
    for record in (*newest.values(), *promoted):
        for text in record["all_artifacts"]:
            stage, _, key = text.partition("/")
            yield Reference(stage, key)


ACTIONS = {"ls": list_artifacts, "show": show, "verify": verify, "gc": collect}
