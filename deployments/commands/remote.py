"""``cppcl store push|pull`` and ``ls|verify --remote``: artifacts kept in an object store."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable

from cppcl.errors import InputError
from deployments.commands.listing import check_stages, check_there, room, shorten
from deployments.terminal import MISSING, Terminal, size_text
from storage import DamagedArtifactError, Inventory, Remote, Store, Transfer
from tasks.workspace import REMOTE, Workspace, remote_of


def run(options: Namespace) -> int:
    """Run one action on a store and its remote."""
    workspace = Workspace(options.workspace)
    if options.action == "push":
        check_there(workspace)
    store = workspace.store
    remote = remote_of(options.remote, "--remote") if options.remote else store.remote
    if remote is None:
        raise InputError(
            f"store {options.action}: there is no remote; set {REMOTE}, or give --remote URL"
        )
    store = Store(store.root, remote=remote)
    return int(ACTIONS[options.action](store, remote, options))


def push(store: Store, remote: Remote, options: Namespace) -> int:
    """Send artifacts and their inputs; all if none is named."""
    if options.replace and not options.keys:
        raise InputError("store push --replace needs the KEY of what is to be replaced")
    chosen = [store.resolve(text, here=True) for text in options.keys]
    references = chosen or list(store.references())
    return print_transfers(store.push(references, replace=options.replace), remote, "sent", "here")


def pull(store: Store, remote: Remote, options: Namespace) -> int:
    """Fetch artifacts and their inputs."""
    return print_transfers(
        store.pull(list(map(store.resolve, options.keys))), remote, "fetched", "there"
    )


def print_transfers(transfers: Iterable[Transfer], remote: Remote, verb: str, place: str) -> int:
    """Print each transfer when it is done, and their number and size in the end."""
    counts, n_bytes = Counter[str](), 0
    for transfer in transfers:
        counts[transfer.outcome] += 1
        n_bytes += transfer.n_bytes
        if transfer.outcome == "moved":
            print(f"{transfer.reference}: {verb}, {size_text(transfer.n_bytes)}", flush=True)
        elif transfer.outcome == "missing":
            print(f"{transfer.reference}: skipped: it is not {place}")
        elif transfer.outcome == "other":
            print(f"{transfer.reference}: there with other values; replace them with --replace")
    there = counts["there"] + counts["other"]
    print(
        f"{remote.url}: {counts['moved']} artifacts {verb} ({size_text(n_bytes)}), {there} were "
        "there"
    )
    return 0


def list_artifacts(store: Store, remote: Remote, options: Namespace) -> int:
    """Print one line for each artifact of the remote; KEY arguments name stages."""
    check_stages(options.keys)
    terminal = Terminal(sys.stdout)
    digits, width = room(terminal)
    rows = [
        [f"{reference.stage}/{reference.key[:digits]}", *size_and_parameters(found, width)]
        for stage in options.keys or [None]
        for reference, found in remote.inventories(stage)
    ]
    terminal.table(f"artifacts in {remote.url}", ["artifact", "size", "parameters"], rows)
    return 0


def size_and_parameters(found: Inventory | DamagedArtifactError, width: int) -> tuple[str, str]:
    """Return size and parameters; of a damaged artifact, how to learn more."""
    if isinstance(found, DamagedArtifactError):
        return MISSING, "damaged: see cppcl store verify --remote"
    return size_text(found.n_bytes), shorten(found.manifest["parameters"], width)


def verify(store: Store, remote: Remote, options: Namespace) -> int:
    """Read artifacts of the remote back; 1 if something is damaged."""
    if options.repair:
        raise InputError(
            "store verify --remote repairs nothing; send what is damaged anew from where it is "
            "whole: cppcl store push KEY --replace"
        )
    chosen = list(map(store.resolve, options.keys)) or None
    n_artifacts = n_problems = 0
    for reference, problems in store.verify_remote(chosen):
        n_artifacts, n_problems = n_artifacts + 1, n_problems + len(problems)
        for problem in problems:
            print(f"{reference}: {problem.name}: {problem.message}", flush=True)
    print(f"{remote.url}: {n_artifacts} artifacts read, {n_problems} problems")
    return 1 if n_problems else 0


ACTIONS = {"push": push, "pull": pull, "ls": list_artifacts, "verify": verify}
